"""Reaching into JSON values whose shape nobody has checked yet.

Generated rules run on whatever a client sent: where a value is not of the expected shape these functions find
nothing, and the schema's own check says later what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

from apimachinery.meta.json import Json as Json

Check = TypeVar("Check", bound=Callable[..., Any])


def of_missing(check: Check) -> Check:
    """Marks a check that has something to say of a value that is not there: generated code asks no other of those."""
    return check


def struct(value: Json, *keys: str) -> Json | None:
    """The object under ``keys``, or ``None`` where there is none."""
    found: Any = value
    for key in keys:
        found = found.get(key)
        if not isinstance(found, dict):
            return None
    return found  # type: ignore[no-any-return]


def created(value: Json, *keys: str) -> Json | None:
    """The object under ``keys``; those missing or null on the way are put there, empty. ``None`` if one of them
    is something else than an object."""
    found: Any = value
    for key in keys:
        inner = found.get(key)
        if inner is None:
            inner = found[key] = {}
        if not isinstance(inner, dict):
            return None
        found = inner
    return found  # type: ignore[no-any-return]


def joined(value: Json, *parts: str | tuple[str, ...]) -> str | None:
    """Strings and, for each tuple of keys, the string found there, joined; ``None`` where one is no string."""
    words = [part if isinstance(part, str) else lookup(value, *part) for part in parts]
    return "".join(words) if all(isinstance(word, str) and word for word in words) else None


def items(value: Json, key: str) -> Iterator[Json]:
    """The objects in the list at ``key``."""
    found = value.get(key)
    if isinstance(found, list):
        for item in found:
            if isinstance(item, dict):
                yield item


def entries(value: Json, key: str) -> Iterator[Json]:
    """The objects that are values of the map at ``key``."""
    found = value.get(key)
    if isinstance(found, dict):
        for item in found.values():
            if isinstance(item, dict):
                yield item


def numbered(value: Json, key: str) -> Iterator[tuple[int, Json]]:
    """The objects in the list at ``key``, each with its index."""
    found = value.get(key)
    if isinstance(found, list):
        for index, item in enumerate(found):
            if isinstance(item, dict):
                yield index, item


def indexed(value: Json, key: str) -> Iterator[tuple[int, Any]]:
    """The items of the list at ``key``, of any type, each with its index."""
    found = value.get(key)
    yield from enumerate(found if isinstance(found, list) else ())


def keyed(value: Json, key: str) -> Iterator[tuple[str, Any]]:
    """The values of the map at ``key``, of any type, each with its key."""
    found = value.get(key)
    yield from found.items() if isinstance(found, dict) else ()


def named(value: Json, key: str) -> Iterator[tuple[str, Json]]:
    """The objects that are values of the map at ``key``, each with its key."""
    found = value.get(key)
    for name, item in found.items() if isinstance(found, dict) else ():
        if isinstance(item, dict):
            yield name, item


def lookup(value: Any, *keys: str) -> Any:
    """The value under ``keys``, or ``None`` where the way ends before."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


_MAPS = frozenset({"annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"})


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal for Go, to which an empty list or map is none; an empty object is there."""
    return bool(value == other or _present(value) == _present(other))


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _present(item)
            for key, item in value.items()
            if item is not None and item != [] and not (item == {} and key in _MAPS)
        }
    if isinstance(value, list):
        return [_present(item) for item in value] or None
    return value


def copied(value: Any) -> Any:
    """A copy that shares nothing with ``value``."""
    return deepcopy(value)


def default_entries(value: Json, key: str, source: Any) -> None:
    """Copies the entries of the map ``source`` that the map at ``key`` lacks; the map is made if need be."""
    if not isinstance(source, dict) or not source:
        return
    target = value.get(key)
    if target is None:
        target = value[key] = {}
    if isinstance(target, dict):
        for name, item in source.items():
            target.setdefault(name, copied(item))
