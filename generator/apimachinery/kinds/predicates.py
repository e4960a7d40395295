"""Tests of conditions that are more than a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

LONGEST_KEPT = 500
# The grammar of distribution/reference.
_IMAGE_PATH = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*)*"
_IMAGE = re2.compile(
    "^(?:(?:[A-Za-z0-9.-]+|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?/)?"
    + _IMAGE_PATH
    + "(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    + "(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$"
)


def has_latest_tag(image: Any) -> bool:
    """Whether an image is named by the tag ``latest``, or by neither tag nor digest, which means the same.

    What is not an image reference (distribution/reference's grammar) has no tag.
    """
    if not isinstance(image, str):
        return False
    if ":latest" not in image and ("@" in image or ":" in image.rpartition("/")[2]):
        return False  # a digest or another tag, or no image reference
    return _names_latest(image) if len(image) < LONGEST_KEPT else _names_latest.__wrapped__(image)


# The same few images come again and again.
@lru_cache(maxsize=4096)
def _names_latest(image: str) -> bool:
    match = _IMAGE.match(image)
    if match is None:
        return False
    return match["tag"] == "latest" or (match["tag"] is None and match["digest"] is None)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def matches(value: Any, pattern: str) -> bool:
    """Whether ``value`` is a string in which the RE2 ``pattern`` is found."""
    return isinstance(value, str) and _compiled(pattern).search(value) is not None


def has_only(value: Any, fields: Iterable[str]) -> bool:
    """Whether ``value`` is an object without other fields than ``fields``."""
    return isinstance(value, dict) and not value.keys() - set(fields)


def has_any(value: Any, fields: Iterable[str]) -> bool:
    """Whether ``value`` is an object with at least one of ``fields`` (null counts as missing)."""
    return isinstance(value, dict) and any(value.get(field) is not None for field in fields)


def is_above(value: Any, bound: int) -> bool:
    """Whether ``value`` is a number greater than ``bound``."""
    return isinstance(value, int | float) and value > bound


def is_longer(value: Any, most: int) -> bool:
    """Whether ``value`` is a list or a map of more than ``most`` items."""
    return isinstance(value, list | dict) and len(value) > most


def is_set(value: Any) -> bool:
    """Whether something is said: not missing, not null, not the empty string."""
    return value is not None and value != ""
