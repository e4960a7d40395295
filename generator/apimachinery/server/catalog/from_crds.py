"""A CustomResourceDefinition as served resources: one ``Served`` a version, compiled with its first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.kinds.hooks import CUSTOM, Json
from apimachinery.merge.errors import MergeError
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.meta.errors import ApiError
from apimachinery.meta.resources import PrinterColumn, Resource, Subresource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.custom import CustomSchema, compile_custom
from apimachinery.server.catalog import family
from apimachinery.server.catalog.catalog import version_order
from apimachinery.server.catalog.factory import KindVersions, deprecation, unowned_by_main, unowned_by_status
from apimachinery.server.catalog.served import CUSTOM_VERBS, Behaviour, Change, Compiled, Served, StoredAs
from apimachinery.server.catalog.webhook_conversion import Ask, WebhookConversion
from apimachinery.storage.layout import custom_prefix

STRATEGY = Strategy(generation=(), unconditional_update=False)


class _Schemas:
    """The schemas of a custom resource by apiVersion, each compiled once, and objects brought from one to another.

    With the strategy ``None`` a conversion changes nothing but apiVersion; with ``Webhook`` one is asked. What the new
    version's schema does not know is pruned. Defaults are filled in where an object is read, at the version that it was
    sent or stored at, and not after a conversion.
    """

    def __init__(self, schemas: dict[str, Any], webhook: WebhookConversion | None) -> None:
        self.stated = schemas
        self._webhook = webhook
        self._compiled: dict[str, CustomSchema] = {}

    def versions(self) -> KindVersions:
        """The versions for managedFields."""
        return KindVersions(
            self.stated,
            lambda api_version: custom_resource(self.stated[api_version]),
            self._owned_at,
            _no_such_version,
        )

    def _owned_at(self, value: Json, api_version: str) -> Json:
        """An object at another version, for whom its fields belong to. Raises MergeError where nobody converts it: an
        update then forgets all owners."""
        if self._webhook is None:
            return {**value, "apiVersion": api_version}
        try:
            return self._webhook.convert([value], api_version)[0]
        except ApiError as error:
            raise MergeError(error.message) from None

    def into(self, api_version: str) -> Change:
        """The change to a version: read at its own version first, since that is what its writer meant."""

        every = self.all_into(api_version)
        return lambda obj: every([obj])[0]

    def all_into(self, api_version: str) -> Callable[[list[Json]], list[Json]]:
        """The same for many, which a webhook converts with one call for each version that they are of."""

        def change(objects: list[Json]) -> list[Json]:
            by_version: dict[str, list[int]] = {}
            for number, obj in enumerate(objects):
                source = obj.get("apiVersion", "")
                self._refresh(source, obj)
                if source != api_version:
                    by_version.setdefault(source, []).append(number)
            changed = list(objects)
            for numbers in by_version.values():
                chosen = [objects[number] for number in numbers]
                if self._webhook is not None:
                    chosen = self._webhook.convert(chosen, api_version)
                for number, obj in zip(numbers, chosen, strict=True):
                    obj["apiVersion"] = api_version
                    changed[number] = obj
                    self._schema(api_version).prune(obj)
            return changed

        return change

    def into_storage(self, api_version: str) -> Change:
        """The change to the version stored, with its defaults: kube-apiserver fills them in whenever it reads what is
        stored, and nothing has to be done here then."""
        change = self.into(api_version)

        def store(obj: Json) -> Json:
            stored = change(obj)
            self._schema(api_version).default(stored)
            return stored

        return store

    def _refresh(self, api_version: str, obj: Json) -> None:
        if api_version in self.stated:
            family.CUSTOM.refresh(self._schema(api_version), obj)

    def _schema(self, api_version: str) -> CustomSchema:
        schema = self._compiled.get(api_version)
        if schema is None:
            schema = self._compiled[api_version] = compile_custom(self.stated[api_version] or {})
        return schema


def _no_such_version(api_version: str) -> MergeError:
    """Owners at a version that the definition no longer has: an apply is refused, an update forgets all owners."""
    return MergeError(f"request to convert CR to an invalid group/version: {api_version}")


def served_versions(crd: Json, revision: int, terminating: bool, ask: Ask | None = None) -> list[Served]:
    """The resources that a definition's served versions are; ``ask`` posts to conversion webhooks."""
    spec = crd["spec"]
    names = crd["status"].get("acceptedNames") or spec["names"]
    group, plural = spec["group"], spec["names"]["plural"]
    versions = spec["versions"] or ()
    stored_at = next((f"{group}/{v['name']}" for v in versions if v.get("storage")), "")
    if not group or not stored_at:
        return []  # no request stores such a definition, but storage may hold one
    conversion = spec.get("conversion") or {}
    webhook = None
    if conversion.get("strategy") == "Webhook" and len(versions) > 1 and ask is not None:
        webhook = WebhookConversion(conversion.get("webhook") or {}, names.get("kind") or "", ask)
    schemas = _Schemas(
        {f"{group}/{v['name']}": (v.get("schema") or {}).get("openAPIV3Schema") for v in versions},
        webhook,
    )
    kind_versions = schemas.versions()
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
                    custom_prefix(group, plural),
                    stored_at,
                    to_storage=schemas.into_storage(stored_at) if api_version != stored_at else None,
                    from_storage=schemas.into(api_version),
                    fresh_since=revision,
                    all_from_storage=schemas.all_into(api_version) if webhook is not None else None,
                ),
                _compiler(
                    schemas.stated[api_version] or {},
                    kind_versions,
                    resource,
                    (version.get("subresources") or {}).get("scale"),
                ),
                warnings=_warnings(crd, version),
                terminating=terminating,
                described=schemas.stated[api_version],
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
    better = [
        v["name"]
        for v in spec["versions"]
        if v.get("served")
        and not v.get("deprecated")
        and version_order(v["name"]) < version_order(version["name"])
    ]
    instead = f"{group}/{min(better, key=version_order)} {kind}" if better else ""
    return (deprecation(f"{group}/{version['name']}", kind, instead=instead),)


def _compiler(
    schema: Json, versions: KindVersions, resource: Resource, scale: Json | None
) -> Callable[[], Compiled]:
    def compile() -> Compiled:
        has_status = any(sub.name == "status" for sub in resource.subresources)
        # A write of a custom resource's status leaves its metadata alone, whatever the schema says. It leaves alone
        # other fields than spec as well, and yet who writes them owns them.
        untouched = {"metadata", "spec"}
        compiled = compile_custom(schema)
        return Compiled(
            schema=compiled,
            stated=compiled,
            merge_type=versions.type_of(resource.api_version),
            rules=compile_rules(schema),
            scale=scale,
            converter=versions,
            main_ignored=unowned_by_main([resource.api_version], has_status=has_status),
            status_ignored=unowned_by_status(versions.names, untouched),
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
