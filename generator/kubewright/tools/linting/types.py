"""L2: types, bounds and merge rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.merge import ListType, PatchStrategy
from kubewright.ir.types import (
    Absent,
    IntOrString,
    ListOf,
    MapOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Value,
)
from kubewright.tools.linting.places import Place, struct_of
from kubewright.tools.linting.rule import BOTH, CONVENTIONS, CRD, CRD_DOCS, NATIVE, Kind, place_rule

SAFE_INTEGER: Final = 2**53
# Formats that apiextensions validates, and the number formats that code generators know.
KNOWN_FORMATS: Final = frozenset(
    "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn "
    "hexcolor rgbcolor byte password date duration date-time datetime int32 int64 float double int-or-string "
    "k8s-short-name k8s-long-name quantity".split()
)
_ENUM_WORD: Final = re.compile(r"[A-Z][A-Za-z0-9]*|")


@place_rule(
    "L201", "no-floats-in-spec", Severity.WARNING, BOTH,
    why="Floating point numbers do not survive the way through JSON in every language, and cannot be compared.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use a resource quantity, or an integer of a smaller unit",
)  # fmt: skip
def no_floats_in_spec(place: Place, kind: Kind) -> Iterator[str]:
    """No floating point numbers in spec."""
    if place.in_spec and _primitive(place) is Primitive.NUMBER:
        yield f'"{place.shown}" is a floating point number'


@place_rule(
    "L202", "no-floats", Severity.NOTE, BOTH,
    why="Floating point numbers do not survive the way through JSON in every language, and cannot be compared.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use a resource quantity, or an integer of a smaller unit",
)  # fmt: skip
def no_floats(place: Place, kind: Kind) -> Iterator[str]:
    """No floating point numbers elsewhere either."""
    if not place.in_spec and not place.in_metadata and _primitive(place) is Primitive.NUMBER:
        yield f'"{place.shown}" is a floating point number'


@place_rule(
    "L203", "no-unsigned", Severity.WARNING, BOTH,
    why="Many languages have no unsigned integers, and a minimum says the same.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use int32 or int64 with minimum: 0",
)  # fmt: skip
def no_unsigned(place: Place, kind: Kind) -> Iterator[str]:
    """No unsigned integer formats."""
    node = place.target.type
    if isinstance(node, Scalar) and node.format.startswith("uint"):
        yield f'"{place.shown}" has the unsigned format {node.format}'


@place_rule(
    "L204", "safe-integers", Severity.NOTE, BOTH,
    why="JavaScript and many JSON parsers hold integers exactly only to 2^53.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="bound it by maximum: 9007199254740992 or less, or use a string",
)  # fmt: skip
def safe_integers(place: Place, kind: Kind) -> Iterator[str]:
    """int64 stays within 2^53."""
    node = place.target.type
    limit = place.value.constraints.maximum
    if isinstance(node, Scalar) and node.format == "int64" and (limit is None or limit > SAFE_INTEGER):
        if place.name not in ("observedGeneration", "generation") and not place.in_metadata:
            yield f'"{place.shown}" may be above 2^53'


@place_rule(
    "L205", "number-bounds", Severity.NOTE, CRD,
    why="A number without bounds is accepted where it makes no sense, and bounds cannot be tightened later.",
    source=f"{CONVENTIONS}: Primitive types; Validation",
    hint="set minimum and maximum",
)  # fmt: skip
def number_bounds(place: Place, kind: Kind) -> Iterator[str]:
    """Numbers of a spec are bounded on both sides."""
    node, limits = place.target.type, place.value.constraints
    if place.in_spec and isinstance(node, Scalar) and node.primitive in (Primitive.INTEGER, Primitive.NUMBER):
        missing = [n for n, v in (("minimum", limits.minimum), ("maximum", limits.maximum)) if v is None]
        if missing and not limits.enum:
            yield f'"{place.shown}" has no {" and no ".join(missing)}'


@place_rule(
    "L206", "enum-form", Severity.WARNING, BOTH,
    why="Values of string enums are CamelCase words, as kinds are: that is what users expect to type.",
    source=f"{CONVENTIONS}: Constants",
    hint="write values in CamelCase with an initial capital",
)  # fmt: skip
def enum_form(place: Place, kind: Kind) -> Iterator[str]:
    """Enum values are CamelCase."""
    for value in place.value.constraints.enum:
        if isinstance(value, str) and not _ENUM_WORD.fullmatch(value):
            yield f'enum value "{value}" of "{place.shown}" is not CamelCase'


@place_rule(
    "L207", "boolean-with-care", Severity.NOTE, BOTH,
    why="A boolean can never have a third value; most turn out to need one.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="consider a string enum",
)  # fmt: skip
def boolean_with_care(place: Place, kind: Kind) -> Iterator[str]:
    """Booleans in a spec are rare."""
    if place.in_spec and place.name and _primitive(place) is Primitive.BOOLEAN:
        yield f'"{place.name}" is a boolean'


@place_rule(
    "L208", "lists-over-maps", Severity.WARNING, BOTH,
    why="Lists of named objects keep their order, validate each name, and read the same in every tool.",
    source=f"{CONVENTIONS}: Lists of named subobjects preferred over maps",
    hint="use a list with x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [name]",
)  # fmt: skip
def lists_over_maps(place: Place, kind: Kind) -> Iterator[str]:
    """No maps of objects."""
    node = place.target.type
    if isinstance(node, MapOf) and _is_object(node.values, kind):
        yield f'"{place.shown}" is a map of objects'


@place_rule(
    "L209", "list-type", Severity.WARNING, BOTH,
    why="Without a list type server-side apply treats the list as one value: two appliers cannot share it, and"
    " declaring it later changes who owns what.",
    source=f"{CONVENTIONS}: Lists; KEP-555 (server-side apply)",
    hint="set x-kubernetes-list-type to atomic, set or map",
)  # fmt: skip
def list_type(place: Place, kind: Kind) -> Iterator[str]:
    """Every list says how it merges."""
    if isinstance(place.target.type, ListOf) and not place.in_metadata:
        merge = place.value.merge
        if not merge.list_type_declared and not merge.patch_strategy:
            yield f'list "{place.shown}" has no x-kubernetes-list-type'


@place_rule(
    "L210", "list-map-keys", Severity.WARNING, BOTH,
    why="An item without its key can neither be found nor be told apart.",
    source="KEP-555 (server-side apply); structural schema rules",
    hint="make each key required or give it a default",
)  # fmt: skip
def list_map_keys(place: Place, kind: Kind) -> Iterator[str]:
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
    "L211", "set-of-objects", Severity.WARNING, BOTH,
    why="Items of a set are compared whole: changing a field of one makes another item of it.",
    source="KEP-555 (server-side apply)",
    hint="use list-type map with keys",
)  # fmt: skip
def set_of_objects(place: Place, kind: Kind) -> Iterator[str]:
    """Sets hold scalars."""
    node = place.target.type
    if (
        isinstance(node, ListOf)
        and place.value.merge.list_type is ListType.SET
        and _is_object(node.items, kind)
    ):
        yield f'"{place.shown}" is a set of objects'


@place_rule(
    "L212", "patch-strategy", Severity.WARNING, NATIVE,
    why="kubectl's strategic merge and server-side apply would merge the same list by different rules.",
    source=f"{CONVENTIONS}: Lists of named subobjects; KEP-555",
    hint="give a map list patch strategy merge and one of its keys as patch merge key",
)  # fmt: skip
def patch_strategy(place: Place, kind: Kind) -> Iterator[str]:
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
    "L213", "nullable", Severity.NOTE, BOTH,
    why="null is one more state that every client must handle; absence says the same.",
    source=f"{CONVENTIONS}: Optional vs. required; {CRD_DOCS}: Nullable",
    hint="drop nullable unless null means something that absence does not",
)  # fmt: skip
def nullable(place: Place, kind: Kind) -> Iterator[str]:
    """Nothing is nullable without need."""
    if place.value.nullable:
        yield f'"{place.shown}" is nullable'


@place_rule(
    "L214", "object-reference", Severity.WARNING, BOTH,
    why="core/v1 ObjectReference has fields that hardly any user of it honours.",
    source=f"{CONVENTIONS}: Object references",
    hint="declare a struct of your own with just the fields that are used",
)  # fmt: skip
def object_reference(place: Place, kind: Kind) -> Iterator[str]:
    """core/v1 ObjectReference is not reused."""
    node = place.value.type
    if isinstance(node, Ref) and node.name.endswith("core.v1.ObjectReference"):
        yield f'"{place.shown}" reuses core/v1 ObjectReference'
        return
    body = struct_of(place.value)
    if body is not None and {f.wire_name for f in body.fields} >= _OBJECT_REFERENCE:
        yield f'"{place.shown}" copies core/v1 ObjectReference whole'


_OBJECT_REFERENCE: Final = {"apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"}


@place_rule(
    "L215", "untyped", Severity.NOTE, BOTH,
    why="What has no schema is neither validated nor defaulted, and apply can only guess how to merge it.",
    source=f"{CRD_DOCS}: Controlling pruning",
    hint="describe it, or say in the description what reads it",
)  # fmt: skip
def untyped(place: Place, kind: Kind) -> Iterator[str]:
    """Untyped parts are rare."""
    node = place.target.type
    body = struct_of(place.target)
    if isinstance(node, RawJson) or (body is not None and body.preserve_unknown):
        yield f'"{place.shown}" accepts any fields'


@place_rule(
    "L216", "int-or-string", Severity.NOTE, BOTH,
    why="A union of number and string is hard on typed clients; it pays only where both forms are idiomatic.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="keep it for counts that may be percentages and for ports that may be names",
)  # fmt: skip
def int_or_string(place: Place, kind: Kind) -> Iterator[str]:
    """int-or-string is for counts with percentages and for ports."""
    idiomatic = re.search(
        r"(max|min|port|percent|surge|unavailable|available|partition)", place.name, re.IGNORECASE
    )
    if isinstance(place.target.type, IntOrString) and not idiomatic:
        yield f'"{place.shown}" is an integer or a string'


@place_rule(
    "L217", "known-format", Severity.WARNING, CRD,
    why="A format that the server does not know is silently not checked.",
    source=f"{CRD_DOCS}: Validation",
    hint="use a known format, or a pattern",
)  # fmt: skip
def known_format(place: Place, kind: Kind) -> Iterator[str]:
    """Formats are ones that are checked."""
    node = place.value.type
    if isinstance(node, Scalar) and node.format and node.format not in KNOWN_FORMATS:
        if not node.format.startswith("uint"):
            yield f'format "{node.format}" of "{place.shown}" is not checked by the server'


@place_rule(
    "L218", "required-with-default", Severity.WARNING, BOTH,
    why="A defaulted field is never absent when it is validated, so requiring it says nothing and misleads readers.",
    source=f"{CONVENTIONS}: Optional vs. required; Defaulting",
    hint="drop it from required, or drop the default",
)  # fmt: skip
def required_with_default(place: Place, kind: Kind) -> Iterator[str]:
    """A field is required or defaulted, not both."""
    if place.required and place.name and not isinstance(place.value.default, Absent):
        yield f'"{place.name}" is required and has a default'


@place_rule(
    "L219", "anchored-pattern", Severity.NOTE, CRD,
    why="A pattern that is not anchored accepts anything around what it describes.",
    source="JSON Schema: patterns are searched for, not matched whole",
    hint="begin with ^ and end with $",
)  # fmt: skip
def anchored_pattern(place: Place, kind: Kind) -> Iterator[str]:
    """Patterns are anchored on both sides."""
    pattern = place.value.constraints.pattern
    if pattern and not (
        pattern.lstrip("(").startswith(("^", "\\A")) and pattern.rstrip(")").endswith(("$", "\\z"))
    ):
        yield f'pattern "{pattern}" of "{place.shown}" is not anchored'


@place_rule(
    "L220", "impossible-bounds", Severity.ERROR, BOTH,
    why="No value satisfies both bounds.",
    source="JSON Schema: validation keywords",
    hint="swap or correct the bounds",
)  # fmt: skip
def impossible_bounds(place: Place, kind: Kind) -> Iterator[str]:
    """Lower bounds are not above upper bounds."""
    limits = place.value.constraints
    pairs = [
        ("minimum", limits.minimum, "maximum", limits.maximum),
        ("minLength", limits.min_length, "maxLength", limits.max_length),
        ("minItems", limits.min_items, "maxItems", limits.max_items),
        ("minProperties", limits.min_properties, "maxProperties", limits.max_properties),
    ]
    for low_name, low, high_name, high in pairs:
        if low is not None and high is not None and low > high:
            yield f'{low_name} {low} of "{place.shown}" is above {high_name} {high}'


@place_rule(
    "L221", "enum-default", Severity.ERROR, BOTH,
    why="Every object that leaves the field out is refused.",
    source="JSON Schema: enum; structural schema rules",
    hint="choose a default from the enum",
)  # fmt: skip
def enum_default(place: Place, kind: Kind) -> Iterator[str]:
    """A default is a member of its enum."""
    value, members = place.value.default, place.value.constraints.enum
    if members and not isinstance(value, Absent) and value not in members:
        yield f'default {value!r} of "{place.shown}" is not in its enum'


@place_rule(
    "L222", "bounded-size", Severity.NOTE, CRD,
    why="Sizes without a limit let one object fill etcd, and make CEL rules over them too expensive to accept.",
    source=f"{CRD_DOCS}: Resource use by validation functions",
    hint="set maxLength, maxItems or maxProperties",
)  # fmt: skip
def bounded_size(place: Place, kind: Kind) -> Iterator[str]:
    """Strings, lists and maps of a spec have a largest size."""
    if not place.in_spec:
        return
    node, limits, name = place.target.type, place.value.constraints, place.shown
    if isinstance(node, ListOf) and limits.max_items is None:
        yield f'list "{name}" has no maxItems'
    elif isinstance(node, MapOf) and limits.max_properties is None:
        yield f'map "{name}" has no maxProperties'
    elif isinstance(node, Scalar) and node.primitive is Primitive.STRING:
        if limits.max_length is None and not limits.enum and not node.format:
            yield f'string "{name}" has no maxLength'


@place_rule(
    "L223", "union-members", Severity.WARNING, BOTH,
    why="A required member of a union is no alternative: the other members can never be chosen.",
    source=f"{CONVENTIONS}: Unions",
    hint="make members optional, and let oneOf or the discriminator require one",
)  # fmt: skip
def union_members(place: Place, kind: Kind) -> Iterator[str]:
    """Members of a union are optional."""
    body = struct_of(place.target)
    if body is None:
        return
    members = {
        name
        for branch in place.target.constraints.one_of
        if isinstance(branch, dict)
        and isinstance(branch.get("required"), list)
        and len(branch["required"]) == 1
        for name in branch["required"]
    }
    for field in body.fields:
        if field.wire_name in members and field.required:
            yield f'union member "{field.wire_name}" of "{place.shown}" is required'


@place_rule(
    "L224", "union-discriminator", Severity.NOTE, BOTH,
    why="With a discriminator a client knows the chosen member without trying them all, and a cleared one is noticed.",
    source=f"{CONVENTIONS}: Unions; KEP-1027",
    hint="add a required enum such as `type` that names the chosen member",
)  # fmt: skip
def union_discriminator(place: Place, kind: Kind) -> Iterator[str]:
    """A union of structs has a discriminator."""
    body, branches = struct_of(place.target), place.target.constraints.one_of
    if body is None or len(branches) < 2:
        return
    single = [b for b in branches if isinstance(b, dict) and len(b.get("required") or ()) == 1]
    enums = [f for f in body.fields if f.value.constraints.enum]
    if len(single) == len(branches) and not enums:
        yield f'union "{place.shown}" has no discriminator'


@place_rule(
    "L225", "plain-secret", Severity.WARNING, BOTH,
    why="Whoever may read the object may then read the secret; it lands in backups, logs and `kubectl get -o yaml`.",
    source=f"{CONVENTIONS}: Object references (secrets are referred to, never embedded)",
    hint="refer to a key of a Secret instead",
)  # fmt: skip
def plain_secret(place: Place, kind: Kind) -> Iterator[str]:
    """Secrets are referred to, never written into a spec."""
    if place.in_spec and _primitive(place) is Primitive.STRING and _SECRET.match(place.name):
        yield f'"{place.name}" looks like a secret in plain text'


_SECRET: Final = re.compile(
    r"(password|passphrase|.*Password|.*Passphrase|apiKey|privateKey|.*PrivateKey|clientSecret|accessToken|"
    r"bearerToken|secretAccessKey)$"
)


def _primitive(place: Place) -> Primitive | None:
    node = place.target.type
    return node.primitive if isinstance(node, Scalar) else None


def _struct(value: Value, kind: Kind) -> Struct | None:
    if isinstance(value.type, Ref):
        name = value.type.name
        found = next((d for d in kind.api.definitions if d.name == name), None)
        return struct_of(found.value) if found is not None else None
    return struct_of(value)


def _is_object(value: Value, kind: Kind) -> bool:
    return _struct(value, kind) is not None
