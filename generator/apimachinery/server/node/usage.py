"""What pods and nodes use of cpu (cores) and memory (bytes): as they are annotated, or plausibly.

The figures are exact where metrics.k8s.io spells them: cpu in billionths of a core, memory in bytes. So autoscalers
here and clients of that API calculate with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

from apimachinery.kinds.amounts import parsed
from apimachinery.meta.json import Json
from apimachinery.server.node.behaviour import PREFIX, NodeBehaviour

METRICS: Final = ("cpu", "memory")
_STEP: Final = {"cpu": Fraction(1, 10**9), "memory": Fraction(1)}
_LEAST: Final = {"cpu": Fraction(1, 1000), "memory": Fraction(8 << 20)}
_OF_NODE: Final = {"cpu": Fraction(1, 10), "memory": Fraction(512 << 20)}
"""Of what is on a node besides pods."""


class NodeUsage:
    """What is measured on the nodes of a server: nothing on those that are out of order."""

    def __init__(self, behaviour: NodeBehaviour) -> None:
        self._behaviour = behaviour
        self._shapes = {shape.name: shape for shape in behaviour.shapes}

    def of_pod(self, pod: Json, metric: str) -> dict[str, Fraction]:
        """What each running container of a pod uses; empty where nobody measures."""
        if metric not in METRICS or not self._measures(pod["spec"].get("nodeName", "")):
            return {}
        given = self._behaviour.usage(pod, metric) if self._behaviour.usage is not None else ""
        plan = self._behaviour.plan_of(pod)
        return _divided(pod, given or (plan.cpu if metric == "cpu" else plan.memory), metric)

    def of_node(self, node: Json, pods: Iterable[Json], metric: str) -> Fraction | None:
        """What a node uses: what its pods do and a little for itself, or as it is annotated; None where nobody
        measures."""
        if not self._measures(node["metadata"]["name"]):
            return None
        given = parsed((node["metadata"].get("annotations") or {}).get(PREFIX + metric, ""))
        if given is not None:
            return _whole(given.value, metric)
        used = (amount for pod in pods for amount in self.of_pod(pod, metric).values())
        return sum(used, _OF_NODE[metric])

    def _measures(self, node: str) -> bool:
        shape = self._shapes.get(node)
        return shape is not None and self._behaviour.faults.is_reachable(shape)


def _divided(pod: Json, given: str, metric: str) -> dict[str, Fraction]:
    """What the containers plausibly use, or what they are given, divided as that is."""
    used = {name: _whole(max(amount / 10, _LEAST[metric]), metric) for name, amount in _requests(pod, metric)}
    stated = parsed(given)
    if stated is None or not used:
        return used
    total, plausible = _whole(stated.value, metric), sum(used.values(), Fraction(0))
    shares = {name: _whole(total * amount / plausible, metric) for name, amount in used.items()}
    shares[next(iter(shares))] += total - sum(shares.values())
    return shares


def _whole(amount: Fraction, metric: str) -> Fraction:
    """An amount in the steps in which its metric is measured."""
    return max(amount // _STEP[metric], 0) * _STEP[metric]


def _requests(pod: Json, metric: str) -> Iterator[tuple[str, Fraction]]:
    """The running containers of a pod and what they request."""
    status, spec = pod.get("status") or {}, pod["spec"]
    if status.get("phase") != "Running":
        return
    running = {
        each["name"]
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status.get(key) or ()
        if "running" in (each.get("state") or {})
    }
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if each["name"] in running:
            amount = parsed(((each.get("resources") or {}).get("requests") or {}).get(metric, "0"))
            yield each["name"], Fraction(0) if amount is None else amount.value
