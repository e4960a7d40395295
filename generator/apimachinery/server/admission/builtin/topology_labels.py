"""PodTopologyLabels: a pod carries zone and region of the node it is bound to, as labels."""

from __future__ import annotations

from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.server.request.target import metadata_of
from apimachinery.storage.watch_cache import WatchCache

LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """Copies labels of nodes to pods that are created on them, and to bindings."""

    resources = frozenset({("", "pods"), ("", "bindings")})

    def __init__(self, cache: WatchCache) -> None:
        self._nodes = Objects(cache, "/core/nodes/")

    def admit(self, operation: Operation) -> None:
        obj, subresource = operation.obj, operation.target.subresource
        if operation.verb != "CREATE" or obj is None or subresource not in ("", "binding"):
            return
        target = obj.get("target")
        name = target.get("name") if isinstance(target, dict) else (obj.get("spec") or {}).get("nodeName")
        node = self._nodes.get(name) if name else None
        labels = {} if node is None else node["metadata"].get("labels") or {}
        copied = {key: labels[key] for key in LABELS if key in labels}
        if copied:
            metadata = metadata_of(obj)
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}
