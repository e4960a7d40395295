"""CustomResourceDefinition manifests of an API's resources: names, versions, subresources, columns, and the schemas.

What OpenAPI has no words for (short names, categories, columns, the paths of ``scale``) a definition says under
``x-kubewright-crd``, in the words of a CustomResourceDefinition's version and ``names``. Nothing leaves here that
``kubewright validate --strict`` refuses: each manifest is judged as it would be written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

from apimachinery.wire import yaml
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.emit.code.schemas import SchemaWriter
from kubewright.ir.api import Api, PrinterColumn, Resource, Subresource
from kubewright.ir.types import (
    Constraints,
    Definition,
    Field,
    Json,
    ListOf,
    MapOf,
    Primitive,
    Ref,
    Scalar,
    Struct,
    Value,
)
from kubewright.ir.versions import version_priority
from kubewright.ir.words import plural_of
from kubewright.location import Location
from kubewright.tools.crd.defaults import drop_refused_defaults
from kubewright.tools.crd.inlining import OBJECT_META, Inliner, UndefinableError
from kubewright.tools.crd.lowering import MARKER, Lowering
from kubewright.tools.validate.check import CheckOptions, judge
from kubewright.tools.validate.inputs import Chunk
from kubewright.tools.validate.kinds import Kinds

_STORED = {"create", "get", "list"}
_NAMES = ("plural", "singular", "kind", "listKind", "shortNames", "categories")
_OF_VERSION = (
    "served",
    "storage",
    "deprecated",
    "deprecationWarning",
    "subresources",
    "selectableFields",
    "additionalPrinterColumns",
)
_ROOT_WITH_STATUS = {
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "required", "properties", "externalDocs", "example", "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip
_STEP = re.compile(r"\.properties\[([^\]]*)\]|\.(?:items|additionalProperties)\b")
_NAME_COLUMN = PrinterColumn(name="Name", type="string", format="name", json_path=".metadata.name")


@dataclass(frozen=True, slots=True)
class DefinedKinds:
    """What to define: kinds and groups by name, all where none is named; ``storage`` is the version to store."""

    kinds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    storage: str = ""
    documentation: bool = True


@dataclass(frozen=True, slots=True)
class Manifest:
    """A finished manifest: the name of its file, its text, and what that says."""

    file: str
    text: str
    value: Json


def kinds_of(api: Api, selection: DefinedKinds) -> dict[tuple[str, str], list[Resource]]:
    """(group, kind) → its resources, most preferred version first, of what ``selection`` names."""
    found: dict[tuple[str, str], list[Resource]] = {}
    for resource in (*api.resources, *_implied(api)):
        if selection.kinds and resource.kind not in selection.kinds:
            continue
        if selection.groups and resource.group not in selection.groups:
            continue
        found.setdefault((resource.group, resource.kind), []).append(resource)
    for versions in found.values():
        versions.sort(key=lambda r: version_priority(r.version), reverse=True)
    return found


def _implied(api: Api) -> Iterator[Resource]:
    """Resources of kinds that no path serves: those with the marker, or all kinds if the description has no paths."""
    known = {resource.definition for resource in api.resources}
    for definition in api.definitions:
        said = dict(definition.value.extensions).get(MARKER)
        if definition.name in known or len(definition.kinds) != 1 or (api.resources and said is None):
            continue
        body = definition.value.type
        if isinstance(body, Struct) and any(f.value.type == Ref(OBJECT_META) for f in body.fields):
            group, version, kind = definition.kinds[0]
            status = any(f.wire_name == "status" for f in body.fields)
            yield Resource(
                group=group,
                version=version,
                kind=kind,
                plural=plural_of(kind),
                singular=kind.lower(),
                namespaced=True,
                verbs=tuple(sorted(_STORED)),
                definition=definition.name,
                location=definition.value.location,
                list_kind=f"{kind}List",
                subresources=(Subresource(name="status", verbs=()),) if status else (),
            )


def define(api: Api, selection: DefinedKinds, release: str, diagnostics: Diagnostics) -> list[Manifest]:
    """The manifests of the selected kinds. What a server of ``release`` would refuse is an error."""
    table = {definition.name: definition for definition in api.definitions}
    kinds = _load(release)
    written = []
    for (group, kind), resources in sorted(kinds_of(api, selection).items()):
        if not all(_STORED.issubset(resource.verbs) for resource in resources):
            what = f"{kind} of {group or 'the core group'} is not stored (it cannot be listed): no manifest"
            diagnostics.warning("K705", what, resources[0].location)
            continue
        try:
            crd = _manifest(resources, table, selection, diagnostics)
        except UndefinableError as error:
            diagnostics.error(
                "K704", f"{kind} cannot be a CustomResourceDefinition: {error}", resources[0].location
            )
            continue
        origin = PurePath(resources[0].location.file).name
        shown = json.dumps(origin)[1:-1]
        text = f"# Made by `kubewright crd` from {shown}: change that, not this.\n{yaml.encode(crd).decode()}"
        for finding in judge(Chunk("", 0, text.encode()), kinds, CheckOptions(strict=True)).findings:
            if finding.severity is Severity.ERROR:
                said = f"{kind}: a server refuses its manifest: {finding.message}"
                diagnostics.error("K706", said, _place(finding.message, resources, crd, table))
        written.append(Manifest(f"{group}_{crd['spec']['names']['plural']}.yaml", text, crd))
    return written


def _place(fault: str, resources: Sequence[Resource], crd: Json, table: Mapping[str, Definition]) -> Location:
    """Where a fault in the manifest is made: at the field whose schema it names, or at the kind."""
    head, _, way = fault.partition("openAPIV3Schema")
    number = re.search(r"versions\[(\d+)\]", head)
    version = crd["spec"]["versions"][int(number[1])]["name"] if number else resources[0].version
    resource = next((each for each in resources if each.version == version), resources[0])
    return _field_place(resource, [found[1] or "[]" for found in _STEP.finditer(way)], table)


def _field_place(resource: Resource, steps: Iterable[str], table: Mapping[str, Definition]) -> Location:
    """The place of a field below a kind, or of what is around it; ``[]`` leads to items and to values of maps."""
    found = value = table[resource.definition].value
    for step in steps:
        while isinstance(value.type, Ref) and value.type.name in table:
            value = table[value.type.name].value
        node = value.type
        members = (
            {member.wire_name: member.value for member in node.fields} if isinstance(node, Struct) else {}
        )
        if isinstance(node, ListOf | MapOf):
            members["[]"] = node.items if isinstance(node, ListOf) else node.values
        if step not in members:
            break
        found = value = members[step]
    return resource.location if found is table[resource.definition].value else found.location


@cache
def _load(release: str) -> Kinds:
    kinds = Kinds(release)
    kinds.load()
    return kinds


def _manifest(
    resources: Sequence[Resource],
    table: Mapping[str, Definition],
    selection: DefinedKinds,
    diagnostics: Diagnostics,
) -> Json:
    first = resources[0]
    names: dict[str, Json] = {
        "plural": first.plural,
        "singular": first.singular,
        "kind": first.kind,
        "listKind": first.list_kind or f"{first.kind}List",
    }
    if first.short_names:
        names["shortNames"] = list(first.short_names)
    if first.categories:
        names["categories"] = list(first.categories)
    scope = "Namespaced" if first.namespaced else "Cluster"
    stored = _stored(resources, selection.storage)
    versions = []
    for resource in resources:
        said = _said(table[resource.definition], diagnostics)
        names |= {key: item for key, item in said.get("names", {}).items() if resource is first}
        scope = said.get("scope", scope)
        version = _version(resource, table, said, selection, diagnostics)
        versions.append({**version, "storage": resource.version == stored})
    manifest = first.manifest or {}
    metadata = {key: manifest[key] for key in ("labels", "annotations") if key in manifest}
    spec = {"group": first.group, "names": names, "scope": scope, "versions": versions}
    if "conversion" in manifest:
        spec["conversion"] = manifest["conversion"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{first.group}", **metadata},
        "spec": spec,
    }


def _stored(resources: Sequence[Resource], wanted: str) -> str:
    """The version to store: the one asked for, the one the source marks, else the most preferred."""
    versions = [resource.version for resource in resources]
    if wanted in versions:
        return wanted
    marked = [resource.version for resource in resources if resource.storage]
    return marked[0] if len(marked) == 1 else versions[0]


def _said(definition: Definition, diagnostics: Diagnostics) -> Json:
    """What a definition says under ``x-kubewright-crd``; what it cannot say there is an error."""
    said = dict(definition.value.extensions).get(MARKER, {})
    names = said.get("names", {}) if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(names, dict):
        place = definition.value.location
        diagnostics.error("K707", f"{MARKER} must be an object, and `names` in it too", place)
        return {}
    unknown = sorted(said.keys() - {"names", "scope", *_OF_VERSION}) + sorted(names.keys() - {*_NAMES})
    if unknown:
        diagnostics.error(
            "K707",
            f"{MARKER} has no {unknown[0]!r}",
            definition.value.location,
            f"names with {', '.join(_NAMES)}; scope, {', '.join(_OF_VERSION)}",
        )
        return {}
    return said


def _version(
    resource: Resource,
    table: Mapping[str, Definition],
    said: Json,
    selection: DefinedKinds,
    diagnostics: Diagnostics,
) -> dict[str, Json]:
    value = _lowered(resource, table, diagnostics)
    subresources = said.get("subresources") or _subresources(resource, value, diagnostics)
    schema = SchemaWriter(documentation=selection.documentation).schema(value)
    if isinstance(subresources, dict) and "status" in subresources:
        for key in sorted(schema.keys() - _ROOT_WITH_STATUS):
            what = f"{resource.kind}: {key} of the whole object is left out (not allowed with a status subresource)"
            diagnostics.warning("K702", what, value.location)
            del schema[key]
    for path, default, why in drop_refused_defaults(schema):
        place = _field_place(resource, re.findall(r"[^.\[\]]+|\[\]", path), table)
        what = f"{resource.kind}{path}: the default {json.dumps(default)} is left out: {why}"
        if default == {}:
            diagnostics.note("K708", what, place)
        else:
            diagnostics.warning("K708", what, place)
    version: dict[str, Json] = {
        "name": resource.version,
        "served": resource.served,
        "schema": {"openAPIV3Schema": schema},
    }
    if resource.deprecated:
        version["deprecated"] = True
        usual = f"{resource.group}/{resource.version} {resource.kind} is deprecated"
        if resource.deprecation_warning not in ("", usual):
            version["deprecationWarning"] = resource.deprecation_warning
    if subresources:
        version["subresources"] = subresources
    if columns := _columns(resource):
        version["additionalPrinterColumns"] = columns
    if resource.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in resource.selectable_fields]
    return version | {key: said[key] for key in _OF_VERSION if key in said}


def _lowered(resource: Resource, table: Mapping[str, Definition], diagnostics: Diagnostics) -> Value:
    """The object's value as a structural schema says it, with ``metadata`` as plain as CRDs want it."""
    structural = resource.manifest is not None
    value = table[resource.definition].value
    body = value.type
    if not isinstance(body, Struct):
        raise UndefinableError("it is not an object with fields")
    fields = tuple(
        replace(f, value=_plain_metadata(f.value, with_rules=structural)) if f.wire_name == "metadata" else f
        for f in body.fields
    )
    value = replace(value, type=replace(body, fields=fields), nullable=False)
    inlined = Inliner(resource.kind, table, diagnostics).inline(value, (resource.definition,))
    return Lowering(resource.kind, diagnostics, structural=structural).lower(inlined)


