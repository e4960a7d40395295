"""Semantic versions, https://semver.org 2.0.0, and Kubernetes' normalization of near misses."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Opaque

from .strings import quote

_NUMBER = re.compile(r"[0-9]*", re.ASCII)
_WORD = re.compile(r"[0-9a-zA-Z-]*", re.ASCII)


class Semver(Opaque):
    """``kubernetes.Semver``."""

    __slots__ = ("build", "numbers", "pre")
    type_name: ClassVar[str] = "kubernetes.Semver"

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...], build: tuple[str, ...]):
        self.numbers = numbers
        self.pre = pre
        self.build = build

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1; build parts do not count."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if not self.pre or not other.pre:
            return bool(other.pre) - bool(self.pre)
        mine, theirs = _order(self.pre), _order(other.pre)
        return (mine > theirs) - (mine < theirs)

    def equals(self, other: Any) -> bool:
        """By precedence."""
        return self.compare(other) == 0


def _order(parts: tuple[str, ...]) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise EvalError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvalError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text or len(text) > 20 or int(text) >= 2**64:
        fault = "value out of range" if text else "invalid syntax"
        raise EvalError(f"strconv.ParseUint: parsing {quote(text)}: {fault}")
    return int(text)


def _pre_part(text: str) -> str:
    if not text:
        raise EvalError("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvalError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        _unsigned(text)
    elif not _WORD.fullmatch(text):
        raise EvalError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _build_part(text: str) -> str:
    if not text:
        raise EvalError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise EvalError(f"Invalid character(s) found in build meta data {quote(text)}")
    return text


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Read a version; EvalError."""
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvalError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvalError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    numbers = (major, minor, _number("patch", patch))
    pre_parts = tuple(map(_pre_part, pre.split("."))) if dash else ()
    return Semver(numbers, pre_parts, tuple(map(_build_part, build.split("."))) if plus else ())


def _normalized(text: str) -> str:
    """Without a leading v and leading zeroes; with a minor and a patch. Blanks stay, and are refused."""
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[place] = stripped if stripped[:1] in set("0123456789") else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvalError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except EvalError:
        return False
    return True


def semvers() -> Library:
    """``semver``, ``isSemver`` and comparisons, with normalization."""
    lib = Library("semver")
    lib.declare_type("semver", t.object_type("kubernetes.Semver"), Semver)
    lib.overload("semver", "string_to_semver", "(string) semver", parse_semver)
    lib.overload("semver", "string_bool_to_semver", "(string, bool) semver", parse_semver)
    lib.overload("isSemver", "is_semver_string", "(string) bool", _is_semver)
    lib.overload("isSemver", "is_semver_string_bool", "(string, bool) bool", _is_semver)
    lib.overload("isLessThan", "semver_is_less_than", "semver.(semver) bool", lambda a, b: a.compare(b) < 0)
    lib.overload(
        "isGreaterThan", "semver_is_greater_than", "semver.(semver) bool", lambda a, b: a.compare(b) > 0
    )
    lib.overload("compareTo", "semver_compare_to", "semver.(semver) int", lambda a, b: a.compare(b))
    for place, name in enumerate(("major", "minor", "patch")):
        lib.overload(name, f"semver_{name}", "semver.() int", lambda s, i=place: s.numbers[i])
    return lib
