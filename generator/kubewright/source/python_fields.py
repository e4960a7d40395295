"""The fields of typed Python classes, whichever library made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Literal, get_type_hints

import msgspec

from kubewright.ir.types import ABSENT, Absent, Json


class PythonTypeError(Exception):
    """A type, a class or a default that no schema says."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ClassField:
    """One field: its attribute, its name in JSON, its type (``Annotated`` and all), further metadata of it, and what
    makes its default. ``required`` where the class cannot be made without it."""

    attribute: str
    wire: str
    type: Any
    required: bool
    make_default: Callable[[], Any] | None = None
    metadata: tuple[Any, ...] = ()
    description: str = ""

    def default(self) -> Json | Absent:
        """The default as JSON; absent where there is none, and where it only says that the field was left out. Raises
        ``PythonTypeError``."""
        if self.make_default is None:
            return ABSENT
        try:
            plain = _as_json(self.make_default())
        except Exception as error:  # what a factory does, or a value that is no JSON
            raise PythonTypeError(f"its default is no JSON: {type(error).__name__}: {error}") from None
        return ABSENT if plain in (None, {}, []) or plain is msgspec.UNSET else plain


def is_class(cls: type) -> bool:
    """Whether a class has typed fields."""
    return (
        issubclass(cls, msgspec.Struct)
        or dataclasses.is_dataclass(cls)
        or isinstance(getattr(cls, "model_fields", None), dict)
    )


def fields_of(cls: type) -> list[ClassField]:
    """The fields of a class as they are in JSON, in order. Raises ``PythonTypeError``."""
    reader = _of_pydantic
    if issubclass(cls, msgspec.Struct):
        reader = _of_struct
    elif dataclasses.is_dataclass(cls):
        reader = _of_dataclass
    try:
        return list(reader(cls))
    except PythonTypeError:
        raise
    except Exception as error:  # annotations are code
        raise PythonTypeError(f"the types of {cls.__name__} cannot be found: {error}") from None


def _of_struct(cls: type[msgspec.Struct]) -> Iterator[ClassField]:
    config = cls.__struct_config__
    if config.array_like:
        raise PythonTypeError(f"{cls.__name__} is an array in JSON", "leave array_like out")
    if config.tag is not None:
        tag = config.tag
        yield ClassField("", config.tag_field or "type", Literal[tag], required=True)
    for each in msgspec.structs.fields(cls):
        make: Callable[[], Any] | None = None
        if each.default_factory is not msgspec.NODEFAULT:
            make = each.default_factory
        elif each.default is not msgspec.NODEFAULT:
            make = partial(_same, each.default)
        yield ClassField(each.name, each.encode_name, each.type, each.required, make)


def _of_dataclass(cls: type) -> Iterator[ClassField]:
    hints = get_type_hints(cls, include_extras=True)
    for each in dataclasses.fields(cls):
        if each.init:
            make: Callable[[], Any] | None = None
            if each.default_factory is not dataclasses.MISSING:
                make = each.default_factory
            elif each.default is not dataclasses.MISSING:
                make = partial(_same, each.default)
            wire = each.metadata.get("name") or camel(each.name)
            yield ClassField(each.name, wire, hints[each.name], make is None, make)


def _of_pydantic(cls: type) -> Iterator[ClassField]:
    if getattr(cls, "__pydantic_root_model__", False):
        raise PythonTypeError(f"{cls.__name__} is no object in JSON", "use the type that it holds")
    fields: dict[str, Any] = cls.model_fields  # type: ignore[attr-defined]
    for name, each in fields.items():
        if not each.exclude:
            yield ClassField(
                name,
                each.serialization_alias or each.alias or camel(name),
                each.annotation,
                each.is_required(),
                None if each.is_required() else partial(each.get_default, call_default_factory=True),
                tuple(each.metadata),
                each.description or "",
            )


def keeps_unknown(cls: type) -> bool:
    """Whether objects of a class may have fields that it does not declare, and keep them (pydantic's ``extra``)."""
    config = getattr(cls, "model_config", None)
    return isinstance(config, dict) and config.get("extra") == "allow"


def _same(value: Any) -> Any:
    return value


def _as_json(value: Any) -> Any:
    """A value as its library writes it, but for names: they are those of the schema. Raises TypeError."""
    if isinstance(value, Enum):
        return value.value
    if is_class(type(value)):
        held = ((each, getattr(value, each.attribute)) for each in fields_of(type(value)) if each.attribute)
        return {
            each.wire: _as_json(item) for each, item in held if item is not None and item is not msgspec.UNSET
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return value if value is msgspec.UNSET else msgspec.to_builtins(value)


def camel(name: str) -> str:
    """``pod_ip`` as ``podIp``."""
    head, *rest = name.strip("_").split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)
