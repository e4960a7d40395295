"""Which fields a client must send, and which objects hold more than their model shows.

A required field with a default need not be sent to a server that fills in defaults before it validates, as it does for
CustomResourceDefinitions. OpenAPI documents of Kubernetes-like servers state the zero of a Go type as the default of
every required field; those fields must be sent. The server of an ordinary HTTP API fills in nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubewright.ir.operations import Interface
from kubewright.ir.packages import is_built_in
from kubewright.ir.types import (
    ABSENT,
    Absent,
    Definition,
    EmbeddedObject,
    Field,
    Json,
    ListOf,
    Ref,
    Scalar,
    Struct,
    Value,
)
from kubewright.ir.walk import referenced, values

PRESERVE = "x-kubernetes-preserve-unknown-fields"


class Presence:
    """What is there of the fields of an API: ``table`` has its definitions, ``crds`` the group-versions that CRDs
    define; ``interface`` are the operations of an ordinary server, which fills in no defaults."""

    def __init__(
        self,
        table: Mapping[str, Definition],
        crds: set[tuple[str, str]],
        *,
        interface: Interface | None,
    ) -> None:
        self._table = table
        self._crds = crds
        self._fills_in = interface is None
        self._one_way = {
            "readOnly": self._reached(interface.sent() if interface else ()),
            "writeOnly": self._reached(interface.received() if interface else ()),
        }
        self._kept: dict[str, bool] = {}

    def must_be_sent(self, owner: Definition, member: Field) -> bool:
        """Whether a server refuses an object without this field."""
        given = member.value.default
        if any(
            (key, True) in member.value.extensions
            for key in self._one_way
            if owner.name in self._one_way[key]
        ):
            return False  # the other side does not give it: who sends never has it, or who reads
        if not member.required or given is ABSENT or given is None:  # `default: null` is none (apiextensions)
            return member.required
        if not self._fills_in or is_built_in(owner.name):
            return True
        return not given and self.is_of_go(owner)

    def _reached(self, given: Iterable[Value]) -> set[str]:
        """The definitions that values are made of."""
        found, pending = set[str](), [name for value in given for name in referenced(value)]
        while pending:
            name = pending.pop()
            if name not in found and name in self._table:
                found.add(name)
                pending += referenced(self._table[name].value)
        return found

    def known_default(self, owner: Definition, member: Field) -> Json | Absent:
        """The default that readers should know of: the zero of a Go type, which a document states where a field is
        required or a struct, is none."""
        given = member.value.default
        is_zero = not given and (member.required or given == {}) and self.is_of_go(owner)
        return ABSENT if given is None or is_zero else given

    def is_of_go(self, owner: Definition) -> bool:
        """Whether a definition is of a Kubernetes-like server's document, so its objects are decoded into structs."""
        return self._fills_in and (owner.group, owner.version) not in self._crds

    def keeps_origin(self, definition: Definition) -> bool:
        """Whether objects may hold, anywhere inside, unknown fields that are kept, or times whose text says more than
        a ``datetime``."""
        found = self._kept.get(definition.name)
        if found is None:
            self._kept[definition.name] = False  # a type inside itself
            found = self._kept[definition.name] = any(
                self._keeps(value) for value in values(definition.value)
            )
        return found

    def _keeps(self, value: Value) -> bool:
        node = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
        if isinstance(node, Ref):
            target = self._table.get(node.name)
            return target is not None and not is_built_in(target.name) and self.keeps_origin(target)
        if isinstance(node, Scalar):
            return node.is_moment
        if isinstance(node, ListOf):
            return (PRESERVE, True) in value.extensions
        return (
            isinstance(node, Struct)
            and bool(node.fields)
            and (node.preserve_unknown or node.extra is not None)
        )