def _plain_metadata(value: Value, *, with_rules: bool) -> Value:
    """``type: object``, with the validations of a name where a CRD gave some (``source.crd`` keeps them so)."""
    rules: dict[str, Json] = {}
    for schema in value.constraints.all_of if with_rules else ():
        rules |= schema["properties"]
    return Value(
        type=Struct(tuple(_name(name, rule, value) for name, rule in rules.items())), location=value.location
    )


def _name(name: str, rule: Json, value: Value) -> Field:
    constraints = Constraints(
        pattern=rule.get("pattern", ""),
        min_length=rule.get("minLength"),
        max_length=rule.get("maxLength"),
        enum=tuple(rule.get("enum", ())),
    )
    text = Value(type=Scalar(Primitive.STRING), location=value.location, constraints=constraints)
    return Field(wire_name=name, required=False, value=text)


def _subresources(resource: Resource, value: Value, diagnostics: Diagnostics) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for part in resource.subresources:
        if part.name == "status":
            found["status"] = {}
        elif part.name == "scale" and (scale := _scale(part, value)):
            found["scale"] = scale
        else:
            what = (
                f"{resource.kind}: a CustomResourceDefinition has no subresource {part.name}; it is left out"
            )
            hint = f"give the paths of scale under {MARKER}: subresources" if part.name == "scale" else ""
            diagnostics.warning("K702", what, resource.location, hint)
    return found


