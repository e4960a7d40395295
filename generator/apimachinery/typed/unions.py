"""Unions whose members only their values tell apart.

``Untagged[Cat | Dog]`` is ``Cat | Dog`` to a type checker. ``decode`` and ``read_untagged`` try the members in order
and take the first that holds a value whole; where none does, the one that drops the least of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from apimachinery.typed.decoders import prepare
from apimachinery.typed.undeclared import REST, OpenPart, opened, part_and_fields

T = TypeVar("T")
_SHOWN: Final = 3


class _Union(type):
    """The class that stands for a union while values are decoded."""

    members: tuple[Any, ...]

    def __instancecheck__(cls, value: object) -> bool:
        return any(_is_of(value, member) for member in cls.members)


if TYPE_CHECKING:
    Untagged = Annotated[T, "tried in order"]
else:

    class Untagged:
        """``Untagged[A | B]``: a type that ``read_untagged`` decodes."""

        def __class_getitem__(cls, union: Any) -> Any:
            return _union_of(get_args(union)) if len(get_args(union)) > 1 else union


@cache
def _union_of(members: tuple[Any, ...]) -> _Union:
    name = " | ".join(getattr(member, "__name__", str(member)) for member in members)
    return _Union(name, (), {"members": members})


def decode(content: bytes | str, kind: type[T]) -> T:
    """The JSON ``content`` as ``kind``, a generated model. Raises ``msgspec.DecodeError``."""
    prepare(opened(kind))
    made: T = msgspec.json.decode(content, type=opened(kind), dec_hook=read_untagged)
    return made


def read_untagged(kind: Any, value: Any) -> Any:
    """Reads ``value``, plain JSON, as a member of the union ``kind``, or as a class with undeclared fields: the
    ``dec_hook`` of msgspec's decoders. Raises ``ValueError`` where no member fits."""
    return _Reading().read(kind, value)


class _Reading:
    """Reads one value. Unions in unions meet the same parts many times: each is read once as each type."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Any], Any] = {}

    def read(self, kind: Any, value: Any) -> Any:
        if (found := part_and_fields(kind, value)) is not None:
            prepare(found[0])
            return msgspec.convert(found[1], found[0], dec_hook=self.read)
        if not isinstance(kind, _Union):
            raise NotImplementedError(f"{kind} is no type of a model")
        key = (id(value), kind)
        if key not in self._known:
            try:
                self._known[key] = self._best(kind, value)
            except ValueError as refusal:
                self._known[key] = refusal
        found = self._known[key]
        if isinstance(found, ValueError):
            raise ValueError(str(found))
        return found

    def _best(self, kind: _Union, value: Any) -> Any:
        found, fewest, reasons = None, -1, []
        for member in kind.members:
            if (word := _other_member(member, value)) is not None:
                reasons.append(f"{getattr(member, '__name__', member)}: it is not known by {word!r}")
                continue
            prepare(member)
            try:
                made = msgspec.convert(value, member, dec_hook=self.read)
            except msgspec.ValidationError as refusal:
                reasons.append(f"{getattr(member, '__name__', member)}: {refusal}")
                continue
            dropped = dropped_values(value, made)
            if fewest < 0 or dropped < fewest:
                found, fewest = made, dropped
            if not dropped:
                break
        if fewest < 0:
            # Members that another value of an enum rules out are the least likely to be meant.
            reasons.sort(key=lambda reason: "Invalid enum value" in reason)
            more = ["…"] if len(reasons) > _SHOWN else []
            raise ValueError(f"Fits no member of `{kind.__name__}` ({'; '.join(reasons[:_SHOWN] + more)})")
        return found


def _other_member(member: Any, value: Any) -> str | None:
    """The word by which ``value`` says that it is not of this member."""
    tag = getattr(getattr(member, "part", member), "KNOWN_BY", None)
    if tag is None or not isinstance(value, dict) or tag[0] not in value or value[tag[0]] in tag[1]:
        return None
    return str(value[tag[0]])


def dropped_values(value: Any, made: Any) -> int:
    """How many values of the JSON ``value`` have no place in ``made``, which was decoded from it."""
    if isinstance(value, dict):
        places = dict(_places(made))
        return sum(
            dropped_values(item, places[key]) if key in places else _size(item) for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(made, list):
        return sum(map(dropped_values, value, made))
    return 0


def _places(made: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(made, msgspec.Struct):
        for key, name in zip(made.__struct_encode_fields__, made.__struct_fields__, strict=True):
            if key == REST and isinstance(made, OpenPart):
                yield from getattr(made, name).items()
            else:
                yield key, getattr(made, name)
    elif isinstance(made, dict):
        yield from made.items()


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _is_of(value: object, member: Any) -> bool:
    if member is Any:
        return True
    origin = get_origin(member)
    if origin is Literal:
        return value in get_args(member)
    return isinstance(value, origin or member)
