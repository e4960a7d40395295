"""A CustomResourceDefinition as served resources: one ``Served`` a version, compiled with its first request."""

from __future__ import annotations

from typing import Any

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.field_set import from_paths
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.typed import MergeType
from apimachinery.meta.resources import PrinterColumn, Resource, Subresource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.custom import CustomSchema, compile_custom
from apimachinery.server.catalog import family
from apimachinery.server.catalog.catalog import version_order
from apimachinery.server.catalog.hooks import CUSTOM, Json
from apimachinery.server.catalog.served import CUSTOM_VERBS, Behaviour, Change, Compiled, Served, StoredAs

STRATEGY = Strategy(generation=(), unconditional_update=False)


class _Versions:
    """The versions of a custom resource whose conversion changes nothing but apiVersion."""

    def __init__(self, group: str, types: dict[str, Any]) -> None:
        self._group = group
        self._schemas = types
        self._types: dict[str, MergeType] = {}
        self._compiled: dict[str, CustomSchema] = {}

    def type_of(self, api_version: str) -> MergeType:
        """The merge type at a version."""
        if api_version not in self._schemas:
            raise UnknownVersion(api_version)
        found = self._types.get(api_version)
        if found is None:
            found = self._types[api_version] = custom_resource(self._schemas[api_version])
        return found

    def into(self, api_version: str) -> Change:
        """The change to a version: as it was read at its own version (pruned, defaulted), then without what the
        new one does not know."""

        def change(obj: Json) -> Json:
            source = obj.get("apiVersion", "")
            if source != api_version:
                if (schema := self._schema(source)) is not None:
                    schema.prune(obj)
                    schema.default(obj)
                obj["apiVersion"] = api_version
            if (schema := self._schema(api_version)) is not None:
                schema.prune(obj)
                schema.default(obj)
            return obj

        return change

    def _schema(self, api_version: str) -> CustomSchema | None:
        if api_version not in self._compiled and api_version in self._schemas:
            self._compiled[api_version] = compile_custom(self._schemas[api_version] or {})
        return self._compiled.get(api_version)

    def convert(self, value: Json, api_version: str) -> Json:
        """The object at a version."""
        if api_version not in self._schemas:
            raise UnknownVersion(api_version)
        return {**value, "apiVersion": api_version}


def served_versions(crd: Json, revision: int, terminating: bool) -> list[Served]:
    """The resources that a definition's served versions are."""
    spec = crd["spec"]
    names = crd["status"].get("acceptedNames") or spec["names"]
    group, plural = spec["group"], spec["names"]["plural"]
    versions = spec["versions"]
    stored_at = next(f"{group}/{v['name']}" for v in versions if v.get("storage"))
    schemas = {f"{group}/{v['name']}": (v.get("schema") or {}).get("openAPIV3Schema") for v in versions}
    shared = _Versions(group, schemas)
    found = []
    for version in versions:
        if not version.get("served"):
            continue
        resource = _resource(spec, names, version)
        api_version = resource.api_version
        found.append(
            Served(
                resource,
                Behaviour(family.CUSTOM, STRATEGY, CUSTOM),
                StoredAs(
                    f"/{group}/{plural}/",
                    stored_at,
                    to_storage=shared.into(stored_at) if api_version != stored_at else None,
                    from_storage=shared.into(api_version),
                    fresh_since=revision,
                ),
                _compiler(
                    schemas[api_version] or {},
                    shared,
                    resource,
                    list(schemas),
                    (version.get("subresources") or {}).get("scale"),
                ),
                warnings=_warnings(crd, version),
                terminating=terminating,
                described=schemas[api_version],
            )
        )
    return found


def _warnings(crd: Json, version: Json) -> tuple[str, ...]:
    if not version.get("deprecated"):
        return ()
    if text := version.get("deprecationWarning"):
        return (text,)
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    better = [
        v["name"]
        for v in spec["versions"]
        if v.get("served")
        and not v.get("deprecated")
        and version_order(v["name"]) < version_order(version["name"])
    ]
    if better:
        text += f"; use {group}/{min(better, key=version_order)} {kind}"
    return (text,)


def _compiler(
    schema: Json, versions: _Versions, resource: Resource, api_versions: list[str], scale: Json | None
) -> Any:
    def compile() -> Compiled:
        has_status = any(sub.name == "status" for sub in resource.subresources)
        spec = from_paths([("f:status",)]) if has_status else {}
        fields = [
            name for name in schema.get("properties", {}) if name not in ("status", "apiVersion", "kind")
        ]
        others = from_paths([(f"f:{name}",) for name in {*fields, "metadata", "spec"}])
        compiled = compile_custom(schema)
        return Compiled(
            schema=compiled,
            stated=compiled,
            merge_type=versions.type_of(resource.api_version),
            rules=compile_rules(schema),
            scale=scale,
            converter=versions,
            main_ignored=dict.fromkeys(api_versions, spec),
            status_ignored=dict.fromkeys(api_versions, others),
        )

    return compile


def _resource(spec: Json, names: Json, version: Json) -> Resource:
    subresources = []
    declared = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    if declared.get("status") is not None:
        subresources.append(Subresource(name="status", verbs=verbs))
    if (scale := declared.get("scale")) is not None:
        subresources.append(
            Subresource(
                name="scale",
                verbs=verbs,
                group="autoscaling",
                version="v1",
                kind="Scale",
                spec_replicas_path=scale.get("specReplicasPath", ""),
                status_replicas_path=scale.get("statusReplicasPath", ""),
                label_selector_path=scale.get("labelSelectorPath", ""),
            )
        )
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names.get("kind") or spec["names"]["kind"],
        plural=spec["names"]["plural"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        verbs=CUSTOM_VERBS,
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(subresources),
        printer_columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        selectable_fields=tuple(f["jsonPath"] for f in version.get("selectableFields") or ()),
        deprecated=bool(version.get("deprecated")),
        deprecation_warning=version.get("deprecationWarning") or "",
    )


def _column(column: Json) -> PrinterColumn:
    return PrinterColumn(
        name=column["name"],
        type=column["type"],
        format=column.get("format", ""),
        description=column.get("description") or _described(column),
        priority=column.get("priority", 0),
        json_path=column["jsonPath"],
    )


def _described(column: Json) -> str:
    return f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
