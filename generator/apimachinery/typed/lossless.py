"""Nothing lost on the way: writing back an object keeps what its model does not know.

Theory. A model knows a part of an object; the server may know more (a newer release, a field that a CRD
preserves). So next to every decoded object lie the bytes it came from. To write the object back, three JSON
values are held against each other: ``raw`` (what came), ``old`` (raw as the model sees it, encoded again)
and ``new`` (the model now). What changed from old to new is done to raw; what the model never saw stays,
nulls and order of keys included:

* a key of ``new`` that ``old`` has equal: keep raw's value; differing: descend; lacking in ``old``: set it;
* a key of ``old`` that ``new`` lacks: the user took it away: remove it from raw;
* a key of raw that ``old`` lacks: unknown to the model (or a null it shows as unset): keep it;
* lists: every new item is paired with the old item it came from, and raw's item at that place is rewritten.
  Pairs are found by equality first, then by the fields that commonly identify items (``name``, ``key``,
  ``type``, …), then, if as many items are left over on both sides and their names do not tell them apart, by
  position. An item without a pair is new and stands as it is.

Copies made by ``copy.copy`` and ``copy.deepcopy`` remember too; an object made field by field from another one
(``msgspec.structs.replace``) is a new object.
"""

from __future__ import annotations

import weakref
import zlib
from array import array
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from apimachinery.typed.decoders import prepare
from apimachinery.typed.object import ON_COPY, Object

T = TypeVar("T")
Origin: TypeAlias = "bytes | memoryview | msgspec.Raw"
"""JSON as it came; a ``Raw`` is a part of a larger answer, which lives as long as one of its parts."""
SHELF_SIZE: Final = 32
_LIKELY_KEYS: Final = ("name", "uid", "key", "type", "containerPort", "port", "mountPath", "devicePath", "ip")


class _Shelf:
    """The JSON of some objects of a list, compressed: most of them are never written back, and those of a list are
    much alike. Few on a shelf, so that taking one down is quick."""

    __slots__ = ("_ends", "_packed")

    def __init__(self, parts: Sequence[Origin]) -> None:
        views = [memoryview(part) for part in parts]
        self._ends = array("Q", accumulate(len(view) for view in views))
        self._packed = zlib.compress(b"".join(views), 1)

    def take(self, at: int) -> memoryview:
        whole = memoryview(zlib.decompress(self._packed))
        return whole[self._ends[at - 1] if at else 0 : self._ends[at]]


class _Memory(weakref.ref[Object]):
    """What is remembered of one object: as small as can be, for there is one next to each object of a list."""

    __slots__ = ("at", "identity", "raw")

    identity: int
    raw: Origin | _Shelf
    at: int


class _Event(msgspec.Struct):
    object: msgspec.Raw


_ORIGINS: Final[dict[int, _Memory]] = {}
_EVENT: Final = msgspec.json.Decoder(_Event)
_IN_EVENT: Final = -1
"""The place in ``_Memory.at`` of an object whose JSON is that of an event around it."""


def _forget(memory: Any) -> None:
    identity: int = memory.identity
    if _ORIGINS.get(identity) is memory:
        del _ORIGINS[identity]


def remember(obj: Object, raw: Origin) -> None:
    """Keeps ``raw``, the JSON that ``obj`` was decoded from, for as long as ``obj`` lives."""
    _keep(obj, raw, 0)


def remember_event(obj: Object, line: bytes) -> None:
    """``remember`` for the object of an event of a watch; the line is looked into when somebody asks."""
    _keep(obj, line, _IN_EVENT)


def remember_all(objects: Sequence[Object], parts: Sequence[Origin]) -> None:
    """``remember`` for the objects of a list, in a fifth of the memory."""
    for start in range(0, len(objects), SHELF_SIZE):
        shelf = _Shelf(parts[start : start + SHELF_SIZE])
        for at, obj in enumerate(objects[start : start + SHELF_SIZE]):
            _keep(obj, shelf, at)


def _keep(obj: Object, raw: Origin | _Shelf, at: int) -> None:
    memory = _Memory(obj, _forget)
    memory.identity = identity = id(obj)
    memory.raw = raw
    memory.at = at
    _ORIGINS[identity] = memory


def _follow(source: Object, made: Object) -> None:
    raw = origin_of(source)
    if raw is not None:
        remember(made, raw)


ON_COPY.append(_follow)


