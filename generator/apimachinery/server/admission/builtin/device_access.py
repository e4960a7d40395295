"""Administrators' access to devices: only in namespaces whose label says so.

In kube-apiserver this is no plugin but part of how claims are stored, so nobody can switch it off, and what it finds is
reported with the other faults of the object.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.kinds.fields import items, lookup, struct
from apimachinery.kinds.hooks import Json
from apimachinery.meta.field_errors import forbidden
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

LABEL = "resource.kubernetes.io/admin-access"
_NEEDED = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


class DeviceAdminAccess(Plugin):
    """Notes the first request or allocation that asks for such access where it is not granted."""

    resources = frozenset(
        {("resource.k8s.io", "resourceclaims"), ("resource.k8s.io", "resourceclaimtemplates")}
    )

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = Objects(cache, "/core/namespaces/")

    def admit(self, operation: Operation) -> None:
        """Leaves its fault with the target; changes nothing."""
        target, obj = operation.target, operation.obj
        if obj is None:
            return
        target.faults = []
        path = ""
        if operation.verb == "CREATE":
            path = next(_requested(obj), "")
        elif operation.old is not None and target.subresource == "status":
            path = "" if next(_allocated(operation.old), "") else next(_allocated(obj), "")
        if not path:
            return
        namespace = self._namespaces.get(target.namespace) or {}
        if (lookup(namespace, "metadata", "labels") or {}).get(LABEL) != "true":
            target.faults = [forbidden(f"{path}.adminAccess", _NEEDED)]


def _requested(obj: Json) -> Iterator[str]:
    """The paths of the requests for it; the one inside a template is shown as that of a claim."""
    spec = struct(obj, "spec", "spec") or struct(obj, "spec") or {}
    for index, request in enumerate(items(struct(spec, "devices") or {}, "requests")):
        # In v1beta1 a request has no struct around its fields.
        if (struct(request, "exactly") or request).get("adminAccess") is True:
            yield f"spec.devices.requests[{index}]"


def _allocated(obj: Json) -> Iterator[str]:
    devices = struct(obj, "status", "allocation", "devices") or {}
    for index, result in enumerate(items(devices, "results")):
        if result.get("adminAccess") is True:
            yield f"status.allocation.devices.results[{index}]"
