"""PodResizeValidator and NodeDeclaredFeatureValidator: a bound pod is resized only where its node can do that.

The node must run Linux, have room for what the pod then asks for, and have declared (``status.declaredFeatures``) what
its kubelet must be able to do for this resize.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.kinds.core.quota_usage import usage
from apimachinery.kinds.fields import items
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, Cause, forbidden
from apimachinery.meta.printing import go_quote
from apimachinery.meta.quantity import parse_quantity
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

PODS = ("", "pods")
OS = "kubernetes.io/os"
OF_POD, OF_INIT = "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"


class PodResizeValidator(Plugin):
    """Refuses what the node has no room for."""

    resources = frozenset({PODS})

    def __init__(self, cache: WatchCache) -> None:
        self._nodes = Objects(cache, "/core/nodes/")

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        if not _resizes(operation):
            return
        node = _node_of(self._nodes, operation)
        name = node["metadata"]["name"]
        system = (node["metadata"].get("labels") or {}).get(OS) or ""
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {go_quote(name)} is {go_quote(system)}"
            raise _refusal(operation, why, "UnsupportedPlatform")
        lacking = "; ".join(_lacking(operation.obj or {}, node))
        if lacking:
            why = f"node didn't have enough allocatable resources: {lacking}"
            raise _refusal(operation, why, "NodeCapacity")


class NodeDeclaredFeatureValidator(Plugin):
    """Refuses what the node has not declared that it can do."""

    resources = frozenset({PODS})

    def __init__(self, cache: WatchCache) -> None:
        self._nodes = Objects(cache, "/core/nodes/")

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj, old = operation.obj, operation.old
        if not _resizes(operation) or obj is None or old is None:
            return
        node = _node_of(self._nodes, operation)
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        missing = [feature for feature in _needed(obj["spec"], old["spec"]) if feature not in declared]
        if missing:
            name = go_quote(node["metadata"]["name"])
            why = f"pod update requires features {', '.join(missing)} which are not available on node {name}"
            raise forbidden("pods", "", operation.name, why)


def _resizes(operation: Operation) -> bool:
    obj, old = operation.obj, operation.old
    if obj is None or old is None or operation.target.subresource != "resize":
        return False
    return bool(obj["spec"].get("nodeName")) and obj["spec"] != old["spec"]


def _node_of(nodes: Objects, operation: Operation) -> Json:
    name = (operation.obj or {})["spec"]["nodeName"]
    node = nodes.get(name)
    if node is None:
        raise forbidden("pods", "", operation.name, f"node {go_quote(name)} not found")
    return node


def _refusal(operation: Operation, why: str, cause: str) -> ApiError:
    return forbidden("pods", "", operation.name, why, (Cause(cause, ""),))


def _lacking(pod: Json, node: Json) -> Iterator[str]:
    """What the pod asks for and the node has not, CPU in thousandths, memory in bytes."""
    asked, room = usage(PODS, pod), (node.get("status") or {}).get("allocatable") or {}
    for name, factor in (("cpu", 1000), ("memory", 1)):
        wanted = asked.get(f"requests.{name}")
        had = -(-parse_quantity(str(room.get(name) or "0")).value * factor // 1)
        if wanted is not None and (amount := -(-wanted.value * factor // 1)) > had:
            yield f"{name}, requested: {amount}, allocatable: {had}"


def _needed(spec: Json, old: Json) -> Iterator[str]:
    if spec.get("resources") != old.get("resources"):
        yield OF_POD
    before = {item.get("name"): item.get("resources") for item in items(old, "initContainers")}
    for container in items(spec, "initContainers"):
        # A sidecar is resized as any container.
        restarts = container.get("restartPolicy") == "Always"
        if not restarts and container.get("resources") != before.get(container.get("name")):
            yield OF_INIT
            return
