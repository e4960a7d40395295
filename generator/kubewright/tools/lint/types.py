"""L2: types (``bounds`` holds what a value may be besides its type, ``lists`` how lists merge)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.types import (
    EmbeddedObject,
    IntOrString,
    Primitive,
    RawJson,
    Ref,
    Scalar,
)
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import CONVENTIONS, CRD, CRD_DOCS, LintedKind, place_rule

SAFE_INTEGER: Final = 2**53
# Formats that apiextensions validates, and the number formats that code generators know.
KNOWN_FORMATS: Final = frozenset(
    "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn "
    "hexcolor rgbcolor byte password date duration date-time datetime int32 int64 float double int-or-string "
    "k8s-short-name k8s-long-name quantity".split()
)
_OF_OTHERS: Final = re.compile(r"^(group|apiGroup|apiVersion)$|[vV]ersion$")
"""Fields whose values are names that others gave."""
_KEY_USAGES: Final = frozenset(
    {
        "signing", "digital signature", "content commitment", "key encipherment", "key agreement", "data encipherment",
        "cert sign", "crl sign", "encipher only", "decipher only", "any", "server auth", "client auth", "code signing",
        "email protection", "s/mime", "ipsec end system", "ipsec tunnel", "ipsec user", "timestamping", "ocsp signing",
        "microsoft sgc", "netscape sgc",
    }
)  # fmt: skip
"""The values of certificates/v1 KeyUsage."""
_ENUM_WORD: Final = re.compile(r"[A-Z][A-Za-z0-9]*|")
_NAME_OF_OTHERS: Final = re.compile(r"[ ./:]")
"""In a value that is a name which somebody else gave: types of CloudEvents, titles, paths, media types."""


@place_rule(
    "L201 no-floats-in-spec",
    why="Floating point numbers do not survive the way through JSON in every language, and cannot be compared.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use a resource quantity, or an integer of a smaller unit",
)
def no_floats_in_spec(place: Place, kind: LintedKind) -> Iterator[str]:
    """No floating point numbers in spec."""
    if place.in_spec and place.primitive is Primitive.NUMBER:
        yield f'"{place.shown}" is a floating point number'


@place_rule(
    "L202 no-floats",
    severity=Severity.NOTE,
    why="Floating point numbers do not survive the way through JSON in every language, and cannot be compared.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use a resource quantity, or an integer of a smaller unit",
)
def no_floats(place: Place, kind: LintedKind) -> Iterator[str]:
    """No floating point numbers elsewhere either."""
    if not place.in_spec and not place.in_metadata and place.primitive is Primitive.NUMBER:
        yield f'"{place.shown}" is a floating point number'


@place_rule(
    "L203 no-unsigned",
    why="Many languages have no unsigned integers, and a minimum says the same.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="use int32 or int64 with minimum: 0",
)
def no_unsigned(place: Place, kind: LintedKind) -> Iterator[str]:
    """No unsigned integer formats."""
    node = place.target.type
    if isinstance(node, Scalar) and node.format.startswith("uint"):
        yield f'"{place.shown}" has the unsigned format {node.format}'


@place_rule(
    "L204 safe-integers",
    severity=Severity.NOTE,
    why="JavaScript and many JSON parsers hold integers exactly only to 2^53.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="bound it by maximum: 9007199254740992 or less, or use a string",
)
def safe_integers(place: Place, kind: LintedKind) -> Iterator[str]:
    """int64 stays within 2^53."""
    node = place.target.type
    limit = place.value.constraints.maximum
    if isinstance(node, Scalar) and node.format == "int64" and (limit is None or limit > SAFE_INTEGER):
        if place.name not in ("observedGeneration", "generation") and not place.in_metadata:
            yield f'"{place.shown}" may be above 2^53'


@place_rule(
    "L206 enum-form",
    why="Values of string enums are CamelCase words, as kinds are: that is what users expect to type.",
    source=f"{CONVENTIONS}: Constants",
    hint="write values in CamelCase with an initial capital",
)
def enum_form(place: Place, kind: LintedKind) -> Iterator[str]:
    """Enum values are CamelCase."""
    if _OF_OTHERS.search(place.name):
        return
    values = place.value.constraints.enum
    if _KEY_USAGES.issuperset(values) or all(
        str(v).lower() in ("true", "false") or str(v).isdigit() for v in values
    ):
        return  # Kubernetes' own words; L232 tells of the others
    for value in values:
        if not isinstance(value, str) or _NAME_OF_OTHERS.search(value):
            continue
        if not _ENUM_WORD.fullmatch(value):
            yield f'enum value "{value}" of "{place.shown}" is not CamelCase'


@place_rule(
    "L207 boolean-with-care",
    severity=Severity.NOTE,
    why="A boolean can never have a third value; most turn out to need one.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="consider a string enum",
)
def boolean_with_care(place: Place, kind: LintedKind) -> Iterator[str]:
    """Booleans in a spec are rare."""
    if place.in_spec and place.name and place.primitive is Primitive.BOOLEAN:
        yield f'"{place.name}" is a boolean'


@place_rule(
    "L213 nullable",
    severity=Severity.NOTE,
    why="null is one more state that every client must handle; absence says the same.",
    source=f"{CONVENTIONS}: Optional vs. required; {CRD_DOCS}: Nullable",
    hint="drop nullable unless null means something that absence does not",
)
def nullable(place: Place, kind: LintedKind) -> Iterator[str]:
    """Nothing is nullable without need."""
    if place.value.nullable:
        yield f'"{place.shown}" is nullable'


@place_rule(
    "L215 untyped",
    severity=Severity.NOTE,
    why="What has no schema is neither validated nor defaulted, and apply can only guess how to merge it.",
    source=f"{CRD_DOCS}: Controlling pruning",
    hint="describe it, or say in the description what reads it",
)
def untyped(place: Place, kind: LintedKind) -> Iterator[str]:
    """Untyped parts are rare."""
    node = place.target.type
    body = struct_of(place.target)
    if isinstance(node, EmbeddedObject):
        return  # an object of any kind, which says itself what it is
    own = place.value.type
    if (
        isinstance(node, RawJson)
        and node.object_only
        and isinstance(own, Ref)
        and not own.name.endswith(_RAW)
    ):
        return  # a struct of the API that has no fields yet
    if isinstance(node, RawJson) or (body is not None and body.preserve_unknown):
        yield f'"{place.shown}" accepts any fields'


_RAW: Final = (".RawExtension", ".FieldsV1")


@place_rule(
    "L216 int-or-string",
    severity=Severity.NOTE,
    why="A union of number and string is hard on typed clients; it pays only where both forms are idiomatic.",
    source=f"{CONVENTIONS}: Primitive types",
    hint="keep it for counts that may be percentages and for ports that may be names",
)
def int_or_string(place: Place, kind: LintedKind) -> Iterator[str]:
    """int-or-string is for counts with percentages and for ports."""
    idiomatic = re.search(
        r"(max|min|port|percent|surge|unavailable|available|partition)", place.name, re.IGNORECASE
    )
    is_quantity = "[KMGTPE]i" in place.value.constraints.pattern  # as generators write a resource quantity
    if isinstance(place.target.type, IntOrString) and not idiomatic and not is_quantity:
        yield f'"{place.shown}" is an integer or a string'


@place_rule(
    "L217 known-format",
    profiles=CRD,
    why="A format that the server does not know is silently not checked.",
    source=f"{CRD_DOCS}: Validation",
    hint="use a known format, or a pattern",
)
def known_format(place: Place, kind: LintedKind) -> Iterator[str]:
    """Formats are ones that are checked."""
    node = place.value.type
    if isinstance(node, Scalar) and node.format and node.format not in KNOWN_FORMATS:
        if not node.format.startswith("uint"):
            yield f'format "{node.format}" of "{place.shown}" is not checked by the server'


@place_rule(
    "L223 union-members",
    why="A required member of a union is no alternative: the other members can never be chosen.",
    source=f"{CONVENTIONS}: Unions",
    hint="make members optional, and let oneOf or the discriminator require one",
)
def union_members(place: Place, kind: LintedKind) -> Iterator[str]:
    """Members of a union are optional."""
    body = struct_of(place.target)
    if body is None:
        return
    members = {
        name
        for branch in place.one_of
        if isinstance(branch, dict)
        and isinstance(branch.get("required"), list)
        and len(branch["required"]) == 1
        for name in branch["required"]
    }
    for field in body.fields:
        if field.wire_name in members and field.required:
            yield f'union member "{field.wire_name}" of "{place.shown}" is required'


@place_rule(
    "L224 union-discriminator",
    severity=Severity.NOTE,
    why="With a discriminator a client knows the chosen member without trying them all, and a cleared one is noticed.",
    source=f"{CONVENTIONS}: Unions; KEP-1027",
    hint="add a required enum such as `type` that names the chosen member",
)
def union_discriminator(place: Place, kind: LintedKind) -> Iterator[str]:
    """A union of structs has a discriminator."""
    body, branches = struct_of(place.target), place.one_of
    if body is None or len(branches) < 2:
        return
    single = [b for b in branches if isinstance(b, dict) and len(b.get("required") or ()) == 1]
    enums = [f for f in body.fields if f.value.constraints.enum]
    if len(single) == len(branches) and not enums:
        yield f'union "{place.shown}" has no discriminator'


@place_rule(
    "L229 integer-format",
    severity=Severity.NOTE,
    why="How large an integer may be is read from its format; without one clients and servers choose differently.",
    source=f"{CONVENTIONS}: Primitive types (int32 and int64 only)",
    hint="set format to int32 or int64",
)
def integer_format(place: Place, kind: LintedKind) -> Iterator[str]:
    """Integers are int32 or int64."""
    node = place.value.type
    if not isinstance(node, Scalar) or node.primitive is not Primitive.INTEGER:
        return
    if not node.format and not place.value.constraints.enum:
        yield f'integer "{place.shown}" has no format'
    elif node.format and node.format not in ("int32", "int64") and not node.format.startswith("uint"):
        yield f'integer "{place.shown}" has the format {node.format}'
