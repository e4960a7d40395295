"""Semantic versions, https://semver.org 2.0.0, and Kubernetes' normalization of near misses."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Opaque

_PART = r"(?:0|[1-9][0-9]*)"
_VERSION = re.compile(
    rf"({_PART})\.({_PART})\.({_PART})"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)
MAX_LENGTH = 1024


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


def _explain(text: str) -> str:
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) != 3:
        return "No Major.Minor.Patch elements found"
    for name, part in zip(("Major", "Minor"), parts, strict=False):
        if not re.fullmatch("[0-9]+", part, re.ASCII):
            return f'Invalid character(s) found in {name.lower()} number "{part}"'
        if len(part) > 1 and part[0] == "0":
            return f'{name} number must not contain leading zeroes "{part}"'
    patch = re.split(r"[-+]", parts[2])[0]
    if not re.fullmatch("[0-9]+", patch, re.ASCII):
        return f'Invalid character(s) found in patch number "{patch}"'
    if len(patch) > 1 and patch[0] == "0":
        return f'Patch number must not contain leading zeroes "{patch}"'
    return "Invalid character(s) found in prerelease or build metadata"


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Read a version; EvalError."""
    if len(text) > MAX_LENGTH:
        raise EvalError("version string too long")
    if normalize:
        text = _normalized(text)
    found = _VERSION.fullmatch(text)
    if not found or any(len(found[i]) > 20 or int(found[i]) >= 2**64 for i in (1, 2, 3)):
        raise EvalError(_explain(text))
    pre = tuple(found[4].split(".")) if found[4] else ()
    build = tuple(found[5].split(".")) if found[5] else ()
    return Semver((int(found[1]), int(found[2]), int(found[3])), pre, build)


def _normalized(text: str) -> str:
    """Without spaces around, a leading v, leading zeroes; with a minor and a patch."""
    text = text.strip()
    text = text.removeprefix("v")
    parts = text.split(".", 2)
    for place, part in enumerate(parts):
        digits = re.match(r"0+(?=[0-9])", part)
        if digits:
            parts[place] = part[digits.end() :]
    if len(parts) < 3:
        if re.search(r"[+-]", parts[-1]):
            return ".".join(parts)
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
