"""Generated dataclasses from JSON values and back, with the unknown fields that their schemas keep.

A dataclass has room for its fields alone. What an object holds besides, where its schema keeps it, is remembered with
the instance (``copy`` takes it along, ``dataclasses.replace`` and ``asdict`` do not) and written again, nulls too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from apimachinery.typed.unions import dropped_values

T = TypeVar("T")
_KEPT = "__kept__"


class DataclassForm:
    """The JSON form of the dataclasses of one package. Classes are called ``module.Class``. ``keeping`` are those whose
    objects may hold unknown fields; ``attributes`` has the wire names that are no attributes: class → attribute →
    name."""

    def __init__(self, keeping: frozenset[str], attributes: Mapping[str, Mapping[str, str]]) -> None:
        self._keeping = keeping
        self._attributes = attributes

    def decode(self, value: Mapping[str, Any], kind: type[T]) -> T:
        """The object of class ``kind`` that plain JSON ``value`` is. Raises ``msgspec.ValidationError``, with the path,
        where it does not fit."""
        made: T = self._object(value, kind, "$")
        return made

    def encode(self, item: Any) -> Any:
        """``item`` as plain JSON values; fields that are None are left out, unless null was read."""
        if dataclasses.is_dataclass(item):
            names = self._names(type(item))
            kept: Mapping[str, Any] = getattr(item, _KEPT, {})
            found = {}
            for name in _fields(_class_of(item)):
                value, key = getattr(item, name), names.get(name, name)
                if value is not None or key in kept:
                    found[key] = self.encode(value)
            return {**found, **{key: given for key, given in kept.items() if key not in found}}
        if isinstance(item, dict):
            return {key: self.encode(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [self.encode(inner) for inner in item]
        return item.value if isinstance(item, Enum) else msgspec.to_builtins(item)

    def _object(self, value: Any, kind: Any, place: str) -> Any:
        if not isinstance(value, Mapping):
            raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}` - at `{place}`")
        names, hints = self._names(kind), _fields(kind)
        read, kept = {}, {}
        wire = {names.get(name, name): name for name in hints}
        for key, given in value.items():
            name = wire.get(key)
            if name is not None:
                read[name] = self._value(given, hints[name], f"{place}.{key}")
            if (name is None and _called(kind) in self._keeping) or (name is not None and given is None):
                kept[key] = given
        missing = [
            field.name for field in dataclasses.fields(kind) if field.name not in read and _needed(field)
        ]
        if missing:
            key = names.get(missing[0], missing[0])
            raise msgspec.ValidationError(f"Object missing required field `{key}` - at `{place}`")
        made = kind(**read)
        if kept:
            object.__setattr__(made, _KEPT, kept)
        return made

    def _value(self, value: Any, kind: Any, place: str) -> Any:
        if dataclasses.is_dataclass(kind):
            return self._object(value, kind, place)
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            if value is None and NoneType in inner:
                return None
            members = [member for member in inner if member is not NoneType]
            if len(members) == 1:
                return self._value(value, members[0], place)
            return self._one_of(value, members, kind, place)
        if origin is list and isinstance(value, list):
            return [self._value(item, inner[0], f"{place}[{index}]") for index, item in enumerate(value)]
        if origin is dict and isinstance(value, Mapping):
            return {key: self._value(item, inner[1], f"{place}[{key}]") for key, item in value.items()}
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as fault:
            raise msgspec.ValidationError(f"{fault} - at `{place}`") from None

    def _one_of(self, value: Any, members: list[Any], kind: Any, place: str) -> Any:
        """A value of one of several types: the first that holds it whole, or the one that drops the least."""
        fits = []
        for member in members:
            try:
                made = self._value(value, member, place)
            except msgspec.ValidationError:
                continue
            fits.append((dropped_values(value, self.encode(made)), made))
            if not fits[-1][0]:
                break
        if not fits:
            raise msgspec.ValidationError(f"Expected `{kind}` - at `{place}`")
        return min(fits, key=lambda fit: fit[0])[1]

    def _names(self, kind: Any) -> Mapping[str, str]:
        return self._attributes.get(_called(kind), {})


def _called(kind: Any) -> str:
    """``apps_v1.Deployment`` of ``package.apps_v1.models``."""
    return f"{kind.__module__.split('.')[-2]}.{kind.__qualname__}"


def _class_of(item: Any) -> Any:
    return type(item)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The type of each field."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
