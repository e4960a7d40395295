"""L1: names, as people and generators in every language will meet them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.api import Api, Resource
from kubewright.ir.types import Duration, ListOf, MicroTime, Primitive, Ref, Scalar, Time
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import (
    CONVENTIONS,
    CRD,
    CRD_DOCS,
    LintedKind,
    api_rule,
    kind_rule,
    place_rule,
)

_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_PLURAL: Final = re.compile(r"[a-z][a-z0-9]*")
_JSON_NAME: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_BUILT_IN_SHORT_NAMES: Final = frozenset(
    "cm cs csr cj crd crds deploy ds ep ev hpa ing limits netpol no ns pc pdb po pv pvc quota rc rs sa sc sts svc "
    "vac va".split()
)
_ACRONYMS: Final = frozenset(
    "Acl Api Arn Ascii Cidr Cpu Css Dns Eof Gid Gpu Grpc Guid Html Http Https Id Ip Jwt Oidc Qos Ram Rbac Rpc Sla "
    "Smtp Sql Ssh Tcp Tls Ttl Udp Ui Uid Uri Url Utf Uuid Vm Vpc Xml".split()
)
_SEGMENT: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_APPROVED: Final = "api-approved.kubernetes.io"
# Words that say of which things there are several without being plurals: envFrom, reservedFor, setHeaders' set.
_PLURAL_ENOUGH: Final = re.compile(
    r"(s|data|info|[^a-z]|From|For|By|In|To|Of|With)$|^(add|drop|remove|set|all|any|from)$"
)
_TIMED: Final = re.compile(
    r"(timeout|interval|period|delay|duration|ttl|expiry|deadline|backoff|wait)$", re.IGNORECASE
)

_SPAN: Final = re.compile(r"(timeout|interval|period|delay|duration|ttl)$", re.IGNORECASE)


@api_rule(
    "L101 group-name",
    severity=Severity.ERROR,
    why="A group is a DNS subdomain that its owner controls, so that no two owners meet in one cluster.",
    source=f"{CONVENTIONS}: Naming conventions; {CRD_DOCS}: spec.group",
    hint="use a lower-case subdomain of a domain you own, such as `queues.example.com`",
)
def group_name(api: Api) -> Iterator[tuple[Resource, str]]:
    """Groups are lower-case DNS subdomains of at least two labels."""
    for resource in api.resources:
        if resource.group and not _GROUP.fullmatch(resource.group) and resource.group not in _OLD_GROUPS:
            yield resource, f'group "{resource.group}" is not a lower-case DNS subdomain'


_OLD_GROUPS: Final = frozenset({"apps", "autoscaling", "batch", "extensions", "policy"})


@api_rule(
    "L102 group-reserved",
    severity=Severity.NOTE,
    profiles=CRD,
    why="*.k8s.io and *.kubernetes.io belong to the Kubernetes project; a CRD there needs its approval annotation.",
    source=f"{CRD_DOCS}: protected groups (KEP-1111)",
    hint="use a domain of your own, or set api-approved.kubernetes.io to the review's URL",
)
def group_reserved(api: Api) -> Iterator[tuple[Resource, str]]:
    """Custom resources stay out of the protected groups, unless they are approved."""
    for resource in api.resources:
        manifest = resource.manifest if isinstance(resource.manifest, dict) else {}
        annotations = manifest.get("annotations")
        if isinstance(annotations, dict) and str(annotations.get(_APPROVED, "")).startswith("https://"):
            continue
        if f".{resource.group}".endswith((".k8s.io", ".kubernetes.io")):
            yield resource, f'group "{resource.group}" is protected'


@api_rule(
    "L103 version-form",
    severity=Severity.ERROR,
    why="Clients order versions by this form and read the stability level from it.",
    source=f"{CONVENTIONS}: API versioning",
    hint="use v1alpha1, v1beta1, v1, v2, …",
)
def version_form(api: Api) -> Iterator[tuple[Resource, str]]:
    """Versions read v1, v1beta2, v2alpha1."""
    for resource in api.resources:
        if not _VERSION.fullmatch(resource.version):
            yield resource, f'version "{resource.version}" does not say its stability level'


@api_rule(
    "L104 kind-form",
    severity=Severity.ERROR,
    why="A kind is a singular noun in CamelCase; generators make it a class name.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="write it as one CamelCase noun, acronyms in capitals",
)
def kind_form(api: Api) -> Iterator[tuple[Resource, str]]:
    """Kinds are CamelCase."""
    for resource in api.resources:
        if not _KIND.fullmatch(resource.kind):
            yield resource, f'kind "{resource.kind}" is not CamelCase'


@api_rule(
    "L105 kind-singular",
    why="A kind names one object; its resource names the collection.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="use the singular for the kind and the plural for the resource",
)
def kind_singular(api: Api) -> Iterator[tuple[Resource, str]]:
    """A kind is not the word that its plural is."""
    for resource in api.resources:
        if resource.kind.lower() == resource.plural and resource.plural.endswith("s"):
            yield resource, f'kind "{resource.kind}" is the plural "{resource.plural}"'


@api_rule(
    "L106 plural-form",
    severity=Severity.ERROR,
    why="The plural is a part of every URL, and most tools cannot write anything but lower-case letters and digits.",
    source=f"{CONVENTIONS}: Resources; {CRD_DOCS}: spec.names.plural",
    hint="lower-case letters and digits only, beginning with a letter",
)
def plural_form(api: Api) -> Iterator[tuple[Resource, str]]:
    """Plurals are lower-case words."""
    for resource in api.resources:
        if not _PLURAL.fullmatch(resource.plural):
            yield (
                resource,
                f'plural "{resource.plural}" has other characters than lower-case letters and digits',
            )


@api_rule(
    "L107 singular-is-kind",
    why="kubectl accepts the singular where people type the kind: they expect the same word.",
    source=f"{CRD_DOCS}: spec.names.singular",
    hint="leave the singular out, or make it the kind in lower case",
)
def singular_is_kind(api: Api) -> Iterator[tuple[Resource, str]]:
    """The singular is the kind in lower case."""
    for resource in api.resources:
        if resource.singular and resource.singular != resource.kind.lower():
            yield resource, f'singular "{resource.singular}" is not "{resource.kind.lower()}"'


@api_rule(
    "L108 list-kind",
    why="Clients find the list's kind by adding List.",
    source=f"{CONVENTIONS}: Lists and simple kinds",
    hint="leave listKind out, or make it the kind followed by List",
)
def list_kind(api: Api) -> Iterator[tuple[Resource, str]]:
    """The list kind is the kind followed by List."""
    for resource in api.resources:
        if resource.list_kind and resource.list_kind != f"{resource.kind}List":
            yield resource, f'list kind "{resource.list_kind}" is not "{resource.kind}List"'


@api_rule(
    "L109 short-names",
    profiles=CRD,
    why="A short name that a built-in kind has is shadowed by it or shadows it, depending on the order of discovery.",
    source=f"{CRD_DOCS}: spec.names.shortNames",
    hint="choose another short name, in lower case",
)
def short_names(api: Api) -> Iterator[tuple[Resource, str]]:
    """Short names are lower case, and not those of other kinds."""
    taken: dict[str, str] = {}
    for resource in api.resources:
        owner = f"{resource.plural}.{resource.group}"
        for name in resource.short_names:
            if name in _BUILT_IN_SHORT_NAMES:
                yield resource, f'short name "{name}" is a built-in kind\'s'
            if taken.setdefault(name, owner) != owner:
                yield resource, f'short name "{name}" is also that of {taken[name]}'


@place_rule(
    "L110 json-name",
    severity=Severity.ERROR,
    why="JSON names are camelCase; other forms do not survive the way through generated code.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="begin with a lower-case letter, then letters and digits",
)
def json_name(place: Place, kind: LintedKind) -> Iterator[str]:
    """Field names are camelCase."""
    if place.name and not _JSON_NAME.fullmatch(place.name):
        yield f'field name "{place.name}" is not camelCase'


@place_rule(
    "L111 acronym-case",
    why="Acronyms keep one case: all lower at the start of a name, all upper elsewhere (httpGet, podIP).",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="write the acronym in capitals",
)
def acronym_case(place: Place, kind: LintedKind) -> Iterator[str]:
    """Acronyms inside a name are upper case."""
    for segment in _SEGMENT.findall(place.name)[1:]:
        if segment in _ACRONYMS:
            yield f'"{place.name}": the acronym {segment} should read {segment.upper()}'


@place_rule(
    "L112 boolean-prefix",
    why="A boolean's name is the condition itself; `is` and `has` add nothing.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="drop the prefix; ask first whether a boolean can grow with the API at all",
)
def boolean_prefix(place: Place, kind: LintedKind) -> Iterator[str]:
    """Booleans are not called isX or hasX."""
    if _is_scalar(place, Primitive.BOOLEAN) and re.match(r"(is|has)[A-Z]", place.name):
        yield f'boolean "{place.name}" begins with "{place.name[: 2 if place.name.startswith("is") else 3]}"'


@place_rule(
    "L113 time-name",
    why="A point in time is called fooTime; readers then know its form without looking.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="end the name with Time",
)
def time_name(place: Place, kind: LintedKind) -> Iterator[str]:
    """Points in time are called fooTime."""
    node = place.target.type
    is_time = isinstance(node, Time | MicroTime) or (isinstance(node, Scalar) and node.format == "date-time")
    may_be_one = is_time or (isinstance(node, Scalar) and node.primitive is not Primitive.BOOLEAN)
    if may_be_one and re.search(r"(^t|T)ime[Ss]tamp", place.name):
        yield f'"{place.name}" is called a time stamp, not a time'
    elif is_time and place.name and not place.name.endswith(("Time", "time")):
        yield f'"{place.name}" is a point in time but its name does not end in Time'


@place_rule(
    "L114 unit-suffix",
    why="A number without a unit in its name will be read in the wrong one.",
    source=f"{CONVENTIONS}: Units",
    hint="add the unit to the name, such as timeoutSeconds",
)
def unit_suffix(place: Place, kind: LintedKind) -> Iterator[str]:
    """Numbers that measure time say their unit."""
    numeric = _is_scalar(place, Primitive.INTEGER) or _is_scalar(place, Primitive.NUMBER)
    if numeric and _TIMED.search(place.name) and not _counts_hops(place):
        yield f'"{place.name}" is a number of what? Its name does not say the unit'


def _counts_hops(place: Place) -> bool:
    """Whether a TTL is that of IP packets, a byte."""
    ttl = place.name.lower().endswith("ttl")
    return ttl and (
        place.value.constraints.maximum == 255 or _HOPS.search(f"{place.name} {place.doc}") is not None
    )


_HOPS: Final = re.compile(
    r"\bhops?\b|hop(?=[A-Z])|\bhop limit\b|\b(IP|packet) (header|TTL)\b|multihop", re.IGNORECASE
)


@place_rule(
    "L115 duration-type",
    severity=Severity.NOTE,
    why="Durations as strings need a parser for Go's form in every language; whole numbers with a unit do not.",
    source=f"{CONVENTIONS}: Units",
    hint="use an integer whose name ends in its unit",
)
def duration_type(place: Place, kind: LintedKind) -> Iterator[str]:
    """Durations are whole numbers with a unit."""
    node = place.target.type
    told = isinstance(node, Duration) or (isinstance(node, Scalar) and node.format == "duration")
    named = _is_scalar(place, Primitive.STRING) and _SPAN.search(place.name)
    if told or (named and not place.value.constraints.enum):
        yield f'"{place.shown}" is a duration written as a string'


@place_rule(
    "L116 reference-name",
    why="A reference to an object is called fooRef where it is a struct, fooName where it is a name alone.",
    source=f"{CONVENTIONS}: Object references",
    hint="rename it to end in Ref (a struct) or Name (a string)",
)
def reference_name(place: Place, kind: LintedKind) -> Iterator[str]:
    """References end in Ref or Name."""
    if _is_scalar(place, Primitive.BOOLEAN) or (
        place.name == "reference"
        and _is_scalar(place, Primitive.STRING)  # of an image or a file, not of an object
    ):
        return
    if re.search(r"(Reference|^reference)s?(?![a-z])", place.name):
        short = place.name.replace("Reference", "Ref").replace("reference", "ref")
        yield f'"{place.name}" should be called "{short}"'
    elif place.name == "fieldRef":
        return  # of a field, by its path
    elif place.name.endswith("Ref") and _is_scalar(place, Primitive.STRING):
        yield f'"{place.name}" is a string: a name alone is called "{place.name[:-3]}Name"'


@place_rule(
    "L117 list-plural",
    severity=Severity.NOTE,
    why="The name of a list says that there may be several.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="use the plural",
)
def list_plural(place: Place, kind: LintedKind) -> Iterator[str]:
    """Lists have plural names."""
    if isinstance(place.target.type, ListOf) and place.name and not _PLURAL_ENOUGH.search(place.name):
        yield f'list "{place.name}" has a singular name'


@place_rule(
    "L118 stutter",
    severity=Severity.NOTE,
    why="A field that repeats its parent's name stutters in every expression that uses it.",
    source=f"{CONVENTIONS}: Naming conventions",
    hint="drop the repeated word",
)
def stutter(place: Place, kind: LintedKind) -> Iterator[str]:
    """A field does not begin with its parent's name."""
    parent = place.parent
    if parent is None or not parent.name or len(parent.name) < 4 or parent.path in ("spec", "status"):
        return
    if isinstance(place.value.type, Ref) or struct_of(place.target) is not None:
        return
    if place.name.startswith(parent.name) and place.name[len(parent.name) :][:1].isupper():
        yield f'"{place.path}" says "{parent.name}" twice'


@kind_rule(
    "L119 case-twins",
    why="Two names that differ in case alone cannot be told apart where case is lost, nor by a reader in a hurry.",
    source=f"{CONVENTIONS}: Naming conventions (JSON decoding of Go matches names without case)",
    hint="rename one of them",
)
def case_twins(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """No two fields of a struct differ in case alone."""
    seen: set[int] = set()
    for place in kind.places:
        owner = place.owner
        if owner is None or id(owner) in seen:
            continue
        seen.add(id(owner))
        names: dict[str, str] = {}
        for field in owner.fields:
            twin = names.setdefault(field.wire_name.lower(), field.wire_name)
            if twin != field.wire_name:
                yield place, f'"{twin}" and "{field.wire_name}" differ in case alone'


def _is_scalar(place: Place, primitive: Primitive) -> bool:
    node = place.target.type
    return isinstance(node, Scalar) and node.primitive is primitive and node.format != "date-time"
