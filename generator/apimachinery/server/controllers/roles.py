"""Writes the roles and bindings that a cluster starts with, and the rules of ClusterRoles that gather others'."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence

import msgspec

from apimachinery.access.bindings import GROUP, KINDS
from apimachinery.access.bootstrap import (
    Wanted,
    mended,
    other_role,
    wanted_objects,
)
from apimachinery.access.malformed import fault_of, report
from apimachinery.http.steps import LONG, compute
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError
from apimachinery.meta.selectors import LabelSelector, SelectorError, selector_of
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source, everything
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

SERVER = "kube-apiserver"
MANAGER = "clusterrole-aggregation-controller"
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_PLURALS = {kind: plural for plural, kind in KINDS.items()}
ROLES = f"/{GROUP}/clusterroles/"
log = logging.getLogger("kubewright.server.roles")


async def make_roles(catalog: Catalog, writer: Writer, deleter: Deleter, *, metrics: bool = False) -> None:
    """Writes what is missing of the roles and bindings that a cluster starts with, or one with ``metrics``. Raises
    StorageError."""
    for wanted in wanted_objects(metrics=metrics):
        served = catalog.find(GROUP, "v1", _PLURALS[wanted.kind])
        if served is None:
            return
        target = WriteTarget(served, wanted.namespace, wanted.name, WriteOptions(manager=SERVER))
        try:
            await _make(served, target, wanted, writer, deleter)
        except ApiError as error:
            # As with kube-apiserver, a role that cannot be written does not keep the server from starting.
            log.warning("a bootstrap role was not written", extra={"role": wanted.name, "error": str(error)})


async def _make(
    served: Served, target: WriteTarget, wanted: Wanted, writer: Writer, deleter: Deleter
) -> None:
    record = writer.current(target)
    if record is not None:
        if fault := fault_of(record.value):
            report(wanted.kind, wanted.namespace, wanted.name, fault)
            return
        present: Json = decode(record.value)
        if "roleRef" in wanted.obj and other_role(present, wanted.obj):
            await deleter.delete(target, DeletionOptions())
        else:
            changed = mended(present, wanted.obj)
            if changed is not None:
                await writer.update(target, lambda _: changed)
            return
    finish_form(wanted.obj, served)
    await writer.create(target, wanted.obj)


class ClusterRoleAggregation(Controller):
    """Keeps the rules of ClusterRoles with an ``aggregationRule``: those of all roles that its selectors choose, by
    name, each rule once."""

    def __init__(self, served: Served, cache: WatchCache, writer: Writer) -> None:
        super().__init__("clusterrole-aggregation", cache, Source(ROLES, everything))
        self._served = served
        self._roles = cache.resource(ROLES)
        self._writer = writer

    async def reconcile(self, key: str) -> None:
        """Writes all that differs. A role that gathers may itself be gathered: its own write makes the next turn."""
        for name, rules in await compute(LONG, _due, self._roles.snapshot(ROLES).records):

            def put(old: Json, rules: list[Json] = rules) -> Json:
                return {**old, "rules": rules}

            target = WriteTarget(self._served, "", name, WriteOptions(manager=MANAGER))
            with contextlib.suppress(ApiError):
                await self._writer.update(target, put)


def _due(records: Sequence[Record]) -> list[tuple[str, list[Json]]]:
    """The roles whose rules are not those that they should gather, by name, and these."""
    roles: list[Json] = [decode(record.value) for record in records if not fault_of(record.value)]
    gathering = [role for role in roles if role.get("aggregationRule")]
    wanted = [(role, aggregated(role, roles)) for role in gathering]
    return [
        (role["metadata"]["name"], rules)
        for role, rules in wanted
        if rules != (role.get("rules") or []) and (rules or _has_gathered(role))
    ]


def _has_gathered(role: Json) -> bool:
    """Whether its rules are from here: where there is nothing to gather, those that somebody else wrote stay."""
    return any(
        entry.get("manager") == MANAGER and "f:rules" in (entry.get("fieldsV1") or {})
        for entry in role["metadata"].get("managedFields") or ()
    )


def aggregated(role: Json, roles: list[Json]) -> list[Json]:
    """The rules that a role with an ``aggregationRule`` should have."""
    rules: dict[bytes, Json] = {}
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        chosen = _selector(selector)
        if chosen is None:
            continue
        for other in roles:
            metadata = other["metadata"]
            if metadata["name"] == role["metadata"]["name"] or not chosen.matches(
                metadata.get("labels") or {}
            ):
                continue
            for rule in other.get("rules") or ():
                rules.setdefault(_encode_sorted(rule), rule)
    return list(rules.values())


def _selector(selector: Json) -> LabelSelector | None:
    try:
        return selector_of(selector)
    except SelectorError:
        return None
