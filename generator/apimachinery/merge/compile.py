"""From merge schema to merge types: each named type of a table is compiled once, when first asked for.

A table may be recursive (JSONSchemaProps is); references become object references, so nothing is resolved
while walking values.
"""

from __future__ import annotations

from collections.abc import Mapping

from apimachinery.merge.lists import KeyedType
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.schema import (
    ABSENT,
    COMMON_TYPES,
    DEDUCED,
    UNTYPED,
    Either,
    Field,
    Kind,
    ListOf,
    ListType,
    MapOf,
    Ref,
    Scalar,
    Struct,
    Type,
    field_of,
)
from apimachinery.merge.structs import StructField, StructType
from apimachinery.merge.typed import AtomicType, EitherType, MergeType, ScalarType

LEAF_TYPES: Mapping[Kind, frozenset[type]] = {
    Kind.STRING: frozenset((str,)),
    Kind.NUMBER: frozenset((int, float)),
    Kind.BOOLEAN: frozenset((bool,)),
    Kind.ANY: frozenset((str, int, float, bool)),
}


class SchemaError(ValueError):
    """A table that cannot be compiled: names the type that is missing or odd."""


class MergeTypes:
    """A table of merge types, compiled on demand. Thread-safe in the way of a cache: at worst one type is
    compiled twice, to equal results."""

    def __init__(self, table: Mapping[str, Type | Field]) -> None:
        self._table: dict[str, Type] = {name: field_of(entry).type for name, entry in table.items()}
        self._table.update(COMMON_TYPES)
        self._done: dict[tuple[str, bool | None], MergeType] = {}

    def named(self, name: str) -> MergeType:
        """The merge type of a definition. Raises ``SchemaError`` where the table, or what it refers to, lacks
        it."""
        return self.compile(Ref(name))

    def patch_type(self, name: str) -> PatchType:
        """What strategic merge patch needs of a definition. Raises ``SchemaError`` where the table lacks it."""
        return self.compile_patch(Ref(name))

    def compile_patch(self, declared: Type) -> PatchType:
        """The same of any declaration over this table. Raises ``SchemaError``."""
        self.compile(declared)
        return PatchType(declared, self._table)

    def compile(self, declared: Type) -> MergeType:
        """The merge type of any declaration over this table. Raises ``SchemaError``."""
        # A copy: a table that does not compile must not leave half of its types behind.
        compiling = _Compiling(self._table, dict(self._done))
        compiled = compiling.type(declared)
        compiling.settle()
        self._done = compiling.named
        return compiled


class _Compiling:
    def __init__(self, table: Mapping[str, Type], named: dict[tuple[str, bool | None], MergeType]) -> None:
        self.table = table
        self.named = named
        self.fresh: list[MergeType] = []
        self.later: list[tuple[StructType, str, str, MergeType]] = []

    def type(self, declared: Type, atomic: bool | None = None) -> MergeType:
        if isinstance(declared, Ref):
            return self._ref(declared, atomic)
        # The shell before its parts, since a type may contain itself.
        compiled = self._shell(declared, atomic)
        self._fill(compiled, declared)
        return compiled

    def _ref(self, ref: Ref, atomic: bool | None) -> MergeType:
        override = ref.atomic if atomic is None else atomic
        key = (ref.name, override)
        found = self.named.get(key)
        if found is None:
            target = self.table.get(ref.name)
            if target is None:
                raise SchemaError(f"no type {ref.name!r} in the merge schema")
            if isinstance(target, Ref):
                if target.name == ref.name:
                    raise SchemaError(f"type {ref.name!r} of the merge schema refers to itself")
                return self._ref(target, override)
            found = self._shell(target, override)
            # Registered before it is filled, for the same reason.
            self.named[key] = found
            self._fill(found, target)
        return found

    def _shell(self, declared: Type, atomic: bool | None) -> MergeType:
        """The compiled type without its parts, so that parts may refer to it."""
        made: MergeType
        if isinstance(declared, Scalar):
            made = ScalarType(declared.kind.value, LEAF_TYPES[declared.kind])
        elif isinstance(declared, ListOf):
            whole = declared.type is ListType.ATOMIC if atomic is None else atomic
            made = AtomicType(list, None) if whole else KeyedType(self._keys(declared))
        elif isinstance(declared, MapOf | Struct):
            made = AtomicType(dict, None) if (declared.atomic if atomic is None else atomic) else StructType()
        # UNTYPED compares as a whole and takes any form.
        elif declared == COMMON_TYPES[UNTYPED.name]:
            made = AtomicType(None, None)
            made.leaf = LEAF_TYPES[Kind.ANY] | made.leaf
            made.exact = False
        else:
            assert isinstance(declared, Either)
            made = EitherType(LEAF_TYPES[declared.scalar] if declared.scalar else frozenset())
        self.fresh.append(made)
        return made

    def _keys(self, declared: ListOf) -> list[tuple[str, object]]:
        struct = declared.items
        while isinstance(struct, Ref):
            if struct.name not in self.table:
                raise SchemaError(f"no type {struct.name!r} in the merge schema")
            struct = self.table[struct.name]
        fields = struct.fields if isinstance(struct, Struct) else {}
        return [(key, field_of(fields[key]).default if key in fields else ABSENT) for key in declared.keys]

    def _fill(self, made: MergeType, declared: Type) -> None:
        if isinstance(made, AtomicType):
            if isinstance(declared, ListOf):
                made.content = ItemsType(self.type(declared.items))
                self.fresh.append(made.content)
            elif isinstance(declared, MapOf | Struct):
                made.content = self.type(declared, atomic=False)
        elif isinstance(made, KeyedType) and isinstance(declared, ListOf):
            made.items = self.type(declared.items)
        elif isinstance(made, StructType) and isinstance(declared, MapOf):
            made.rest = self.type(declared.values)
            made.free = declared.values == DEDUCED or declared.values == Scalar(Kind.ANY)
        elif isinstance(made, StructType) and isinstance(declared, Struct):
            made.rest = None if declared.rest is None else self.type(declared.rest)
            made.free = not declared.fields and declared.rest == DEDUCED
            for name, entry in declared.fields.items():
                type_ = self.type(field_of(entry).type)
                made.entries[name] = StructField(f"f:{name}", type_.leaf, type_.exact, type_)
        elif isinstance(made, EitherType) and isinstance(declared, Either):
            made.list = None if declared.list is None else self.type(declared.list)
            made.map = None if declared.map is None else self.type(declared.map)

    def settle(self) -> None:
        """Spreads inexactness from the places where a boolean and a number may both stand to all above
        them."""
        # Repeated until nothing changes: inexactness passes through recursive types.
        changed = True
        while changed:
            changed = False
            for type_ in self.fresh:
                if type_.exact and any(not part.exact for part in type_.parts()):
                    type_.exact = False
                    changed = True
        for type_ in self.fresh:
            if isinstance(type_, StructType):
                for name, entry in type_.entries.items():
                    if entry.exact != entry.type.exact:
                        type_.entries[name] = entry._replace(exact=entry.type.exact)


class ItemsType(StructType):
    """The content of an atomic list: only looked at for what may be in it."""

    __slots__ = ("items",)

    def __init__(self, items: MergeType) -> None:
        super().__init__()
        self.items = items

    def parts(self) -> list[MergeType]:
        return [self.items]

    def owned(self, value: object, strict: bool = True) -> None:
        leaf, owned = self.items.leaf, self.items.owned
        if type(value) is list:
            assert isinstance(value, list)
            for item in value:
                if type(item) not in leaf:
                    owned(item, strict)
