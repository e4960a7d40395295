"""What strategic merge patch needs to know of a type: for each field its strategy, its merge key, and what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apimachinery.merge.errors import MergeError, quote
from apimachinery.merge.schema import Either, Field, ListOf, MapOf, Ref, Scalar, Struct, Type, field_of

MERGE = "merge"
REPLACE = "replace"
RETAIN_KEYS = "retainKeys"


@dataclass(frozen=True, slots=True)
class PatchField:
    """A field as patches see it: ``strategy`` is ``merge``, ``replace`` or empty; ``type`` is that of the field,
    or of its items where it is a list."""

    type: PatchType
    strategy: str = ""
    retain_keys: bool = False
    merge_key: str = ""


class PatchType:
    """One type of a merge schema, read field by field as patches ask for them."""

    __slots__ = ("_declared", "_fields", "_name", "_table")

    def __init__(self, declared: Type, table: Mapping[str, Type], name: str = "") -> None:
        self._declared, self._name = _resolved(declared, table, name)
        self._table = table
        self._fields: dict[str, PatchField] = {}

    def field(self, key: str) -> PatchField:
        """The field ``key``, or what a map holds at any key. Raises ``MergeError`` (500) where there is none."""
        found = self._fields.get(key)
        if found is None:
            found = self._read(key)
            self._fields[key] = found
        return found

    def _read(self, key: str) -> PatchField:
        declared = self._declared.map if isinstance(self._declared, Either) else self._declared
        if isinstance(declared, MapOf):
            # A map's keys are data: one entry serves them all.
            return PatchField(self._inner(declared.values))
        if not isinstance(declared, Struct):
            form = declared.kind.value if isinstance(declared, Scalar) else "slice"
            raise MergeError(f"merging an object in json but data type is not struct, instead is: {form}")
        entry = declared.fields.get(key)
        if entry is None:
            if declared.rest is None:
                where = f"struct {self._name}" if self._name else "struct"
                raise MergeError(f"unable to find api field in {where} for the json field {quote(key)}")
            entry = Field(declared.rest)
        field = field_of(entry)
        words = [word for word in field.patch if word != RETAIN_KEYS]
        # kube-apiserver knows one strategy besides retainKeys.
        if len(words) > 1:
            raise MergeError(f"unexpected patch strategy: [{' '.join(field.patch)}]")
        strategy = words[0] if words else ""
        return PatchField(self._inner(field.type), strategy, RETAIN_KEYS in field.patch, field.merge_key)

    def _inner(self, declared: Type) -> PatchType:
        declared, name = _resolved(declared, self._table, "")
        if isinstance(declared, ListOf):
            return PatchType(declared.items, self._table)
        return PatchType(declared, self._table, name)


_RAW = Struct({})
"""What any JSON may be in is a struct of bytes for patches (RawExtension): it has no fields of its own."""


def _resolved(declared: Type, table: Mapping[str, Type], name: str) -> tuple[Type, str]:
    """The type that a reference means, and the name of its struct."""
    while isinstance(declared, Ref):
        found = table.get(declared.name)
        if found is None:
            return _RAW, "RawExtension"
        name = declared.name.rpartition(".")[2]
        declared = found
    return declared, name
