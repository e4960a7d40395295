"""find and findAll, over RE2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.patterns import PatternError, compile_pattern
from apimachinery.cel.values.errors import EvalError


def _matches(text: str, pattern: str) -> Iterator[Any]:
    try:
        yield from compile_pattern(pattern).finditer(text)
    except PatternError as error:
        raise EvalError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = next(_matches(text, pattern), None)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    if limit == 0:
        return found
    for match in _matches(text, pattern):
        found.append(match.group())
        if len(found) == limit:
            break
    return found


def regex() -> Library:
    """Kubernetes' regex library."""
    lib = Library("kubernetes regex")
    lib.overload("find", "string_find_string", "string.(string) string", _find)
    lib.overload("findAll", "string_find_all_string", "string.(string) list(string)", _find_all)
    lib.overload("findAll", "string_find_all_string_int", "string.(string, int) list(string)", _find_all)
    return lib
