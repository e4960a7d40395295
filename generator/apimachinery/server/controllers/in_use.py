"""Lets go of claims, volumes and VolumeAttributesClasses that are deleted and no longer in use: takes away the
finalizers that the admission plugin StorageObjectInUseProtection gives them (KEP-498).

A claim is in use while a pod that is bound to a node names it; a volume while it is bound; a class while a claim or a
volume names it. As kube-controller-manager's pvc-protection, pv-protection and volumeattributesclass-protection do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.builtin.in_use_protection import FINALIZERS
from apimachinery.server.admission.objects import content
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.terminating import is_deleting
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache

PODS, CLAIMS, VOLUMES = "/core/pods/", "/core/persistentvolumeclaims/", "/core/persistentvolumes/"
MANAGER = "kube-controller-manager"


class InUse(Controller):
    """Follows one resource that is protected, and those that use it."""

    def __init__(
        self,
        served: Served,
        cache: WatchCache,
        writer: Writer,
        is_used: Callable[[WatchCache, str, str, Json], bool],
        users: tuple[str, ...],
    ) -> None:
        """``is_used`` takes the cache, namespace, name and object; ``users`` are prefixes of what uses it."""
        # Their events are of interest only while something waits to be freed.
        others = [Source(prefix, lambda event: self._deleted, listed=False) for prefix in users]
        super().__init__(f"{served.plural}-protection", cache, Source(served.prefix, self._note), *others)
        self._served = served
        self._writer = writer
        self._is_used = is_used
        self._finalizer = FINALIZERS[served.group, served.plural]
        self._objects = cache.resource(served.prefix)
        self._deleted: set[str] = set()
        """Keys of those that are deleted and still there: what uses them is of interest as long as there are any."""

    def _note(self, event: Event) -> Iterable[str]:
        """The key of what is deleted and still there."""
        key = event.record.key
        if event.deleted:
            self._deleted.discard(key)
        elif is_deleting(event.record):
            self._deleted.add(key)
            return (key,)
        return ()

    async def reconcile(self, key: str) -> None:
        """Takes away the finalizer. Raises ApiError, StorageError."""
        record = self._objects.get(key)
        if record is None or not is_deleting(record):
            return
        obj = content(record)
        namespace, _, name = key.removeprefix(self._served.prefix).rpartition("/")
        if self._finalizer not in (obj["metadata"].get("finalizers") or ()):
            return
        if self._is_used(self.cache, namespace, name, obj):
            return
        target = WriteTarget(self._served, namespace, name, WriteOptions(manager=MANAGER))
        # With the uid: a new claim of the same name keeps its finalizer.
        await self._writer.update(target, self._freed, uid=obj["metadata"]["uid"])

    def _freed(self, old: Json) -> Json:
        metadata = old["metadata"]
        kept = [each for each in metadata.get("finalizers") or () if each != self._finalizer]
        return {**old, "metadata": {**metadata, "finalizers": kept}}


def _records(cache: WatchCache, prefix: str, namespace: str = "") -> Iterator[Record]:
    return iter(cache.resource(prefix).snapshot(f"{prefix}{namespace}/" if namespace else prefix).records)


def claim_is_used(cache: WatchCache, namespace: str, name: str, claim: Json) -> bool:
    """Whether a pod that is bound to a node names a claim, or has it for a volume of its own."""
    del claim
    return any(
        _names(pod, name)
        for pod in map(content, _records(cache, PODS, namespace))
        if (pod.get("spec") or {}).get("nodeName")
    )


def _names(pod: Json, claim: str) -> bool:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim:
            return True
        # The claim of an ephemeral volume is called after pod and volume.
        if volume.get("ephemeral") is not None and f"{pod['metadata']['name']}-{volume.get('name')}" == claim:
            return True
    return False


def volume_is_used(cache: WatchCache, namespace: str, name: str, volume: Json) -> bool:
    """Whether a volume is bound."""
    del cache, namespace, name
    return (volume.get("status") or {}).get("phase") == "Bound"


def class_is_used(cache: WatchCache, namespace: str, name: str, obj: Json) -> bool:
    """Whether a claim or a volume has a VolumeAttributesClass, or is to get it."""
    del namespace, obj
    for prefix in (CLAIMS, VOLUMES):
        for record in _records(cache, prefix):
            held = content(record)
            spec, status = held.get("spec") or {}, held.get("status") or {}
            modified: Mapping[str, str] = status.get("modifyVolumeStatus") or {}
            if name in (
                spec.get("volumeAttributesClassName"),
                status.get("currentVolumeAttributesClassName"),
                modified.get("targetVolumeAttributesClassName"),
            ):
                return True
    return False
