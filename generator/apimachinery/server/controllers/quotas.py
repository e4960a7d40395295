"""Keeps the status of ResourceQuotas: what each allows, and what of it is used.

A quota is counted anew when it changes, when something it counts goes or changes, and when something that was counted
ahead (``admission.resource_quota``) never came.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
from apimachinery.meta.errors import ApiError
from apimachinery.meta.quantity import Quantity
from apimachinery.server.admission.builtin.resource_quota import PREFIX, Charges
from apimachinery.server.admission.objects import content
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.following import Following
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, StorageError
from apimachinery.storage.watch_cache import WatchCache

MANAGER = "kube-controller-manager"
GATHER_SECONDS = 0.02
"""Changes that come together are counted together."""
RETRY_SECONDS = 0.5
log = logging.getLogger("kubewright.server.quotas")
Place = tuple[str, str]


class Quotas(Following):
    """Counts."""

    def __init__(self, catalog: Catalog, cache: WatchCache, writer: Writer, charges: Charges | None) -> None:
        super().__init__()
        self._catalog = catalog
        self._cache = cache
        self._writer = writer
        self._charges = charges or Charges()
        self._quotas = cache.resource(PREFIX)
        self._counted: set[str] = set()
        self._due: set[Place] = set()
        self.hear(self._quotas, PREFIX, self._heard_quota)
        for record in self._quotas.snapshot(PREFIX).records:
            self._look_at(record.key)

    def _heard_quota(self, event: Event) -> None:
        if not event.deleted:
            self._look_at(event.record.key)

    def _look_at(self, key: str) -> None:
        namespace, _, name = key.removeprefix(PREFIX).partition("/")
        self._due.add((namespace, name))
        self.wake()

    def _follow(self, served: Served) -> None:
        """Hears of a resource that quotas count. What is new was counted when it was let in."""
        prefix = served.prefix
        if not prefix or prefix in self._counted:
            return

        def heard(event: Event) -> None:
            if not len(self._quotas):
                return
            is_new = event.previous is None and not event.deleted
            namespace = event.record.key.removeprefix(prefix).partition("/")[0]
            for record in self._quotas.snapshot(f"{PREFIX}{namespace}/").records:
                self._charges.end((namespace, record.key.rpartition("/")[2]), event.record.key)
                if not is_new:
                    self._look_at(record.key)

        self._counted.add(prefix)
        self.hear(self._cache.resource(prefix), prefix, heard)

    async def _turn(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        due, self._due = self._due, set()
        for namespace, name in due:
            try:
                await self._count(namespace, name)
            except (ApiError, StorageError):
                self._later(RETRY_SECONDS, namespace, name)
            except Exception:
                log.exception("a quota could not be counted", extra={"quota": f"{namespace}/{name}"})

    def _later(self, seconds: float, namespace: str, name: str) -> None:
        asyncio.get_running_loop().call_later(seconds, self._look_at, f"{PREFIX}{namespace}/{name}")

    async def _count(self, namespace: str, name: str) -> None:
        served = self._catalog.find("", "v1", "resourcequotas")
        record = self._quotas.get(f"{PREFIX}{namespace}/{name}")
        if served is None or record is None:
            return
        hard = (content(record).get("spec") or {}).get("hard") or {}
        for each in hard:
            counted = self._served(each)
            if counted is not None:
                self._follow(counted)
        target = WriteTarget(served, namespace, name, WriteOptions(manager=MANAGER), "status")

        def counted_now(present: Json) -> Json:
            spec, status = present.get("spec") or {}, present.get("status") or {}
            used, seconds = self._used(namespace, name, spec)
            if seconds:
                self._later(seconds + GATHER_SECONDS, namespace, name)
            now = {"hard": spec.get("hard") or {}, "used": spelled(used)}
            same = status.get("hard") == now["hard"] and amounts(status.get("used")) == used
            return (
                present
                if same
                else {**present, "status": {key: value for key, value in now.items() if value}}
            )

        with contextlib.suppress(KeyError):
            await self._writer.update(target, counted_now)

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
            records = self._cache.resource(served.prefix).snapshot(f"{served.prefix}{namespace}/").records
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
