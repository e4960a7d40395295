"""Which types rules go into: from the fields of a type to the types that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from kubewright.ir.paths import Items, Key, Step, Values
from kubewright.ir.rules import TypeChecks
from kubewright.ir.types import Definition, EmbeddedObject, ListOf, MapOf, Ref, Struct, Type

Rules = TypeVar("Rules")

_NOT_ENTERED = ("status", "metadata")


def held_types(node: Type, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], str]]:
    """The named types that a type holds, with the way to each, in the order of its fields."""
    if isinstance(node, Ref):
        yield steps, node.name
    elif isinstance(node, ListOf):
        yield from held_types(node.items.type, (*steps, Items()))
    elif isinstance(node, MapOf):
        yield from held_types(node.values.type, (*steps, Values()))
    elif isinstance(node, Struct | EmbeddedObject):
        body = node.body if isinstance(node, EmbeddedObject) else node
        for member in body.fields:
            yield from held_types(member.value.type, (*steps, Key(member.wire_name)))


def types_with_rules(
    definitions: Iterable[Definition],
    rules: Mapping[str, Rules],
    enters: Callable[[Rules | None, tuple[Step, ...]], bool],
) -> set[str]:
    """The names of the definitions that have ``rules`` or hold a type that has; ``enters`` says whether the type at a
    place counts as held."""
    holders: dict[str, set[str]] = {}
    for definition in definitions:
        for steps, name in held_types(definition.value.type):
            if enters(rules.get(definition.name), steps):
                holders.setdefault(name, set()).add(definition.name)
    found: set[str] = set()
    pending = list(rules)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(holders.get(name, ()))
    return found


def enters(rules: TypeChecks | None, steps: tuple[Step, ...]) -> bool:
    """Whether the checks of a type go into the type at ``steps``, by a line that says so or by themselves."""
    first = steps[0] if steps else None
    if not isinstance(first, Key):
        return True
    if rules is not None and any(line.is_into and line.target.steps == steps for line in rules.of_objects):
        return True
    return first.name not in _NOT_ENTERED and (rules is None or first.name not in rules.skipped)
