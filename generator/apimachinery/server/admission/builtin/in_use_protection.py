"""StorageObjectInUseProtection: volumes, claims and classes of attributes get a finalizer, which a controller takes
away when nothing uses them any more."""

from __future__ import annotations

from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.request.target import metadata_of

FINALIZERS = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Adds the finalizers to new objects."""

    resources = frozenset(FINALIZERS)

    def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.obj is None or operation.target.subresource:
            return
        served = operation.target.served
        finalizer = FINALIZERS[served.group, served.plural]
        metadata = metadata_of(operation.obj)
        present = metadata.get("finalizers") or []
        if finalizer not in present:
            metadata["finalizers"] = [*present, finalizer]
