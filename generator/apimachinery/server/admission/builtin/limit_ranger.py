"""LimitRanger: LimitRanges of a namespace give containers default requests and limits, and bound pods and claims."""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.kinds.core.limit_ranges import (
    ANNOTATION,
    claim_faults,
    fill_in,
    pod_faults,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden
from apimachinery.meta.field_errors import aggregate
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.server.request.target import metadata_of
from apimachinery.storage.watch_cache import WatchCache

PREFIX = "/core/limitranges/"
PODS, CLAIMS = ("", "pods"), ("", "persistentvolumeclaims")


class LimitRanger(Plugin):
    """Applies LimitRanges."""

    resources = frozenset({PODS, CLAIMS})

    def __init__(self, cache: WatchCache) -> None:
        self._ranges = Objects(cache, PREFIX)

    def admit(self, operation: Operation) -> None:
        """Fills in what new pods leave out, or one that is resized."""
        obj = operation.obj
        if obj is None or not _is_pod(operation):
            return
        for limit_range in self._of(operation):
            told = fill_in(obj.get("spec") or {}, limit_range)
            if told:
                metadata = metadata_of(obj)
                text = f"LimitRanger plugin set: {'; '.join(told)}"
                # One annotation tells what was set, as with kube-apiserver.
                metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: text}

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj = operation.obj
        if obj is None:
            return
        faults = pod_faults if _is_pod(operation) else claim_faults
        for limit_range in self._of(operation):
            if found := list(faults(obj.get("spec") or {}, limit_range)):
                served = operation.target.served
                raise forbidden(served.plural, served.group, operation.name, aggregate(found))

    def _of(self, operation: Operation) -> Iterator[Json]:
        """The LimitRanges that a write is held against: pods do not change what they ask for but when resized, and what
        is going may be written in any case."""
        target, old = operation.target, operation.old
        resize = target.subresource == "resize" and _is_pod(operation)
        if target.subresource and not resize:
            return
        # Finalizers of what is being deleted must come off, whatever the limits say.
        if old is not None and (
            "deletionTimestamp" in old["metadata"] or (_is_pod(operation) and not resize)
        ):
            return
        yield from self._ranges.every(target.namespace)


def _is_pod(operation: Operation) -> bool:
    return operation.target.served.plural == "pods"
