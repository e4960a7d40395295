"""Nodes and the pods on them, as the scheduler knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from apimachinery.kinds.amounts import aggregate, parsed
from apimachinery.meta.json import Json

PODS = "pods"


def requests_of(pod: Json) -> dict[str, Fraction]:
    """What a pod takes of a node."""
    amounts = {name: amount.value for name, amount in aggregate(pod["spec"], "requests").items()}
    for name, text in (pod["spec"].get("overhead") or {}).items():
        if (amount := parsed(text)) is not None:
            amounts[name] = amounts.get(name, Fraction(0)) + amount.value
    return {**amounts, PODS: Fraction(1)}


def priority_of(pod: Json) -> int:
    """The priority of a pod."""
    return int(pod["spec"].get("priority") or 0)


@dataclass(slots=True)
class NodePods:
    """A node, the pods on it, and what they take."""

    node: Json
    pods: list[Json] = field(default_factory=list)
    used: dict[str, Fraction] = field(default_factory=dict)
    capacity: dict[str, Fraction] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.node["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node["metadata"].get("labels") or {}

    def add(self, pod: Json) -> None:
        """Puts a pod there."""
        self.pods.append(pod)
        for name, amount in requests_of(pod).items():
            self.used[name] = self.used.get(name, Fraction(0)) + amount

    def without(self, gone: Iterable[Json]) -> NodePods:
        """The node without some of its pods."""
        uids = {pod["metadata"]["uid"] for pod in gone}
        made = NodePods(self.node, capacity=self.capacity)
        for pod in self.pods:
            if pod["metadata"]["uid"] not in uids:
                made.add(pod)
        return made


class Board:
    """All nodes, by name."""

    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json], namespaces: Iterable[Json] = ()) -> None:
        self.places = {node["metadata"]["name"]: _empty(node) for node in nodes}
        self.namespaces = {
            each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in namespaces
        }
        for pod in pods:
            place = self.places.get(pod["spec"].get("nodeName") or "")
            if place is not None and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                place.add(pod)

    def all_pods(self) -> Iterable[tuple[NodePods, Json]]:
        """Every pod and where it is."""
        return ((place, pod) for place in self.places.values() for pod in place.pods)


def _empty(node: Json) -> NodePods:
    given = (node.get("status") or {}).get("allocatable") or {}
    amounts = {name: parsed(text) for name, text in given.items()}
    return NodePods(
        node, capacity={name: amount.value for name, amount in amounts.items() if amount is not None}
    )
