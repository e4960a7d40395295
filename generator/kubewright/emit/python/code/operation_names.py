"""What the operations of an ordinary API are called in Python: groups, methods and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kubewright.emit.code import names
from kubewright.ir.operations import Interface, Operation

Arguments: TypeAlias = Mapping[tuple[str, str], str]
"""Place and name of a parameter → what it is called in Python."""
CLIENT_NAMES = frozenset(
    {"call", "close", "server", "timeout", "certificate_authority", "client", "retries", "stream", "iterate"}
)
"""Names that clients have already."""
_TAKEN_ARGUMENTS = frozenset({"self", "body", "content_type", "str", "list", "dict", "int", "float", "bytes"})
_RUNTIME = frozenset(
    {"Operation", "Parameter", "Body", "Left", "Any", "Literal", "Paging", "TypeAlias", "Untagged"}
    | {"Open", "Iterator", "AsyncIterator"}
)


@dataclass(frozen=True, slots=True)
class OperationGroup:
    """The operations of one tag: their module, their class, and the attribute of the client."""

    tag: str
    module: str
    class_name: str
    attribute: str
    operations: list[Operation] = field(default_factory=list)


def groups_of(interface: Interface) -> list[OperationGroup]:
    """The operations by tag, tags by name."""
    tags = sorted({operation.tag for operation in interface.operations})
    modules, attributes, classes = set[str](), set(CLIENT_NAMES), {"AsyncClient", "Client", *_RUNTIME}
    groups = {}
    for tag in tags:
        word = names.attribute_name(tag)
        class_name = names.class_name(tag)
        while class_name in classes or f"Async{class_name}" in classes:
            class_name += "Operations" if not class_name.endswith("Operations") else "2"
        classes |= {class_name, f"Async{class_name}"}
        groups[tag] = OperationGroup(tag, free_name(word, modules), class_name, free_name(word, attributes))
    for operation in sorted(interface.operations, key=lambda each: (each.path, each.method)):
        groups[operation.tag].operations.append(operation)
    return list(groups.values())


def free_name(name: str, used: set[str]) -> str:
    """``name``, or with a number, as nothing else is called; it is taken from then on."""
    plain, count = name, 2
    while name in used:
        name = f"{plain}_{count}"
        count += 1
    used.add(name)
    return name


def _without_tag(name: str, tag: str) -> str:
    """``repos/list`` of the tag ``repos`` is ``list``."""
    head, rest = name[: len(tag)], name[len(tag) :]
    return rest[1:] if head.lower() == tag.lower() and rest[:1] in tuple("/._-") and len(rest) > 1 else name


def argument_names(operation: Operation) -> Arguments:
    """The argument of each parameter; where two have one name, the place comes after it."""
    used = set(_TAKEN_ARGUMENTS)
    found = {}
    for parameter in operation.parameters:
        name = names.attribute_name(parameter.name)
        if name in used:
            name = f"{name}_{parameter.place}"
        found[parameter.place, parameter.name] = free_name(name, used)
    return found


def method_name(operation: Operation, used: set[str]) -> str:
    """The method of an operation, as nothing in ``used`` is called; it is taken from then on."""
    return free_name(names.attribute_name(_without_tag(operation.name, operation.tag)), used)


def one_line(text: str) -> str:
    """A name of a document in a docstring."""
    return " ".join(text.split())
