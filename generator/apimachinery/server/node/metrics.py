"""The objects of metrics.k8s.io: what is measured on simulated nodes, made when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError, not_found
from apimachinery.meta.json import Json
from apimachinery.meta.quantity import Quantity
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.decoded import DecodedObjects
from apimachinery.server.node.metrics_package import GROUP
from apimachinery.server.node.usage import METRICS, NodeUsage
from apimachinery.storage.interface import Record
from apimachinery.wire.json import encode

WINDOW: Final = "15s"
_FORMS: Final = {"cpu": "decimal", "memory": "binary"}


class PodMetrics:
    """The pods of metrics.k8s.io: those that run on nodes that are in order."""

    def __init__(self, decoded: DecodedObjects, usage: NodeUsage) -> None:
        self._decoded, self._usage = decoded, usage

    async def records(self, served: Served, scope: str) -> list[Record]:
        made = (self._record(served, pod) for pod in _objects(self._decoded, "pods", served, scope))
        return [each for each in made if each is not None]

    def missing(self, served: Served, namespace: str, name: str) -> ApiError:
        """A pod without figures is called by the kind that it lacks."""
        if _found(self._decoded, "pods", namespace, name):
            return not_found("podmetrics", GROUP, f"{namespace}/{name}")
        return not_found("pods", "", name)

    def _record(self, served: Served, pod: Json) -> Record | None:
        used = {metric: self._usage.of_pod(pod, metric) for metric in METRICS}
        if not used["cpu"]:
            return None
        containers = [
            {"name": name, "usage": _spelled({metric: used[metric][name] for metric in METRICS})}
            for name in used["cpu"]
        ]
        return _record(served, pod, {"containers": containers})


class NodeMetrics:
    """The nodes of metrics.k8s.io: those that are simulated and in order."""

    def __init__(self, decoded: DecodedObjects, usage: NodeUsage) -> None:
        self._decoded, self._usage = decoded, usage

    async def records(self, served: Served, scope: str) -> list[Record]:
        on: dict[str, list[Json]] = {}
        pods = self._decoded.resource("pods")
        for pod in [] if pods is None else pods.all():
            on.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        made = []
        for node in _objects(self._decoded, "nodes", served, scope):
            name = node["metadata"]["name"]
            used = {metric: self._usage.of_node(node, on.get(name, ()), metric) for metric in METRICS}
            known = {metric: amount for metric, amount in used.items() if amount is not None}
            if known:
                made.append(_record(served, node, {"usage": _spelled(known)}))
        return made

    def missing(self, served: Served, namespace: str, name: str) -> ApiError:
        if _found(self._decoded, "nodes", namespace, name):
            return not_found("nodemetrics", GROUP, name)
        return not_found("node", "", name)


def _objects(decoded: DecodedObjects, resource: str, served: Served, scope: str) -> list[Json]:
    """The objects whose figures have keys that begin with ``scope``, which may be the key of one."""
    held = decoded.resource(resource)
    if held is None:
        return []
    namespace, name = name_of(scope, served)
    if name:
        one = held.get(namespace, name)
        return [] if one is None else [one]
    return held.all(namespace)


def _found(decoded: DecodedObjects, resource: str, namespace: str, name: str) -> bool:
    held = decoded.resource(resource)
    return held is not None and held.get(namespace, name) is not None


def _spelled(used: Mapping[str, Fraction]) -> Json:
    return {metric: str(Quantity(amount, _FORMS[metric])) for metric, amount in used.items()}


def _record(served: Served, obj: Json, figures: Json) -> Record:
    metadata = obj["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    made = {
        "kind": served.kind,
        "apiVersion": served.api_version,
        "metadata": {**kept, "creationTimestamp": now()},
        "timestamp": now(),
        "window": WINDOW,
        **figures,
    }
    return Record(served.key(metadata.get("namespace", ""), metadata["name"]), 0, 0, encode(made))
