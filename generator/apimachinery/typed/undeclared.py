"""Fields that a schema allows without declaring them, beside those that it declares.

A class of such a schema is an ``OpenPart``: its field ``additional_properties`` has them. ``Open[Pet]`` is ``Pet`` to
a type checker; ``unions.read_untagged`` decodes it, and ``written`` puts the fields back where they came from. Types
without such fields take no part in this.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from apimachinery.typed.object import Part

T = TypeVar("T")
REST: Final = "additionalProperties"


class OpenPart(Part, kw_only=True):
    """A part that may have fields which its schema does not declare, in ``additional_properties``."""


class _Open(type):
    """The class that stands for an ``OpenPart`` while values are decoded."""

    part: type[OpenPart]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.part)


if TYPE_CHECKING:
    Open = Annotated[T, "with undeclared fields"]
else:

    class Open:
        """``Open[Pet]``: the class ``Pet``, read with its undeclared fields."""

        def __class_getitem__(cls, part: Any) -> Any:
            return part if isinstance(part, _Open) else _open(part)


@cache
def _open(part: type[OpenPart]) -> _Open:
    return _Open(part.__name__, (), {"part": part})


def opened(kind: Any) -> Any:
    """``kind``, with undeclared fields where it is a class that has some."""
    return _open(kind) if isinstance(kind, type) and issubclass(kind, OpenPart) else kind


def part_and_fields(kind: Any, value: Any) -> tuple[type[OpenPart], Any] | None:
    """For an ``Open`` type the class to decode, and ``value`` with the undeclared fields in a field of their own;
    ``None`` for any other type."""
    if not isinstance(kind, _Open):
        return None
    if not isinstance(value, dict):
        return kind.part, value
    declared = {*kind.part.__struct_encode_fields__} - {REST}
    fields = {key: item for key, item in value.items() if key in declared}
    return kind.part, {**fields, REST: {key: item for key, item in value.items() if key not in declared}}


def written(value: Any, plain: Any) -> Any:
    """``plain``, which is ``value`` in plain types, with undeclared fields where they belong."""
    return _written(value, plain) if OpenPart.__subclasses__() else plain


def _written(value: Any, plain: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        for key, name in zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True):
            if key in plain:
                plain[key] = _written(getattr(value, name), plain[key])
        rest = plain.pop(REST, {}) if isinstance(value, OpenPart) else {}
        return plain | {key: item for key, item in rest.items() if key not in plain}
    if isinstance(value, dict):
        return {key: _written(value[key], item) for key, item in plain.items()}
    return [*map(_written, value, plain)] if isinstance(value, list | tuple) else plain
