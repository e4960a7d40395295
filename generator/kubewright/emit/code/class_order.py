"""Which definitions become classes, and in which order: kinds first, and a definition above what it holds."""

from __future__ import annotations

from kubewright.emit.code.class_plans import (
    AliasPlan,
)
from kubewright.emit.code.type_expr import (
    ANY,
)
from kubewright.ir.types import (
    Definition,
    EmbeddedObject,
    Field,
    ListOf,
    Struct,
    Type,
)
from kubewright.ir.walk import referenced


def head_first(fields: tuple[Field, ...], *, is_kind: bool) -> list[Field]:
    """apiVersion, kind and metadata first: so an object is read."""
    if not is_kind:
        return list(fields)
    return sorted(fields, key=lambda f: _HEAD.index(f.wire_name) if f.wire_name in _HEAD else len(_HEAD))


_HEAD = ("apiVersion", "kind", "metadata")


def newspaper_order(definitions: list[Definition]) -> list[Definition]:
    """Kinds by name, each followed by the definitions it names, those it names directly first; lists of kinds last."""
    table = {definition.name: definition for definition in definitions}
    ordered: dict[str, Definition] = {}

    def add(definition: Definition) -> None:
        """``definition``, then what it names: direct parts first, as a reader meets them."""
        if definition.name in ordered:
            return
        queue = [definition]
        ordered[definition.name] = definition
        while queue:
            current = queue.pop(0)
            for name in referenced(current.value):
                part = table.get(name)
                if part is not None and name not in ordered and kind_of(part) is None:
                    ordered[name] = part
                    queue.append(part)

    in_order = sorted(definitions, key=lambda d: d.name)
    lists = [definition for definition in in_order if is_list(definition)]
    for definition in in_order:
        if kind_of(definition) is not None and definition not in lists:
            add(definition)
    for definition in in_order:
        if definition not in lists:
            add(definition)
    for definition in lists:
        ordered.setdefault(definition.name, definition)
    return list(ordered.values())


def aliases_in_order(aliases: dict[str, AliasPlan]) -> list[AliasPlan]:
    """Those that others are made of first, then by name."""
    ordered: dict[str, AliasPlan] = {}

    def add(name: str) -> None:
        if name in ordered or name not in aliases:
            return
        for used in referenced(aliases[name].definition.value):
            if used != name and used in aliases and aliases[name].type != ANY:
                add(used)
        ordered[name] = aliases[name]

    for name in sorted(aliases):
        add(name)
    return list(ordered.values())


def reached_through_aliases(definition: Definition, table: dict[str, Definition]) -> set[str]:
    """What a definition that is not a class reaches without passing a class."""
    reached: set[str] = set()
    pending = [definition]
    while pending:
        for name in referenced(pending.pop().value):
            target = table.get(name)
            if target is not None and name not in reached and not is_class(target.value.type):
                reached.add(name)
                pending.append(target)
    return reached


def is_class(node: Type) -> bool:
    """Whether a type becomes a class: an object with fields. Objects without are plain dicts."""
    body = node.body if isinstance(node, EmbeddedObject) else node
    return isinstance(body, Struct) and bool(body.fields)


def is_open(node: Type) -> bool:
    """Whether a type is an object that may have fields besides those declared."""
    body = node.body if isinstance(node, EmbeddedObject) else node
    return isinstance(body, Struct) and (body.preserve_unknown or body.extra is not None)


def kind_of(definition: Definition) -> tuple[str, str, str] | None:
    """Group, version and kind of a definition that is one kind's."""
    node = definition.value.type
    if len(definition.kinds) != 1 or not isinstance(node, Struct):
        return None
    wire_names = {member.wire_name for member in node.fields}
    return definition.kinds[0] if {"apiVersion", "kind"} <= wire_names else None


def is_list(definition: Definition) -> bool:
    """Whether a definition is the list of a kind."""
    node = definition.value.type
    return (
        kind_of(definition) is not None
        and isinstance(node, Struct)
        and definition.kinds[0][2].endswith("List")
        and any(m.wire_name == "items" and isinstance(m.value.type, ListOf) for m in node.fields)
    )
