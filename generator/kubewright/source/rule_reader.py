"""Takes the parts of a rule file: what has another form than it should becomes a diagnostic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.ir.paths import Path, parse_path
from kubewright.ir.rules import TESTS, Condition
from kubewright.ir.types import Json
from kubewright.location import Document, escape_pointer


class RuleReader:
    """Takes a rule file apart; a problem becomes a diagnostic and an empty answer."""

    def __init__(self, document: Document, diagnostics: Diagnostics) -> None:
        self.document = document
        self.diagnostics = diagnostics

    def error(self, code: str, message: str, pointer: str, hint: str = "") -> None:
        """Reports a problem at ``pointer``."""
        self.diagnostics.error(code, message, self.document.at(pointer), hint)

    def head(self) -> tuple[str, tuple[str, ...], Mapping[str, Any]] | None:
        """Group, versions and types of the file, or ``None`` where it has none."""
        top = self.mapping(self.document.value, "")
        if not top:
            return None
        self.only(top, {"group", "version", "versions", "types"}, "")
        group, version = top.get("group"), top.get("version")
        versions = top.get("versions", [version] if version is not None else None)
        if not isinstance(group, str) or not isinstance(versions, list) or not versions:
            self.error(
                "K160",
                "a rule file says which group and which version or versions it is for",
                "",
                "begin it with `group: apps` and `version: v1`; the core group is ''",
            )
            return None
        types = self.mapping(top.get("types"), "/types")
        return group, tuple(str(item) for item in versions), types

    def mapping(self, value: Json, pointer: str) -> Mapping[str, Any]:
        """``value`` if it is an object, else nothing and a diagnostic."""
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        self.error("K161", "expected an object here", pointer)
        return {}

    def list_of(self, value: Json, pointer: str) -> list[Any]:
        """``value`` if it is a list, else nothing and a diagnostic."""
        if isinstance(value, list):
            return value
        self.error("K161", "expected a list here", pointer)
        return []

    def only(self, fields: Mapping[str, Any], known: set[str] | frozenset[str], pointer: str) -> None:
        """Reports fields that nobody would read."""
        for name in fields:
            if name not in known:
                self.error(
                    "K162",
                    f"unknown word {name!r} in a rule",
                    f"{pointer}/{escape_pointer(name)}",
                    f"known here: {', '.join(sorted(known))}",
                )

    def path(self, text: Json, pointer: str) -> Path | None:
        """The path written at ``pointer``."""
        if not isinstance(text, str):
            self.error("K163", f"a path is a string, not {text!r}", pointer)
            return None
        try:
            return parse_path(text)
        except ValueError as problem:
            self.error("K163", f"{text!r} is no path: {problem}", pointer)
            return None

    def conditions(self, value: Json, pointer: str) -> tuple[Condition, ...]:
        """The conditions under ``when``; all of them must hold."""
        found: list[Condition] = []
        for text, test in self.mapping(value, pointer).items():
            place = f"{pointer}/{escape_pointer(text)}"
            given = isinstance(text, str) and text[:1] == "$" and text[1:].isidentifier()
            path = self.path(text[1:] if given else text, place)
            if path is None:
                continue
            tests = test if isinstance(test, dict) else {"equals": test}
            for name, argument in tests.items():
                if name not in TESTS:
                    known = ", ".join(TESTS)
                    self.error("K164", f"unknown test {name!r}", place, f"known tests: {known}")
                elif name in ("in", "not-in", "only", "any-of") and not isinstance(argument, list):
                    self.error("K164", f"the test {name!r} takes a list", place)
                elif name in ("above", "longer") and type(argument) is not int:
                    self.error("K164", f"the test {name!r} takes a whole number", place)
                elif name in ("set", "empty", "latest-tag") and not isinstance(argument, bool):
                    self.error("K164", f"the test {name!r} takes true or false", place)
                else:
                    found.append(Condition(path, name, argument, given))
        return tuple(found)
