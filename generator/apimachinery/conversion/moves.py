"""The steps of a conversion between versions: each changes an object in place and has an opposite.

Paths are those of the rule files: ``spec.stores[*].name``. A step over a list (``[*]``) is taken for every item;
both paths of it lead through the same lists. A step finds nothing to do where its value is missing, and leaves
everything as it is where something else stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apimachinery.rules.fields import Json, copied

_MISSING: Any = object()


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[tuple[str, ...], ...]:
    """The keys of ``path`` between its lists: ``a.b[*].c`` → ``(("a", "b"), ("c",))``."""
    return tuple(tuple(key for key in part.strip(".").split(".") if key) for part in path.split("[*]"))


def move(obj: Json, source: str, target: str) -> None:
    """The value at ``source`` goes to ``target``, unless something is there already."""
    for holder, here, there in _pairs(obj, source, target):
        value = _take(holder, here, holder is obj)
        if value is not _MISSING and not _put(holder, there, value):
            _put(holder, here, value)


def map_words(obj: Json, path: str, words: Mapping[str, str]) -> None:
    """A string at ``path`` that is one of ``words`` is replaced."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        owner = _reach(holder, keys[:-1])
        if owner is not None and isinstance(word := owner.get(keys[-1]), str) and word in words:
            owner[keys[-1]] = words[word]


def wrap(obj: Json, source: str, target: str) -> None:
    """The value at ``source`` becomes the only item of the list of ``target``, or a field of that item."""
    before, after = _parts(target)[:2]
    (here,) = _parts(source)
    value = _take(obj, here)
    if value is _MISSING:
        return
    item = value
    for key in reversed(after):
        item = {key: item}
    if not _put(obj, before, [item]):
        _put(obj, here, value)


def unwrap(obj: Json, source: str, target: str) -> None:
    """The opposite of ``wrap``: of the list of ``source`` the first item counts."""
    before, after = _parts(source)[:2]
    (there,) = _parts(target)
    items = _take(obj, before)
    if not isinstance(items, list):
        if items is not _MISSING:
            _put(obj, before, items)
        return
    value: Any = items[0] if items else None
    for key in after:
        value = value.get(key) if isinstance(value, dict) else None
    if value is not None:
        _put(obj, there, value)


def split(obj: Json, source: str, targets: Sequence[str], separator: str) -> None:
    """A string is cut at ``separator`` into as many parts as there are targets."""
    (here,) = _parts(source)
    value = _take(obj, here)
    if not isinstance(value, str):
        if value is not _MISSING:
            _put(obj, here, value)
        return
    for target, part in zip(targets, value.split(separator, len(targets) - 1), strict=False):
        _put(obj, _parts(target)[0], part)


def join(obj: Json, sources: Sequence[str], target: str, separator: str) -> None:
    """The opposite of ``split``: strings are put together, as far as they are there."""
    words = []
    for source in sources:
        value = _take(obj, _parts(source)[0])
        if isinstance(value, str):
            words.append(value)
    if words:
        _put(obj, _parts(target)[0], separator.join(words))


def make_explicit(obj: Json, path: str, value: Any) -> None:
    """What is missing at ``path`` means ``value`` in this version and something else in the next: say it. Objects on
    the way are made, but not the first: an object without a spec says nothing."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        if len(keys) == 1 or holder is not obj or isinstance(holder.get(keys[0]), dict):
            _put(holder, keys, copied(value))


def put(obj: Json, path: str, value: Any) -> None:
    """Puts ``value`` at ``path``; objects on the way are made."""
    _put(obj, _parts(path)[0], copied(value))


def drop(obj: Json, path: str) -> None:
    """Takes away what is at ``path``."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        _take(holder, keys, holder is obj)


def _pairs(obj: Json, source: str, target: str) -> Iterator[tuple[Json, tuple[str, ...], tuple[str, ...]]]:
    *lists, here = _parts(source)
    *same, there = _parts(target)
    if lists != same:
        raise ValueError(f"{source} and {target} lead through different lists")
    for holder in _items(obj, tuple(lists)):
        yield holder, here, there


def _items(obj: Json, lists: tuple[tuple[str, ...], ...]) -> Iterator[Json]:
    if not lists:
        yield obj
        return
    owner = _reach(obj, lists[0][:-1])
    found = owner.get(lists[0][-1]) if owner is not None else None
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict):
            yield from _items(item, lists[1:])


def _reach(obj: Json, keys: Sequence[str]) -> Json | None:
    found: Any = obj
    for key in keys:
        found = found.get(key)
        if not isinstance(found, dict):
            return None
    return found  # type: ignore[no-any-return]


def _take(obj: Json, keys: Sequence[str], root: bool = True) -> Any:
    """Takes the value under ``keys`` away, with the objects that it leaves empty. Those directly in the whole
    object (``root``), its spec and its status, stay."""
    way = [obj]
    for key in keys[:-1]:
        inner = way[-1].get(key)
        if not isinstance(inner, dict):
            return _MISSING
        way.append(inner)
    if keys[-1] not in way[-1]:
        return _MISSING
    value = way[-1].pop(keys[-1])
    for index in range(len(way) - 1, 1 if root else 0, -1):
        if way[index]:
            break
        del way[index - 1][keys[index - 1]]
    return value


def _put(obj: Json, keys: Sequence[str], value: Any) -> bool:
    """Puts ``value`` under ``keys``; whether there was room for it."""
    owner: Any = obj
    for key in keys[:-1]:
        inner = owner.get(key)
        if inner is None:
            inner = owner[key] = {}
        if not isinstance(inner, dict):
            return False
        owner = inner
    if keys[-1] in owner:
        return False
    owner[keys[-1]] = value
    return True
