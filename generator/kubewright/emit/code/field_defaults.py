"""Which defaults of a spec become defaults of fields, and how they are written.

Defaults are applied where objects are decoded or made: those of CustomResourceDefinitions all, those of other
documents unless they are the zero of a Go type, which documents of Kubernetes-like servers state for every required
field. A default that does not fit its type is left out: the field is then optional, or required, as the spec says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from kubewright.emit.code.render import literal
from kubewright.ir.types import (
    ABSENT,
    Definition,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Primitive,
    Quantity,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.ir.walk import values

KUBERNETES = "io.k8s."
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_MAX_DEPTH = 40
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_PLAIN: dict[Primitive, tuple[type, ...]] = {
    Primitive.STRING: (str,),
    Primitive.INTEGER: (int,),
    Primitive.NUMBER: (int, float),
    Primitive.BOOLEAN: (bool,),
}


class Defaults:
    """The defaults of an API: ``table`` has its definitions, ``crds`` the group-versions that CRDs define."""

    def __init__(self, table: Mapping[str, Definition], crds: set[tuple[str, str]]) -> None:
        self._table = table
        self._crds = crds
        self._kept: dict[str, bool] = {}

    def of(self, owner: Definition, member: Field, annotation: str) -> tuple[str, str]:
        """The default of a field as an expression, or the function that gives it; both empty where there is none."""
        value = member.value
        given = value.default
        if given is ABSENT or owner.name.startswith(KUBERNETES):
            return "", ""
        if given is None or (not given and (owner.group, owner.version) not in self._crds):
            return "", ""
        if not self._fits(value, given, 0):
            return "", ""
        if annotation == "datetime":
            return "", f"lambda: convert({literal(given)}, datetime)"
        if not isinstance(given, dict | list):
            return literal(given), ""
        if given in ([], {}) and annotation.startswith(("list[", "dict[")):
            return "", annotation.partition("[")[0]
        if _is_plain(value.type):
            return "", f"lambda: {literal(given)}"
        if given == {}:
            return "", f"lambda: {annotation}()"
        return "", f"lambda: convert({literal(given)}, {annotation})"

    def keeps_origin(self, definition: Definition) -> bool:
        """Whether objects hold, anywhere inside, unknown fields that are kept, or defaults."""
        found = self._kept.get(definition.name)
        if found is None:
            self._kept[definition.name] = False  # a type inside itself
            found = self._kept[definition.name] = any(
                self._keeps(definition, value) for value in values(definition.value)
            )
        return found

    def _keeps(self, owner: Definition, value: Value) -> bool:
        node = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
        if isinstance(node, Ref):
            target = self._table.get(node.name)
            return target is not None and not target.name.startswith(KUBERNETES) and self.keeps_origin(target)
        if isinstance(node, Struct) and node.fields and (node.preserve_unknown or node.extra is not None):
            return True
        if isinstance(node, ListOf) and (PRESERVE, True) in value.extensions:
            return True
        return isinstance(node, Struct) and any(any(self.of(owner, member, "")) for member in node.fields)

    def _resolved(self, node: Type) -> Type:
        for _ in range(_MAX_DEPTH):
            if not isinstance(node, Ref):
                return node.body if isinstance(node, EmbeddedObject) else node
            target = self._table.get(node.name)
            if target is None:
                return RawJson()
            node = target.value.type
        return RawJson()

    def _fits(self, value: Value, given: Json, depth: int) -> bool:
        """Whether a decoder takes ``given`` for ``value``."""
        if depth > _MAX_DEPTH:
            return False
        if given is None:
            return value.nullable
        node = self._resolved(value.type)
        if isinstance(node, Scalar):
            right = isinstance(given, _PLAIN[node.primitive]) and (
                not isinstance(given, bool) or node.primitive is Primitive.BOOLEAN
            )
            if right and node.is_moment and not value.constraints.enum:
                return _is_readable_moment(given)
            return right and (not value.constraints.enum or given in value.constraints.enum)
        if isinstance(node, IntOrString | Quantity):
            return isinstance(given, str | int) and not isinstance(given, bool)
        if isinstance(node, ListOf):
            return isinstance(given, list) and all(self._fits(node.items, item, depth + 1) for item in given)
        if isinstance(node, MapOf):
            return isinstance(given, dict) and all(
                self._fits(node.values, item, depth + 1) for item in given.values()
            )
        if isinstance(node, RawJson):
            return not node.object_only or isinstance(given, dict)
        if isinstance(node, Struct):
            return isinstance(given, dict) and self._fits_struct(node, given, depth)
        return False

    def _fits_struct(self, node: Struct, given: Json, depth: int) -> bool:
        for member in node.fields:
            if member.wire_name in given:
                if not self._fits(member.value, given[member.wire_name], depth + 1):
                    return False
            elif member.required and (
                member.value.default is ABSENT
                or not self._fits(member.value, member.value.default, depth + 1)
            ):
                return False
        return not isinstance(node, Ref)


def _is_plain(node: Type) -> bool:
    """Whether the value in Python is what JSON gives: no class is in it."""
    if isinstance(node, ListOf):
        return _is_plain(node.items.type)
    if isinstance(node, MapOf):
        return _is_plain(node.values.type)
    if isinstance(node, Struct):
        return not node.fields
    if isinstance(node, Scalar):
        return not node.is_moment
    return isinstance(node, RawJson | IntOrString | Quantity)


def _is_readable_moment(text: Json) -> bool:
    if not _MOMENT.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:  # a day or an hour that does not exist
        return False
    return True
