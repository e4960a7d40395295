"""ResourceQuota: what a namespace has of each thing stays within its quotas.

A quota counts once its status says what it allows; a controller fills that in and keeps ``status.used`` true. Until the
controller sees what a request makes, the request itself adds to ``used``: with a compare-and-swap of the status, so of
two requests for the last pod one is refused, on whichever server they arrive. What was added and never came (the object
was refused after all) is taken back by the controller: ``Charges`` tells it what is still on its way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from apimachinery.http.steps import Waiting, wait_for
from apimachinery.kinds.core.quota_usage import (
    CLAIMS,
    PODS,
    SERVICES,
    Amounts,
    added,
    amounts,
    counted_in,
    is_about,
    less,
    missing,
    shown,
    spelled,
    usage,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, forbidden
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.storage.watch_cache import WatchCache

PREFIX = "/core/resourcequotas/"
ON_ITS_WAY_SECONDS = 5.0


class StatusWriter(Protocol):
    """Who writes the status of a quota."""

    async def update(self, target: WriteTarget, transform: Callable[[Json], Json]) -> Any:
        """Replaces an object by what ``transform`` makes of the present one."""


@dataclass(slots=True)
class _Charge:
    key: str
    amounts: Amounts
    until: float


@dataclass(slots=True)
class Charges:
    """What was added to quotas for objects that are not stored yet, by the quota's namespace and name."""

    _open: dict[tuple[str, str], list[_Charge]] = field(default_factory=dict)

    def add(self, quota: tuple[str, str], key: str, given: Amounts) -> None:
        """Notes what an object, by its storage key, was counted for."""
        moment = time.monotonic()
        # Charges that were given up are dropped when the next one comes.
        left = [charge for charge in self._open.get(quota, ()) if charge.until > moment]
        self._open[quota] = [*left, _Charge(key, given, moment + ON_ITS_WAY_SECONDS)]

    def end(self, quota: tuple[str, str], key: str) -> None:
        """Forgets what was noted of an object: it is stored, or was refused."""
        if quota in self._open:
            left = [charge for charge in self._open[quota] if charge.key != key]
            if left:
                self._open[quota] = left
            else:
                del self._open[quota]

    def still(self, quota: tuple[str, str]) -> tuple[Amounts, float]:
        """What is on its way of a quota, and in how many seconds the last of it is given up (0 for nothing)."""
        # A request that died without a word must not count for ever.
        moment = time.monotonic()
        left = [charge for charge in self._open.get(quota, ()) if charge.until > moment]
        total: Amounts = {}
        for charge in left:
            for name, amount in charge.amounts.items():
                total[name] = added(total.get(name), amount)
        return total, max((charge.until - moment for charge in left), default=0.0)


