"""The fields of typed Python classes, whichever library made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, get_type_hints

import msgspec

from kubewright.ir.types import ABSENT, Absent, Json


@dataclass(frozen=True, slots=True)
class ClassField:
    """One field: its attribute, its name in JSON, its type (``Annotated`` and all), further metadata of it, and its
    default. ``required`` where the class cannot be made without it."""

    attribute: str
    wire: str
    type: Any
    required: bool
    default: Json | Absent = ABSENT
    metadata: tuple[Any, ...] = ()
    description: str = ""


def is_class(cls: type) -> bool:
    """Whether a class has typed fields."""
    return (
        issubclass(cls, msgspec.Struct)
        or dataclasses.is_dataclass(cls)
        or isinstance(getattr(cls, "model_fields", None), dict)
    )


def fields_of(cls: type) -> list[ClassField]:
    """The fields of a class, in order."""
    if issubclass(cls, msgspec.Struct):
        return list(_of_struct(cls))
    if dataclasses.is_dataclass(cls):
        return list(_of_dataclass(cls))
    return list(_of_pydantic(cls))


def _of_struct(cls: type[msgspec.Struct]) -> Iterator[ClassField]:
    for each in msgspec.structs.fields(cls):
        default: Any = each.default
        if each.default_factory is not msgspec.NODEFAULT:
            default = each.default_factory()
        yield ClassField(
            each.name, each.encode_name, each.type, each.required, _plain(default, msgspec.NODEFAULT)
        )


def _of_dataclass(cls: type) -> Iterator[ClassField]:
    hints = get_type_hints(cls, include_extras=True)
    for each in dataclasses.fields(cls):
        if each.init:
            default: Any = each.default
            if each.default_factory is not dataclasses.MISSING:
                default = each.default_factory()
            given = _plain(default, dataclasses.MISSING)
            wire = each.metadata.get("name") or camel(each.name)
            yield ClassField(each.name, wire, hints[each.name], default is dataclasses.MISSING, given)


def _of_pydantic(cls: type) -> Iterator[ClassField]:
    fields: dict[str, Any] = cls.model_fields  # type: ignore[attr-defined]
    for name, each in fields.items():
        default = each.get_default(call_default_factory=True) if not each.is_required() else _NOTHING
        yield ClassField(
            name,
            each.serialization_alias or each.alias or camel(name),
            each.annotation,
            each.is_required(),
            _plain(default, _NOTHING),
            tuple(each.metadata),
            each.description or "",
        )


_NOTHING: Final = object()


def _plain(default: Any, nothing: Any) -> Json | Absent:
    """A default as JSON; absent where there is none, and where it only says that the field was left out."""
    if default is nothing or default is None or default is msgspec.UNSET:
        return ABSENT
    if isinstance(default, Enum):
        default = default.value
    if hasattr(default, "model_dump"):
        default = default.model_dump(mode="json", by_alias=True)
    plain = msgspec.to_builtins(default)
    if isinstance(plain, set | frozenset | tuple):
        plain = list(plain)
    return ABSENT if plain in ({}, []) else plain


def camel(name: str) -> str:
    """``pod_ip`` as ``podIp``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)