def _scale(part: Subresource, value: Value) -> dict[str, str]:
    """The three paths of ``scale``: those given, else where every built-in kind has them."""
    given = (part.spec_replicas_path, part.status_replicas_path, part.label_selector_path)
    if not given[0]:
        has = (
            _has(value, "spec", "replicas", Primitive.INTEGER),
            _has(value, "status", "replicas", Primitive.INTEGER),
        )
        if not all(has):
            return {}
        text = next(
            (n for n in ("selector", "labelSelector") if _has(value, "status", n, Primitive.STRING)), ""
        )
        given = (".spec.replicas", ".status.replicas", f".status.{text}" if text else "")
    paths = zip(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), given, strict=True)
    return {name: path for name, path in paths if path}


def _has(value: Value, outer: str, name: str, primitive: Primitive) -> bool:
    node = value.type
    for step in (outer, name):
        if not isinstance(node, Struct):
            return False
        node = next((f.value.type for f in node.fields if f.wire_name == step), node)
    return isinstance(node, Scalar) and node.primitive is primitive


def _columns(resource: Resource) -> list[Json]:
    """The columns next to the name; those of built-in kinds are computed and cannot be said."""
    columns = [c for c in resource.printer_columns if c.json_path and not c.implied]
    if columns[:1] == [_NAME_COLUMN]:
        columns = columns[1:]
    return [
        {
            "name": column.name,
            "type": column.type,
            "jsonPath": column.json_path,
            **({"format": column.format} if column.format else {}),
            **({"description": column.description} if column.description else {}),
            **({"priority": column.priority} if column.priority else {}),
        }
        for column in columns
    ]
