"""The steps of a conversion between versions: each changes an object in place and has an opposite.

Paths are those of the rule files: ``spec.stores[*].name``. A step over a list (``[*]``) is taken for every item;
both paths of it lead through the same lists. A step finds nothing to do where its value is missing, and leaves
everything as it is where something else is in the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apimachinery.kinds.fields import Json, copied

_MISSING: Any = object()


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[tuple[str, ...], ...]:
    """The keys of ``path`` between its lists: ``a.b[*].c`` → ``(("a", "b"), ("c",))``."""
    return tuple(tuple(key for key in part.strip(".").split(".") if key) for part in path.split("[*]"))


def move(obj: Json, source: str, target: str) -> None:
    """Moves the value at ``source`` to ``target``, unless something is there already."""
    for holder, here, there in _pairs(obj, source, target):
        value = _take(holder, here, holder is obj)
        if value is not _MISSING and not _put(holder, there, value):
            _put(holder, here, value)


def map_words(obj: Json, path: str, words: Mapping[str, str]) -> None:
    """Replaces a string at ``path`` that is one of ``words``."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        owner = _reach(holder, keys[:-1])
        if owner is not None and isinstance(word := owner.get(keys[-1]), str) and word in words:
            owner[keys[-1]] = words[word]


def wrap(obj: Json, source: str, target: str) -> None:
    """Makes the value at ``source`` the only item of the list of ``target``, or a field of that item."""
    *lists, here = _parts(source)
    before, after = _parts(target)[len(lists) : len(lists) + 2]
    for holder in _items(obj, tuple(lists)):
        value = _take(holder, here, holder is obj)
        if value is _MISSING:
            continue
        item = value
        for key in reversed(after):
            item = {key: item}
        # Something else is there: the value goes back, or the way to and fro would lose it.
        if not _put(holder, before, [item]):
            _put(holder, here, value)


def unwrap(obj: Json, source: str, target: str) -> None:
    """Undoes ``wrap``: of the list of ``source`` the first item counts."""
    *lists, there = _parts(target)
    before, after = _parts(source)[len(lists) : len(lists) + 2]
    for holder in _items(obj, tuple(lists)):
        items = _take(holder, before, holder is obj)
        if not isinstance(items, list):
            if items is not _MISSING:
                _put(holder, before, items)
            continue
        value: Any = items[0] if items else None
        for key in after:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            _put(holder, there, value)


def split(obj: Json, source: str, targets: Sequence[str], separator: str) -> None:
    """Cuts a string at ``separator`` into as many parts as there are targets."""
    *lists, here = _parts(source)
    for holder in _items(obj, tuple(lists)):
        value = _take(holder, here, holder is obj)
        if not isinstance(value, str):
            if value is not _MISSING:
                _put(holder, here, value)
            continue
        for target, part in zip(targets, value.split(separator, len(targets) - 1), strict=False):
            _put(holder, _parts(target)[-1], part)


def join(obj: Json, sources: Sequence[str], target: str, separator: str) -> None:
    """Undoes ``split``: joins the strings that are there."""
    *lists, there = _parts(target)
    for holder in _items(obj, tuple(lists)):
        taken = [_take(holder, _parts(source)[-1], holder is obj) for source in sources]
        words = [value for value in taken if isinstance(value, str)]
        if words:
            _put(holder, there, separator.join(words))


def duration_to_seconds(obj: Json, source: str, target: str) -> None:
    """Turns a Go duration such as ``1m30s`` at ``source`` into whole seconds at ``target``; what is not a duration
    stays."""
    _translate(obj, source, target, _seconds)


def seconds_to_duration(obj: Json, source: str, target: str) -> None:
    """Writes whole seconds as Go writes a duration, ``1m30s``."""
    _translate(obj, source, target, _duration)


def version_to_group(obj: Json, source: str, target: str) -> None:
    """Passes on the group alone of an apiVersion such as ``apps/v1``."""
    _translate(
        obj, source, target, lambda value: value.rpartition("/")[0] if isinstance(value, str) else _MISSING
    )


def group_to_version(obj: Json, source: str, target: str, version: str) -> None:
    """Puts ``version`` behind a group; the core group is empty."""
    _translate(
        obj,
        source,
        target,
        lambda value: f"{value}/{version}".lstrip("/") if isinstance(value, str) else _MISSING,
    )


def map_to_list(obj: Json, source: str, target: str, key: str, field: str) -> None:
    """Turns a map into a list, an item a key: the key under ``key``, the value under ``field``. Without ``field`` the
    values are objects, and get the key as a field of their own."""

    def listed(value: Any) -> Any:
        if not isinstance(value, dict) or not (
            field or all(isinstance(item, dict) for item in value.values())
        ):
            return _MISSING
        return [{key: name, field: item} if field else {key: name, **item} for name, item in value.items()]

    _translate(obj, source, target, listed)


def list_to_map(obj: Json, source: str, target: str, key: str, field: str) -> None:
    """Undoes ``map_to_list``. A list that says a key twice, or an item without one, stays as it is."""

    def mapped(value: Any) -> Any:
        if not isinstance(value, list):
            return _MISSING
        found: Json = {}
        for item in value:
            name = item.get(key) if isinstance(item, dict) else None
            if not isinstance(name, str) or name in found or (field and field not in item):
                return _MISSING
            found[name] = (
                item[field] if field else {word: inner for word, inner in item.items() if word != key}
            )
        return found

    _translate(obj, source, target, mapped)


def _translate(obj: Json, source: str, target: str, change: Callable[[Any], Any]) -> None:
    """Moves the value at ``source`` to ``target`` as ``change`` makes it; where that gives nothing, it stays."""
    for holder, here, there in _pairs(obj, source, target):
        value = _take(holder, here, holder is obj)
        if value is _MISSING:
            continue
        new = change(value)
        if new is _MISSING or not _put(holder, there, new):
            _put(holder, here, value)


_DURATION = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return _MISSING
    if value in ("0", "+0", "-0"):
        return 0
    sign, rest = (-1, value[1:]) if value[:1] == "-" else (1, value.removeprefix("+"))
    total, position = 0.0, 0
    while position < len(rest):
        match = _DURATION.match(rest, position)
        if match is None or match.group()[0] in "+-":
            return _MISSING
        total += float(match[1]) * _UNITS[match[3]]
        position = match.end()
    return sign * int(total) if rest else _MISSING


def _duration(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return _MISSING
    sign, left = ("-", -value) if value < 0 else ("", value)
    hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
    words = f"{hours}h" if hours else ""
    return sign + words + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"


def make_explicit(obj: Json, path: str, value: Any) -> None:
    """Writes out ``value`` where ``path`` is missing, since the other version means something else by that. Creates
    objects on the way, but not the first: an object without a spec says nothing."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        if len(keys) == 1 or holder is not obj or isinstance(holder.get(keys[0]), dict):
            _put(holder, keys, copied(value))


def put(obj: Json, path: str, value: Any) -> None:
    """Puts ``value`` at ``path``, in every item of a list on the way; objects on the way are made."""
    *lists, keys = _parts(path)
    for holder in _items(obj, tuple(lists)):
        _put(holder, keys, copied(value))


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
