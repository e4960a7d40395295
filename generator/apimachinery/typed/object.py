"""What every generated model class derives from.

``Part`` is any struct of an API; ``Object`` is a Kind: a struct with apiVersion, kind and metadata. Objects
can be weakly referenced, so that the client can keep, next to an object it decoded, the bytes it came from,
and write back what the model does not know (apimachinery.typed.lossless).

Set and unset. An unset field is None, or UNSET where the schema is nullable and None is a value of its own; neither
equals a value that anybody sends, so ``omit_defaults`` leaves out what is unset and nothing else. It compares by
identity: any other Python default would make what is sent depend on which object holds an equal value. What a schema
calls a default is filled in by the server alone, whose release may have another one than the spec that the class was
generated from.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self

import msgspec


class Part(msgspec.Struct, kw_only=True, omit_defaults=True, repr_omit_defaults=True, rename="camel"):
    """A part of an object. Fields are snake case, JSON keys camel case; what is unset is neither written nor shown.
    ``KNOWN_BY`` has a field and the values of it by which unions know a class that may have others elsewhere."""

    KNOWN_BY: ClassVar[tuple[str, tuple[str, ...]] | None] = None


class Object(Part, kw_only=True, weakref=True):
    """A Kind. Generated subclasses set the first two class variables, which say what it is without an instance.
    ``KEEPS_ORIGIN`` is true where objects may hold more than the model shows: fields that the schema keeps without
    declaring them, or times with more digits than a ``datetime`` has. A ``Scheme`` then remembers what it decoded."""

    API_VERSION: ClassVar[str]
    KIND: ClassVar[str]
    KEEPS_ORIGIN: ClassVar[bool] = False

    def __copy__(self) -> Self:
        made: Self = super().__copy__()  # type: ignore[misc]
        for follow in ON_COPY:
            follow(self, made)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = copy.copy(self)
        memo[id(self)] = made
        for name in self.__struct_fields__:
            setattr(made, name, copy.deepcopy(getattr(self, name), memo))
        return made


ON_COPY: list[Callable[[Object, Object], None]] = []
"""Called with an object and its new copy by ``copy.copy`` and ``copy.deepcopy``: for what is kept besides objects."""
