"""Keeps the status of ValidatingAdmissionPolicies: what is odd about their expressions, given the kinds they are about.

As kube-controller-manager's ``validatingadmissionpolicy-status-controller``: a policy is checked once for each
generation, and a policy that warns is in force all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apimachinery.kinds.admissionregistration.policy_types import (
    Gvk,
    kinds_of,
    resolved,
    warnings_of,
)
from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.watch_cache import WatchCache

MANAGER = "validatingadmissionpolicy-status-controller"
Definitions = Sequence[Mapping[str, Any]]
"""The definitions of the packages."""


class PolicyStatus(Controller):
    """Checks policies as they come."""

    def __init__(
        self, catalog: Catalog, served: Served, cache: WatchCache, writer: Writer, definitions: Definitions
    ) -> None:
        super().__init__("validatingadmissionpolicy-status", cache, Source(served.prefix))
        self._catalog = catalog
        self._served = served
        self._writer = writer
        self._definitions = definitions
        self._policies = cache.resource(served.prefix)

    async def reconcile(self, key: str) -> None:
        """Checks a policy that is due. Raises ApiError, StorageError."""
        record = self._policies.get(key)
        policy = None if record is None else self._served.read(record)
        if policy is not None and _is_due(policy):
            await self._check(policy)

    async def _check(self, policy: Json) -> None:
        spec = policy.get("spec") or {}
        warnings = warnings_of(spec, kinds_of(spec, self._kind), self._schema)
        generation = policy["metadata"].get("generation")
        status = {
            "observedGeneration": generation,
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        }
        target = WriteTarget(
            self._served, "", policy["metadata"]["name"], WriteOptions(manager=MANAGER), "status"
        )

        def put(old: Json) -> Json:
            if old["metadata"].get("generation") != generation:
                return old  # The next round sees to it.
            return {**old, "status": {**(old.get("status") or {}), **status}}

        await self._writer.update(target, put)

    def _kind(self, group: str, version: str, resource: str) -> Gvk | None:
        served = self._catalog.find(group, version, resource)
        return None if served is None else (served.group, served.version, served.kind)

    def _schema(self, gvk: Gvk) -> Mapping[str, Any] | None:
        for served in self._catalog:
            if (served.group, served.version, served.kind) == gvk:
                if served.resource.definition:  # which CRDs' kinds have none of
                    return self._definition(served.resource.definition)
                return self._custom(served.described or {})
        return None

    def _definition(self, name: str) -> Mapping[str, Any] | None:
        of = next((definitions for definitions in self._definitions if name in definitions), None)
        return None if of is None else resolved(of, name)

    def _custom(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema of a custom resource, with what every object has."""
        metadata = self._definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") or {"type": "object"}
        text = {"type": "string"}
        own = {**(schema.get("properties") or {}), "apiVersion": text, "kind": text, "metadata": metadata}
        return {**schema, "properties": own}


def _is_due(policy: Json) -> bool:
    generation = policy["metadata"].get("generation") or 0
    return bool(generation > ((policy.get("status") or {}).get("observedGeneration") or 0))
