"""L2: lists and maps, and how they merge."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.diagnostics import Severity
from kubewright.ir.merge import ListType, PatchStrategy
from kubewright.ir.types import Absent, ListOf, MapOf, Ref, Struct, Value
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import CONVENTIONS, NATIVE, LintedKind, place_rule


@place_rule(
    "L208 lists-over-maps",
    why="Lists of named objects keep their order, validate each name, and read the same in every tool.",
    source=f"{CONVENTIONS}: Lists of named subobjects preferred over maps",
    hint="use a list with x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [name]",
)
def lists_over_maps(place: Place, kind: LintedKind) -> Iterator[str]:
    """No maps of objects or lists."""
    node = place.target.type
    if isinstance(node, MapOf) and _is_object(node.values, kind):
        yield f'"{place.shown}" is a map of objects'
    elif isinstance(node, MapOf) and isinstance(node.values.type, ListOf):
        yield f'"{place.shown}" is a map of lists'


@place_rule(
    "L209 list-type",
    why="Without a list type server-side apply treats the list as one value: two appliers cannot share it, and"
    " declaring it later changes who owns what.",
    source=f"{CONVENTIONS}: Lists; KEP-555 (server-side apply)",
    hint="set x-kubernetes-list-type to atomic, set or map",
)
def list_type(place: Place, kind: LintedKind) -> Iterator[str]:
    """Every list says how it merges."""
    if isinstance(place.target.type, ListOf) and not place.in_metadata:
        merge = place.value.merge
        if not merge.list_type_declared and not merge.patch_strategy:
            yield f'list "{place.shown}" has no x-kubernetes-list-type'


@place_rule(
    "L210 list-map-keys",
    why="An item without its key can neither be found nor be told apart.",
    source="KEP-555 (server-side apply); structural schema rules",
    hint="make each key required or give it a default",
)
def list_map_keys(place: Place, kind: LintedKind) -> Iterator[str]:
    """Keys of map lists are required or defaulted."""
    node = place.target.type
    if not isinstance(node, ListOf) or place.value.merge.list_type is not ListType.MAP:
        return
    body = _struct(node.items, kind)
    for key in place.value.merge.list_map_keys if body is not None else ():
        field = next((f for f in body.fields if f.wire_name == key), None) if body is not None else None
        if field is not None and not field.required and isinstance(field.value.default, Absent):
            yield f'key "{key}" of list "{place.shown}" is neither required nor defaulted'


@place_rule(
    "L211 set-of-objects",
    why="Items of a set are compared whole: changing a field of one makes another item of it.",
    source="KEP-555 (server-side apply)",
    hint="use list-type map with keys",
)
def set_of_objects(place: Place, kind: LintedKind) -> Iterator[str]:
    """Sets hold scalars."""
    node = place.target.type
    if (
        isinstance(node, ListOf)
        and place.value.merge.list_type is ListType.SET
        and _is_object(node.items, kind)
    ):
        yield f'"{place.shown}" is a set of objects'


@place_rule(
    "L212 patch-strategy",
    profiles=NATIVE,
    why="kubectl's strategic merge and server-side apply would merge the same list by different rules.",
    source=f"{CONVENTIONS}: Lists of named subobjects; KEP-555",
    hint="give a map list patch strategy merge and one of its keys as patch merge key",
)
def patch_strategy(place: Place, kind: LintedKind) -> Iterator[str]:
    """List type and patch strategy agree."""
    merge = place.value.merge
    if not isinstance(place.target.type, ListOf) or place.in_metadata:
        return
    name, merges = place.shown, PatchStrategy.MERGE in merge.patch_strategy
    if merge.list_type is ListType.MAP and not merges:
        yield f'map list "{name}" has no patch strategy merge'
    elif merge.list_type is ListType.MAP and merge.patch_merge_key not in merge.list_map_keys:
        yield f'patch merge key "{merge.patch_merge_key}" of "{name}" is not among its list map keys'
    elif merge.list_type_declared and merge.list_type is ListType.ATOMIC and merges:
        yield f'"{name}" is atomic for server-side apply but merged by strategic merge'


@place_rule(
    "L226 item-required",
    severity=Severity.NOTE,
    why="An item of which nothing is required may be empty, and reads in YAML as a bare dash that means nothing.",
    source=f"{CONVENTIONS}: Optional vs. required",
    hint="require at least the field that tells items apart",
)
def item_required(place: Place, kind: LintedKind) -> Iterator[str]:
    """Items of a list require at least one field."""
    node = place.target.type
    body = _struct(node.items, kind) if isinstance(node, ListOf) else None
    if not isinstance(node, ListOf) or body is None or place.value.merge.list_type is ListType.MAP:
        return
    if body.fields and not _is_told(node.items, kind) and not any(f.required for f in body.fields):
        yield f'items of "{place.shown}" require no field'


def _struct(value: Value, kind: LintedKind) -> Struct | None:
    if isinstance(value.type, Ref):
        name = value.type.name
        found = next((d for d in kind.api.definitions if d.name == name), None)
        return struct_of(found.value) if found is not None else None
    return struct_of(value)


def _is_told(value: Value, kind: LintedKind) -> bool:
    """Whether rules bound a value: its own, or those of the definition that it refers to."""
    name = value.type.name if isinstance(value.type, Ref) else ""
    found = next((d.value for d in kind.api.definitions if d.name == name), value)
    given = (value.constraints, found.constraints)
    return any(g.one_of or g.any_of or g.all_of or g.rules or g.min_properties for g in given)


def _is_object(value: Value, kind: LintedKind) -> bool:
    return _struct(value, kind) is not None
