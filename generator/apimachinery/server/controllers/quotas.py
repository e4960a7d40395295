"""Keeps the status of ResourceQuotas: what each allows, and what of it is used.

A quota is counted anew when it changes, when something it counts goes or changes, and when something that was counted
ahead (``admission.resource_quota``) never came.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from fractions import Fraction

from apimachinery.kinds.core.quota_usage import (
    Amounts,
    added,
    amounts,
    counted_in,
    is_about,
    resource_of,
    spelled,
    usage,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.quantity import Quantity
from apimachinery.server.admission.builtin.resource_quota import PREFIX, Charges
from apimachinery.server.admission.objects import content
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache

MANAGER = "kube-controller-manager"
GATHER_SECONDS = 0.02
"""Changes that come together are counted together."""
WORKERS = 5


class Quotas(Controller):
    """Counts."""

    def __init__(self, catalog: Catalog, cache: WatchCache, writer: Writer, charges: Charges) -> None:
        super().__init__("resourcequota", cache, Source(PREFIX, self._soon), workers=WORKERS)
        self._catalog = catalog
        self._writer = writer
        self._charges = charges
        self._quotas = cache.resource(PREFIX)
        self._counted: set[str] = set()

    def _soon(self, event: Event) -> Iterable[str]:
        if not event.deleted:
            self.queue.add_after(event.record.key, GATHER_SECONDS)
        return ()

    def _counts(self, served: Served) -> None:
        """Hears of a resource that quotas count. What is new was counted when it was let in."""
        prefix = served.prefix
        if not prefix or prefix in self._counted:
            return

        def heard(event: Event) -> Iterable[str]:
            if not len(self._quotas):
                return ()
            is_new = event.previous is None and not event.deleted
            namespace = event.record.key.removeprefix(prefix).partition("/")[0]
            for record in self._quotas.snapshot(f"{PREFIX}{namespace}/").records:
                self._charges.end((namespace, record.key.rpartition("/")[2]), event.record.key)
                if not is_new:
                    self.queue.add_after(record.key, GATHER_SECONDS)
            return ()

        self._counted.add(prefix)
        self.follow(Source(prefix, heard, listed=False))

    async def reconcile(self, key: str) -> float | None:
        """Counts a quota; when something counted ahead must have come. Raises ApiError, StorageError."""
        namespace, _, name = key.removeprefix(PREFIX).partition("/")
        served = self._catalog.find("", "v1", "resourcequotas")
        record = self._quotas.get(key)
        if served is None or record is None:
            return None
        hard = (content(record).get("spec") or {}).get("hard") or {}
        for each in hard:
            counted = self._served(each)
            if counted is not None:
                self._counts(counted)
        target = WriteTarget(served, namespace, name, WriteOptions(manager=MANAGER), "status")
        ahead = 0.0

        def counted_now(present: Json) -> Json:
            nonlocal ahead
            spec, status = present.get("spec") or {}, present.get("status") or {}
            used, ahead = self._used(namespace, name, spec)
            now = {"hard": spec.get("hard") or {}, "used": spelled(used)}
            same = status.get("hard") == now["hard"] and amounts(status.get("used")) == used
            return (
                present
                if same
                else {**present, "status": {key: value for key, value in now.items() if value}}
            )

        with contextlib.suppress(KeyError):
            await self._writer.update(target, counted_now)
        return ahead + GATHER_SECONDS if ahead else None

    def _used(self, namespace: str, name: str, spec: Json) -> tuple[Amounts, float]:
        """What is used of a quota, and in how many seconds what is counted ahead must have come."""
        hard = spec.get("hard") or {}
        total: Amounts = {each: Quantity(Fraction(0), "decimal") for each in hard}
        scoped = bool(spec.get("scopes") or spec.get("scopeSelector"))
        for resource in {found for each in hard if (found := resource_of(each)) is not None}:
            served = self._served_as(resource)
            if served is None or not served.prefix:
                continue
            names = counted_in(resource, hard)
            records = self.cache.resource(served.prefix).snapshot(f"{served.prefix}{namespace}/").records
            plain = {each for each in names if each.startswith("count/") or each == resource[1]}
            if names <= plain and not scoped and resource[1] != "pods":
                for each in names:
                    total[each] = Quantity(Fraction(len(records)), "decimal")
                continue
            for record in records:
                obj = content(record)
                if is_about(resource, spec, obj):
                    for each, amount in usage(resource, obj).items():
                        if each in names:
                            total[each] = added(total[each], amount)
        ahead, seconds = self._charges.still((namespace, name))
        for each, amount in ahead.items():
            if each in total:
                total[each] = added(total[each], amount)
        return total, seconds

    def _served(self, name: str) -> Served | None:
        resource = resource_of(name)
        return None if resource is None else self._served_as(resource)

    def _served_as(self, resource: tuple[str, str]) -> Served | None:
        group = self._catalog.groups.get(resource[0])
        for version in group.versions if group is not None else ():
            served = self._catalog.find(resource[0], version, resource[1])
            if served is not None:
                return served
        return None