def origin_of(obj: Object) -> bytes | memoryview | None:
    """The JSON that ``obj`` was decoded from, or None for an object made in this program."""
    memory = _ORIGINS.get(id(obj))
    if memory is None or memory() is not obj:
        return None
    raw = memory.raw
    if isinstance(raw, _Shelf):
        return raw.take(memory.at)
    if memory.at == _IN_EVENT:
        raw = _EVENT.decode(raw).object
    return memoryview(raw) if isinstance(raw, msgspec.Raw) else raw


def read_as(model: type[T], raw: Origin, refusal: msgspec.ValidationError) -> T:
    """Reads JSON that a strict reading refused, nulls as zero values as Go reads them. Raises the refusal."""
    from apimachinery.typed.lenient import convert_leniently  # rarely needed

    return convert_leniently(msgspec.json.decode(raw), model, refusal)


def encode(obj: Object) -> bytes:
    """``obj`` as JSON, with everything kept that the bytes it came from hold and its class does not know."""
    raw = origin_of(obj)
    if raw is None:
        return msgspec.json.encode(obj)
    prepare(type(obj))
    try:
        old = msgspec.json.decode(raw, type=type(obj))
    except msgspec.ValidationError as refusal:
        old = read_as(type(obj), raw, refusal)
    if msgspec.json.encode(old) == msgspec.json.encode(obj):
        return bytes(raw)
    plain = partial(msgspec.to_builtins, str_keys=True)
    return msgspec.json.encode(rewrite(msgspec.json.decode(raw), plain(old), plain(obj)))


def rewrite(raw: Any, old: Any, new: Any) -> Any:
    """``raw`` with the change from ``old`` to ``new`` made to it; JSON values, none of them mutated."""
    if isinstance(raw, dict) and isinstance(old, dict) and isinstance(new, dict):
        kept = {k: v for k, v in raw.items() if k in new or k not in old}
        for key, value in new.items():
            if key not in old:
                kept[key] = value
            elif not _same(old[key], value):
                kept[key] = rewrite(raw.get(key), old[key], value)
        return kept
    if isinstance(raw, list) and isinstance(old, list) and isinstance(new, list) and len(raw) == len(old):
        origins = pair(old, new)
        return [
            item if at is None else raw[at] if _same(old[at], item) else rewrite(raw[at], old[at], item)
            for item, at in zip(new, origins, strict=True)
        ]
    return new


def _same(old: Any, new: Any) -> bool:
    """Whether two JSON values are written the same; Python takes 1, 1.0 and true for equal."""
    if old != new or type(old) is not type(new):
        return False
    return not isinstance(new, dict | list) or msgspec.json.encode(old) == msgspec.json.encode(new)


def pair(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """For each item of ``new`` the index of the item of ``old`` it came from, or None for a new one."""
    free = dict.fromkeys(range(len(old)))
    found: list[int | None] = [None] * len(new)
    for at, item in enumerate(new):
        if at in free and _same(old[at], item):
            found[at] = at
            del free[at]
    _match(found, new, old, free, msgspec.json.encode)
    for key in _LIKELY_KEYS:
        if free:
            _match(found, new, old, free, partial(_identity, key))
    left = [at for at, origin in enumerate(found) if origin is None]
    if len(left) == len(free) and not any(
        _told_apart(new[a], old[b]) for a, b in zip(left, free, strict=True)
    ):
        for at, origin in zip(left, list(free), strict=True):
            found[at] = origin
    return found


def _match(
    found: list[int | None],
    new: Sequence[Any],
    old: Sequence[Any],
    free: dict[int, None],
    identity: Callable[[Any], Hashable | None],
) -> None:
    """Pairs what is still unpaired by equal identities, first come first served."""
    waiting: dict[Hashable, list[int]] = {}
    for candidate in free:
        mark = identity(old[candidate])
        if mark is not None:
            waiting.setdefault(mark, []).append(candidate)
    if not waiting:
        return
    for at, origin in enumerate(found):
        if origin is None and (candidates := waiting.get(identity(new[at]))):
            chosen = candidates.pop(0)
            found[at] = chosen
            del free[chosen]


def _identity(key: str, item: Any) -> Hashable | None:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str | int) else None


def _told_apart(a: Any, b: Any) -> bool:
    """Whether both are objects with a name, and the names differ: then neither came from the other."""
    return isinstance(a, dict) and isinstance(b, dict) and a.get("name") != b.get("name")
