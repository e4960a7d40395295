"""Namespaces must be there: NamespaceLifecycle (nothing new in a missing or terminating namespace; system namespaces
are not deleted), NamespaceExists and NamespaceAutoProvision, which creates them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from apimachinery.http.steps import Waiting, wait_for
from apimachinery.meta.errors import ApiError, Cause, forbidden, not_found
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache

NAMESPACES = "/core/namespaces/"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


FindPhase = Callable[[str], Awaitable[str | None]]
"""The phase of a namespace of another server, None where there is none."""
REMEMBERED, REMEMBERED_SECONDS = 4096, 5.0


class NamespaceLifecycle(Plugin):
    """Keeps content out of namespaces that are missing or terminating."""

    def __init__(self, cache: WatchCache, elsewhere: FindPhase | None = None) -> None:
        self._namespaces = cache.resource(NAMESPACES)
        self._elsewhere = elsewhere
        self._known: dict[str, tuple[float, str]] = {}

    def admit(self, operation: Operation) -> Waiting:
        """Raises ApiError 403, 404."""
        target = operation.target
        served = target.served
        if operation.verb == "DELETE":
            if served.prefix == NAMESPACES and target.name in IMMORTAL:
                raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")
            return None
        if operation.verb != "CREATE" or not served.namespaced:
            return None
        namespace = target.namespace
        if self._elsewhere is not None:
            return wait_for(partial(self._ask, operation, self._elsewhere))
        record = self._namespaces.get(NAMESPACES + namespace)
        self._judge(operation, None if record is None else phase_of(record))
        return None

    async def _ask(self, operation: Operation, elsewhere: FindPhase) -> None:
        """Admits into a namespace that another server has; remembers its phase for a moment."""
        name = operation.target.namespace
        now = time.monotonic()
        since, phase = self._known.get(name, (-REMEMBERED_SECONDS, None))
        if now - since >= REMEMBERED_SECONDS:
            try:
                phase = await elsewhere(name)
            except Exception as fault:
                raise ApiError(503, "ServiceUnavailable", f"namespace {name}: {fault}") from None
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            if phase is not None:
                self._known[name] = (now, phase)
        self._judge(operation, phase)

    def _judge(self, operation: Operation, phase: str | None) -> None:
        namespace, served = operation.target.namespace, operation.target.served
        if phase is None:
            raise not_found("namespaces", "", namespace)
        if phase == "Terminating":
            cause = Cause(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(served.plural, served.group, operation.said_name, why, (cause,))

    def validate(self, operation: Operation) -> None:
        """Refuses nothing more, except for resources that are themselves going."""
        served = operation.target.served
        if operation.verb == "CREATE" and served.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(served.plural, served.group, operation.said_name, why)


class NamespaceExists(Plugin):
    """Refuses all writes in a missing namespace."""

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = cache.resource(NAMESPACES)

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 404."""
        namespace = operation.target.namespace
        if not operation.target.served.namespaced or operation.verb == "CONNECT":
            return
        if self._namespaces.get(NAMESPACES + namespace) is None:
            raise not_found("namespaces", "", namespace)


class NamespaceAutoProvision(Plugin):
    """Creates the namespace that something is created in."""

    def __init__(self, cache: WatchCache, create: Callable[[str], Awaitable[None]] | None) -> None:
        """``create`` makes a namespace of a name."""
        self._namespaces = cache.resource(NAMESPACES)
        self._create = create

    def admit(self, operation: Operation) -> Waiting:
        """Creates the namespace; a dry run does not."""
        namespace = operation.target.namespace
        if operation.verb != "CREATE" or not operation.target.served.namespaced or operation.dry_run:
            return None
        if self._create is None or self._namespaces.get(NAMESPACES + namespace) is not None:
            return None
        return wait_for(partial(self._create, namespace))


class _Status(msgspec.Struct):
    phase: str = ""


class _WithPhase(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_read_phase = msgspec.json.Decoder(_WithPhase).decode


def phase_of(record: Record) -> str:
    """``status.phase`` of a record, kept with it."""
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    phase: str | None = memo.get("phase")
    if phase is None:
        phase = memo["phase"] = _read_phase(record.value).status.phase
    return phase
