"""PersistentVolumeClaimResize: only bound claims of a class that allows it may grow."""

from __future__ import annotations

from fractions import Fraction

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden
from apimachinery.meta.quantity import parse_quantity
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

_ONLY_BOUND = "Only bound persistent volume claims can be expanded"
_ONLY_ALLOWED = (
    "only dynamically provisioned pvc can be resized and "
    "the storageclass that provisions the pvc must support resize"
)


class PersistentVolumeClaimResize(Plugin):
    """Refuses growth."""

    resources = frozenset({("", "persistentvolumeclaims")})

    def __init__(self, cache: WatchCache) -> None:
        self._classes = Objects(cache, "/storage.k8s.io/storageclasses/")

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj, old = operation.obj, operation.old
        if obj is None or old is None or operation.target.subresource or _size(obj) <= _size(old):
            return
        why = ""
        if (old.get("status") or {}).get("phase") != "Bound":
            why = _ONLY_BOUND
        elif not self._allows(_class(obj), _class(old)):
            why = _ONLY_ALLOWED
        if why:
            raise forbidden("persistentvolumeclaims", "", operation.name, why)

    def _allows(self, name: str, before: str) -> bool:
        if not name or name != before:
            return False
        found = self._classes.get(name)
        return found is not None and found.get("allowVolumeExpansion") is True


def _size(claim: Json) -> Fraction:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("storage") or "0")).value


def _class(claim: Json) -> str:
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    old_form = annotations.get("volume.beta.kubernetes.io/storage-class")
    return str(old_form or (claim.get("spec") or {}).get("storageClassName") or "")