class ResourceQuota(Plugin):
    """Holds creations and changes against quotas."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        charges: Charges,
        writer: Callable[[], StatusWriter] | None,
    ) -> None:
        self._catalog = catalog
        self._quotas = Objects(cache, PREFIX)
        self._charges = charges
        self._writer = writer

    def validate(self, operation: Operation) -> Waiting:
        """Raises ApiError 403; waits while quotas are written."""
        target, obj = operation.target, operation.obj
        # Most namespaces have no quota: this is the way of most requests.
        if not target.namespace or obj is None or not (quotas := self._quotas.every(target.namespace)):
            return None
        resource = (target.served.group, target.served.plural)
        if not _handles(operation, resource):
            return None
        asked: list[tuple[Json, Amounts]] = []
        wanted = usage(resource, obj)
        grown = _grown(operation, resource, wanted)
        for quota in quotas:
            hard = (quota.get("status") or {}).get("hard") or {}
            names = counted_in(resource, hard)
            if not names or not is_about(resource, quota.get("spec") or {}, obj):
                continue
            name = quota["metadata"]["name"]
            # A quota of requests.cpu, say, needs a request of every container.
            if why := missing(resource, obj, names):
                raise _refusal(operation, f"failed quota: {name}: {why}")
            # Until the controller has counted, nothing may be added.
            if names - ((quota.get("status") or {}).get("used") or {}).keys():
                told = ",".join(sorted(names))
                raise _refusal(operation, f"status unknown for quota: {name}, resources: {told}")
            # What comes into the scope of a quota by an update is new to it as a whole.
            counted = operation.old is not None and is_about(resource, quota.get("spec") or {}, operation.old)
            more = grown if counted else wanted
            asked.append((quota, {key: each for key, each in more.items() if key in names and each.value}))
        due = [(quota, more) for quota, more in asked if more]
        for quota, more in due:
            # All quotas are checked before any is charged, so that a refusal leaves nothing to take back.
            _check(operation, quota, more)
        if not due or operation.dry_run or self._writer is None:
            return None
        return wait_for(partial(self._charge, operation, due))

    async def _charge(self, operation: Operation, due: list[tuple[Json, Amounts]]) -> None:
        """Counts what a request makes, quota by quota, in what each says by then."""
        served = self._catalog.find("", "v1", "resourcequotas")
        if served is None or self._writer is None:
            return
        target = operation.target
        key = target.served.key(target.namespace, operation.name)
        for quota, more in due:
            name = quota["metadata"]["name"]

            def charge(present: Json, more: Amounts = more) -> Json:
                status = present.get("status") or {}
                # Checked again on the quota as it is by now: another request may have used it up.
                _check(operation, present, more)
                used = amounts(status.get("used"))
                for each, amount in more.items():
                    used[each] = added(used.get(each), amount)
                return {**present, "status": {**status, "used": spelled(used)}}

            place = WriteTarget(
                served, target.namespace, name, WriteOptions(manager="kube-apiserver"), "status"
            )
            # Before it is written: the controller must not take away what it sees no object of yet.
            self._charges.add((target.namespace, name), key, more)
            try:
                await self._writer().update(place, charge)
            except ApiError as error:
                self._charges.end((target.namespace, name), key)
                if error.reason == "NotFound" and error.kind == "resourcequotas":
                    continue  # A quota that is gone limits nobody.
                raise


def _handles(operation: Operation, resource: tuple[str, str]) -> bool:
    if resource == PODS:
        subresource = operation.target.subresource
        if operation.verb == "CREATE" or subresource:
            return subresource == ("" if operation.verb == "CREATE" else "resize")
        # The one thing of a pod's scopes that changes.
        return _deadline(operation.obj) != _deadline(operation.old)
    if operation.target.subresource:
        return False
    # Only Services and claims can grow by an update.
    return operation.verb == "CREATE" or (operation.verb == "UPDATE" and resource in (SERVICES, CLAIMS))


def _deadline(pod: Json | None) -> object:
    return ((pod or {}).get("spec") or {}).get("activeDeadlineSeconds")


def _grown(operation: Operation, resource: tuple[str, str], wanted: Amounts) -> Amounts:
    """What an update adds to what its object counts for already."""
    before = usage(resource, operation.old) if operation.old is not None else {}
    return {name: less(amount, before.get(name)) for name, amount in wanted.items()}


def _check(operation: Operation, quota: Json, more: Amounts) -> None:
    """Raises ApiError 403 where a quota does not allow for more."""
    status = quota.get("status") or {}
    hard, used = amounts(status.get("hard")), amounts(status.get("used"))
    over = {
        name
        for name, amount in more.items()
        if name in hard and added(used.get(name), amount).value > hard[name].value
    }
    if over:
        asked, have, limit = (
            shown({name: each[name] for name in over if name in each}) for each in (more, used, hard)
        )
        name = quota["metadata"]["name"]
        raise _refusal(
            operation, f"exceeded quota: {name}, requested: {asked}, used: {have}, limited: {limit}"
        )


def _refusal(operation: Operation, why: str) -> ApiError:
    served = operation.target.served
    return forbidden(served.plural, served.group, operation.name, why)
