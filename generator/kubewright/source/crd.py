"""CustomResourceDefinitions (``apiextensions.k8s.io/v1``): each version becomes a kind, its list and a resource.

What the API server adds when it publishes a CRD is added here: ``apiVersion`` and ``kind`` with their types,
``metadata`` as ObjectMeta (what a CRD says about it is kept as validation), and the list kind. Definitions are
named as the server names them: the group's labels reversed, version, kind. Whether a server would accept the CRD is
the business of ``kubewright validate``; what makes a model impossible is reported here.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment, PrinterColumn, Resource, Subresource
from kubewright.ir.types import (
    Constraints,
    Definition,
    EmbeddedObject,
    Field,
    Json,
    ListOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Value,
)
from kubewright.location import Document
from kubewright.source.definitions import META_V1
from kubewright.source.schema import STRUCTURAL, SchemaReader

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "CustomResourceDefinition"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_AGE = PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp", implied=True)
_NAME = PrinterColumn(name="Name", type="string", format="name", json_path=".metadata.name")
_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_KIND_NAME = re.compile(r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$")


class Crd:
    """The source of CRD manifests."""

    def read(self, document: Document, diagnostics: Diagnostics) -> Fragment:
        """One kind, its list and a resource for each version."""
        return _Reader(document, diagnostics).read()


class _Reader:
    def __init__(self, document: Document, diagnostics: Diagnostics) -> None:
        self.document = document
        self.diagnostics = diagnostics

    def fault(self, message: str, pointer: str, hint: str = "") -> None:
        self.diagnostics.error("K601", message, self.document.at(pointer), hint)

    def read(self) -> Fragment:
        empty = Fragment(origin=self.document.file)
        spec = self.document.value.get("spec")
        if not isinstance(spec, dict):
            self.fault("a CustomResourceDefinition needs a `spec`", "")
            return empty
        names = spec.get("names")
        if not isinstance(names, dict):
            self.fault("`spec.names` is missing", "/spec")
            return empty
        group, kind, plural = spec.get("group"), names.get("kind"), names.get("plural")
        if not isinstance(group, str) or not all(map(_DNS_LABEL.match, group.split("."))):
            self.fault(f"`spec.group` must be a DNS name, not {group!r}", "/spec/group")
            return empty
        if not isinstance(kind, str) or not _KIND_NAME.match(kind):
            self.fault(f"`spec.names.kind` must be a name such as Widget, not {kind!r}", "/spec/names/kind")
            return empty
        if not isinstance(plural, str) or not _DNS_LABEL.match(plural):
            self.fault(
                f"`spec.names.plural` must be a name such as widgets, not {plural!r}", "/spec/names/plural"
            )
            return empty
        if spec.get("scope") not in ("Namespaced", "Cluster"):
            self.fault(
                f"`spec.scope` must be Namespaced or Cluster, not {spec.get('scope')!r}", "/spec/scope"
            )
        versions = spec.get("versions")
        if not isinstance(versions, list) or not versions:
            self.fault("`spec.versions` must list at least one version", "/spec")
            return empty
        definitions: list[Definition] = []
        resources: list[Resource] = []
        seen: set[str] = set()
        for index, version in enumerate(versions):
            place = f"/spec/versions/{index}"
            name = version.get("name") if isinstance(version, dict) else None
            if not isinstance(name, str) or not _DNS_LABEL.match(name):
                self.fault("a version needs a name such as v1", place)
                continue
            if name in seen:
                self.fault(f"version {name} stands twice", f"{place}/name")
                continue
            seen.add(name)
            new = self._version(spec, names, group, kind, name, version, place)
            definitions += new
            resources.append(self._resource(spec, names, group, kind, name, version, place, new[0].name))
        if sum(1 for v in versions if isinstance(v, dict) and v.get("storage") is True) != 1:
            self.fault("exactly one version must be the storage version", "/spec/versions")
        return Fragment(origin=self.document.file, definitions=tuple(definitions), resources=tuple(resources))

    def _version(
        self, spec: Json, names: Json, group: str, kind: str, version: str, body: Json, place: str
    ) -> list[Definition]:
        prefix = ".".join([*reversed(group.split(".")), version, ""])
        schema_place = f"{place}/schema/openAPIV3Schema"
        holder = body.get("schema")
        schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
        if not isinstance(schema, dict):
            self.fault(f"version {version} has no schema", place, "give it schema.openAPIV3Schema")
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        if schema.get("type") != "object":
            self.fault("the schema of a resource must be of type object", schema_place)
        value = SchemaReader(self.document, STRUCTURAL, self.diagnostics).read(schema, schema_place)
        value = _with_type_meta(value, "ObjectMeta")
        list_kind = self._list_kind(names, kind)
        here = self.document.at(place)
        listed = Value(
            type=Struct(
                (
                    Field(
                        wire_name="items",
                        required=True,
                        value=Value(
                            type=ListOf(Value(type=Ref(prefix + kind), location=here)), location=here
                        ),
                    ),
                )
            ),
            location=here,
            doc=f"A list of {kind}.",
        )
        return [
            Definition(
                name=prefix + kind, group=group, version=version, value=value, kinds=((group, version, kind),)
            ),
            Definition(
                name=prefix + list_kind,
                group=group,
                version=version,
                value=_with_type_meta(listed, "ListMeta"),
                kinds=((group, version, list_kind),),
            ),
        ]

    def _list_kind(self, names: Json, kind: str) -> str:
        given = names.get("listKind")
        return given if isinstance(given, str) and _KIND_NAME.match(given) else f"{kind}List"

    def _resource(
        self,
        spec: Json,
        names: Json,
        group: str,
        kind: str,
        version: str,
        body: Json,
        place: str,
        definition: str,
    ) -> Resource:
        deprecated = body.get("deprecated") is True
        return Resource(
            group=group,
            version=version,
            kind=kind,
            plural=names["plural"],
            singular=_text(names.get("singular")) or kind.lower(),
            namespaced=spec.get("scope") == "Namespaced",
            verbs=_VERBS,
            definition=definition,
            location=self.document.at(place),
            list_kind=self._list_kind(names, kind),
            short_names=_texts(names.get("shortNames")),
            categories=_texts(names.get("categories")),
            subresources=self._subresources(body.get("subresources"), group, version, kind),
            printer_columns=self._columns(body, place),
            selectable_fields=tuple(
                _text(item.get("jsonPath")) for item in _dicts(body.get("selectableFields"))
            ),
            served=body.get("served") is not False,
            storage=body.get("storage") is True,
            stored=version in _texts(_mapping(self.document.value.get("status")).get("storedVersions")),
            deprecated=deprecated,
            deprecation_warning=_text(body.get("deprecationWarning"))
            or (f"{group}/{version} {kind} is deprecated" if deprecated else ""),
            manifest=self._manifest(spec),
        )

    def _manifest(self, spec: Json) -> Json:
        metadata = self.document.value.get("metadata")
        parts = (
            {name: metadata.get(name) for name in ("labels", "annotations")}
            if isinstance(metadata, dict)
            else {}
        )
        return {name: part for name, part in {**parts, "conversion": spec.get("conversion")}.items() if part}

    def _subresources(self, given: Json, group: str, version: str, kind: str) -> tuple[Subresource, ...]:
        found = []
        if not isinstance(given, dict):
            return ()
        scale = given.get("scale")
        if isinstance(scale, dict):
            found.append(
                Subresource(
                    name="scale",
                    verbs=_SUBRESOURCE_VERBS,
                    group="autoscaling",
                    version="v1",
                    kind="Scale",
                    spec_replicas_path=_text(scale.get("specReplicasPath")),
                    status_replicas_path=_text(scale.get("statusReplicasPath")),
                    label_selector_path=_text(scale.get("labelSelectorPath")),
                )
            )
        if given.get("status") is not None:
            found.append(
                Subresource(name="status", verbs=_SUBRESOURCE_VERBS, group=group, version=version, kind=kind)
            )
        return tuple(found)

    def _columns(self, body: Json, place: str) -> tuple[PrinterColumn, ...]:
        columns = [_NAME]
        for index, item in enumerate(_dicts(body.get("additionalPrinterColumns"))):
            if not isinstance(item.get("name"), str) or not isinstance(item.get("jsonPath"), str):
                self.fault(
                    "a printer column needs name, type and jsonPath",
                    f"{place}/additionalPrinterColumns/{index}",
                )
                continue
            priority = item.get("priority")
            columns.append(
                PrinterColumn(
                    name=item["name"],
                    type=_text(item.get("type")) or "string",
                    format=_text(item.get("format")),
                    description=_text(item.get("description")),
                    priority=priority if isinstance(priority, int) else 0,
                    json_path=item["jsonPath"],
                )
            )
        return tuple(columns) if len(columns) > 1 else (_NAME, _AGE)


def _with_type_meta(value: Value, metadata: str) -> Value:
    """``value`` with apiVersion, kind and metadata as the server publishes them, in the usual place."""
    body = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
    if isinstance(body, RawJson):
        body = Struct((), preserve_unknown=True)
    if not isinstance(body, Struct):
        return value
    given = {member.wire_name: member for member in body.fields}
    here = value.location

    def text(name: str) -> Field:
        old = given.get(name)
        own = old.value if old and isinstance(old.value.type, Scalar) else None
        plain = Value(type=Scalar(Primitive.STRING), location=here)
        return Field(wire_name=name, required=False, value=own or plain)

    said = given.get("metadata")
    meta = Value(type=Ref(f"{META_V1}.{metadata}"), location=said.value.location if said else here)
    if said is not None:
        meta = replace(meta, doc=said.value.doc, constraints=_metadata_rules(said.value))
    head = {"apiVersion": text("apiVersion"), "kind": text("kind")}
    head["metadata"] = Field(wire_name="metadata", required=bool(said and said.required), value=meta)
    rest = tuple(member for name, member in given.items() if name not in head)
    return replace(value, type=replace(body, fields=(*head.values(), *rest)))


def _metadata_rules(said: Value) -> Constraints:
    """What a CRD may say about metadata: validations of the name, kept as a schema next to the reference."""
    if not isinstance(said.type, Struct):
        return said.constraints
    rules: dict[str, Json] = {}
    for member in said.type.fields:
        given = member.value.constraints
        words: dict[str, Json] = {
            "pattern": given.pattern or None,
            "minLength": given.min_length,
            "maxLength": given.max_length,
            "enum": list(given.enum) or None,
        }
        kept = {key: item for key, item in words.items() if item is not None}
        if kept:
            rules[member.wire_name] = kept
    extra: tuple[Json, ...] = ({"properties": rules},) if rules else ()
    return replace(said.constraints, all_of=(*said.constraints.all_of, *extra))


def _mapping(value: Json) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _dicts(value: Json) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def why_incomplete(value: Json) -> str:
    """Why a CustomResourceDefinition cannot be meant for a server, where that is so: the files that tools leave next to
    whole ones."""
    spec = _mapping(value.get("spec"))
    if "group" not in spec and "names" not in spec:
        return "a kustomize patch: it names neither group nor kind"
    if not spec.get("group") and not _mapping(spec.get("names")).get("kind"):
        return "what controller-gen writes for a package without kinds: its group and kind are empty"
    annotations = _mapping(_mapping(value.get("metadata")).get("annotations"))
    if spec.get("group") == "" and "controller-gen.kubebuilder.io/version" in annotations:
        return "what controller-gen writes for types of a package without `+groupName`: its group is empty"
    return ""


def name_of(value: Json) -> str:
    """What the resource of a CustomResourceDefinition is called in a cluster."""
    spec = _mapping(value.get("spec"))
    return f"{_text(_mapping(spec.get('names')).get('plural'))}.{_text(spec.get('group'))}"


def are_variants(several: list[Json]) -> bool:
    """Whether definitions of one name differ, and are not the versions of one that lie in a file each."""
    versions = [
        _text(version.get("name"))
        for value in several
        for version in _dicts(_mapping(value.get("spec")).get("versions"))
    ]
    return len(set(versions)) < len(versions) and any(value != several[0] for value in several)


def count_fields(value: Json) -> int:
    """How many fields the schemas of a CustomResourceDefinition have."""
    count, stack = 0, [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, dict):
            properties = inner.get("properties")
            count += len(properties) if isinstance(properties, dict) else 0
        if isinstance(inner, dict | list):
            stack += inner.values() if isinstance(inner, dict) else inner
    return count


def kinds_of(value: Json) -> set[tuple[str, str, str]]:
    """Group, version and kind of each version that a CustomResourceDefinition has."""
    spec = _mapping(value.get("spec"))
    kind = _text(_mapping(spec.get("names")).get("kind"))
    versions = _dicts(spec.get("versions"))
    return {(_text(spec.get("group")), _text(version.get("name")), kind) for version in versions}


def is_crd(value: Json) -> bool:
    """Whether a parsed document says that it is a CustomResourceDefinition of any version."""
    return isinstance(value, dict) and value.get("kind") == KIND
