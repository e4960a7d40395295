"""NamespaceLifecycle: nothing new in a missing or terminating namespace; system namespaces are not deleted."""

from __future__ import annotations

import msgspec

from apimachinery.meta.errors import Cause, forbidden, not_found
from apimachinery.server.admission.interface import Operation
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache

NAMESPACES = "/core/namespaces/"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Keeps content out of namespaces that are missing or terminating."""

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = cache.resource(NAMESPACES)

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403, 404."""
        target = operation.target
        served = target.served
        if operation.verb == "DELETE":
            if served.prefix == NAMESPACES and target.name in IMMORTAL:
                raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")
            return
        if operation.verb != "CREATE" or not served.namespaced:
            return
        namespace = target.namespace
        record = self._namespaces.get(NAMESPACES + namespace)
        if record is None:
            raise not_found("namespaces", "", namespace)
        if phase_of(record) == "Terminating":
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
