"""Which places of an API are inside copies of built-in types: a PodSpec, a LabelSelector, a Condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.ir.shapes import fold
from kubewright.ir.types import Definition, EmbeddedObject, ListOf, MapOf, Ref, Struct, Value
from kubewright.tools.diff.roundtrip import resource_path


def copies_in(api: Api) -> Callable[[str], str]:
    """A function from the path of a change (``widgets.example.com/v1: spec.template.spec.hostUsers``) to the name of
    the built-in type around it, empty where there is none."""
    from kubewright.config import Package
    from kubewright.pipeline import read_known

    if any(resource.introduced for resource in api.resources):
        return lambda path: ""  # the built-in kinds themselves
    known = read_known(Package(name="compared", sources=()), Diagnostics())
    folded = fold(api, known) if known is not None else api
    names = {external.definition for external in folded.external}
    table = {definition.name: definition for definition in folded.definitions}
    places: dict[str, str] = {}
    for resource in folded.resources:
        definition = table.get(resource.definition)
        if definition is not None:
            for path, name in _externals(definition.value, "", frozenset({definition.name}), table, names):
                places[f"{resource_path(resource)}: {path}"] = name.rpartition(".")[2]

    def around(path: str) -> str:
        """The entry of the closest field that encloses ``path``; empty where there is none."""
        above = path
        while ": " in above:
            shorter, _, _ = above.rpartition(".")
            above = shorter if ": " in shorter else ""
            for place in (above, above.rstrip("[]{}")):
                if place in places:
                    return places[place]
        return ""

    return around


def _externals(
    value: Value, path: str, inside: frozenset[str], table: Mapping[str, Definition], names: set[str]
) -> Iterator[tuple[str, str]]:
    kind = value.type
    if isinstance(kind, Ref):
        if kind.name in names:
            yield path, kind.name
        elif kind.name in table and kind.name not in inside:
            yield from _externals(table[kind.name].value, path, inside | {kind.name}, table, names)
    elif isinstance(kind, ListOf):
        yield from _externals(kind.items, f"{path}[]", inside, table, names)
    elif isinstance(kind, MapOf):
        yield from _externals(kind.values, f"{path}{{}}", inside, table, names)
    elif isinstance(kind, Struct | EmbeddedObject):
        body = kind.body if isinstance(kind, EmbeddedObject) else kind
        for field in body.fields:
            below = f"{path}.{field.wire_name}" if path else field.wire_name
            yield from _externals(field.value, below, inside, table, names)
