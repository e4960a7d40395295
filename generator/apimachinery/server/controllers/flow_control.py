"""Keeps the FlowSchemas and priority levels that a cluster starts with, and says of each FlowSchema whether its level
is there (condition ``Dangling``). Fairness itself only reads them."""

from __future__ import annotations

import logging

from apimachinery.http.messages import Request
from apimachinery.http.steps import compute
from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import EVERYTHING, Controller, Source, everything
from apimachinery.server.fairness.facts import AUTO_UPDATE, GROUP, LEVELS, MANDATORY, SCHEMAS, VERSION
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.apply import apply
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode, encode

PRODUCER = "api-priority-and-fairness-config-producer-v1"
CONSUMER = "api-priority-and-fairness-config-consumer-v1"
log = logging.getLogger("kubewright.server.fairness")


async def make_flow_control(catalog: Catalog, writer: Writer) -> None:
    """Makes what is missing, levels first, and brings back what must not be changed. Raises StorageError."""
    for plural, objects in (("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)):
        served = catalog.preferred(GROUP, plural)
        if served is None:
            return
        for name, spec in objects.items():
            try:
                await _make(served, writer, name, spec)
            except ApiError as error:
                log.warning("a bootstrap object was not written", extra={"object": name, "error": str(error)})


async def _make(served: Served, writer: Writer, name: str, spec: Json) -> None:
    target = WriteTarget(served, "", name, WriteOptions(manager=PRODUCER))
    stored: Json = {
        "kind": served.kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": decode(encode(spec)),
    }
    wanted = served.in_form(stored)
    finish_form(wanted, served)
    record = writer.current(target)
    if record is None:
        await writer.create(target, wanted)
        return
    present = served.read(record)
    follows = (present["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "true"
    if present["spec"] != wanted["spec"] and (follows or name in MANDATORY):
        await writer.update(target, lambda old: {**old, "spec": wanted["spec"]})


_LEVELS = f"/{GROUP}/prioritylevelconfigurations/"


class FlowSchemaConditions(Controller):
    """Writes the condition ``Dangling`` of FlowSchemas, and makes mandatory objects again that were deleted."""

    def __init__(self, catalog: Catalog, served: Served, cache: WatchCache, writer: Writer) -> None:
        levels, schemas = Source(_LEVELS, everything), Source(served.prefix, everything)
        super().__init__("flow-control", cache, levels, schemas)
        self.queue.add(EVERYTHING)
        self._catalog = catalog
        self._served = served
        self._writer = writer
        self._levels = cache.resource(_LEVELS)
        self._schemas = cache.resource(served.prefix)

    async def reconcile(self, key: str) -> None:
        """Makes what is missing, then writes the conditions that are not what they should be."""
        await make_flow_control(self._catalog, self._writer)
        levels = {record.key[len(_LEVELS) :] for record in self._levels.snapshot(_LEVELS).records}
        for record in self._schemas.snapshot(self._served.prefix).records:
            try:
                await self._tell(record, levels)
            except ApiError as error:
                text = "a condition of a FlowSchema was not written"
                log.warning(text, extra={"key": record.key, "error": str(error)})

    async def _tell(self, record: Record, levels: set[str]) -> None:
        schema: Json = await compute(len(record.value), decode, record.value)
        name = schema["metadata"]["name"]
        wanted = condition(schema["spec"]["priorityLevelConfiguration"]["name"], levels)
        present = [
            c for c in (schema.get("status") or {}).get("conditions") or () if c.get("type") == "Dangling"
        ]
        if present and {key: present[0].get(key) for key in wanted} == wanted:
            return
        changed = not present or present[0].get("status") != wanted["status"]
        since = now() if changed else present[0].get("lastTransitionTime")
        applied = {
            "kind": self._served.kind,
            "apiVersion": self._served.api_version,
            "metadata": {"name": name},
            "status": {"conditions": [{**wanted, "lastTransitionTime": since}]},
        }
        options = WriteOptions(manager=CONSUMER, force=True)
        target = WriteTarget(self._served, "", name, options, "status")
        request = Request("PATCH", "", body=encode(applied))
        await self._writer.driver.run(apply(request, target, self._writer.pipeline, binary=False))


def condition(level: str, levels: set[str]) -> dict[str, str]:
    """The condition of a FlowSchema that refers to ``level``."""
    there = level in levels
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" '
    return {
        "type": "Dangling",
        "status": "False" if there else "True",
        "reason": "Found" if there else "NotFound",
        "message": text + ("and it exists" if there else "but there is no such object"),
    }
