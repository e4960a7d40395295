"""Why a node cannot take a pod, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from apimachinery.meta.json import Json

from . import terms
from .board import PODS, Board, NodePods, requests_of
from .node_terms import asks_for
from .tolerations import CORDONED, untolerated

NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
Refuses = Callable[[NodePods], Iterator["NodeMisfit"]]


@dataclass(frozen=True, slots=True)
class NodeMisfit:
    """Why not; ``curable`` where it may help that other pods go."""

    text: str
    curable: bool = False


def prepare(board: Board, pod: Json) -> Refuses:
    """What to ask each node about a pod: what is the same for all of them is computed once."""
    out = terms.keeps_out(board, pod)
    near = [(term, terms.domains(board, term, pod)) for term in terms.required(pod, "podAffinity")]
    far = [(term, terms.domains(board, term, pod)) for term in terms.required(pod, "podAntiAffinity")]
    spreading = [
        (constraint, terms.spread_counts(board, pod, constraint))
        for constraint in terms.spread(pod, "DoNotSchedule")
    ]
    alone = all(not counts and terms.means(term, pod, pod, board) for term, counts in near)

    def refuses(here: NodePods) -> Iterator[NodeMisfit]:
        yield from _of_node(pod, here)
        yield from _of_room(pod, here)
        for term, counts in near:
            part = here.labels.get(term["topologyKey"])
            if part is None or (not counts[part] and not alone):
                yield NodeMisfit("node(s) didn't match pod affinity rules")
                break
        if any(counts[here.labels.get(term["topologyKey"], "")] for term, counts in far):
            yield NodeMisfit("node(s) didn't match pod anti-affinity rules", True)
        if any(here.labels.get(key) == part for key, part in out):
            yield NodeMisfit("node(s) didn't satisfy existing pods anti-affinity rules", True)
        for constraint, counts in spreading:
            yield from _of_spread(pod, here, constraint, counts)

    return refuses


def _of_node(pod: Json, here: NodePods) -> Iterator[NodeMisfit]:
    taints = untolerated(pod, here.node)
    if any(taint["key"] == CORDONED["key"] for taint in taints):
        yield NodeMisfit("node(s) were unschedulable")
    elif taints:
        yield NodeMisfit("node(s) had untolerated taint(s)")
    if not asks_for(pod, here.node):
        yield NodeMisfit("node(s) didn't match Pod's node affinity/selector")


def _of_room(pod: Json, here: NodePods) -> Iterator[NodeMisfit]:
    for name, amount in requests_of(pod).items():
        capacity = here.capacity.get(name, 0)
        if amount > 0 and here.used.get(name, 0) + amount > capacity:
            text = "Too many pods" if name == PODS else f"Insufficient {name}"
            yield NodeMisfit(text, curable=amount <= capacity)
    if ports_clash(pod, here.pods):
        yield NodeMisfit(NO_PORTS, curable=True)


def ports_clash(pod: Json, others: Iterable[Json]) -> bool:
    """Whether a pod wants a port of its node that one of the others has."""
    wanted = [*_ports(pod)]
    return bool(wanted) and any(
        _clash(port, taken) for other in others for taken in _ports(other) for port in wanted
    )


def _ports(pod: Json) -> Iterator[tuple[str, str, int]]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"]


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    every = "0.0.0.0" in (one[0], other[0])
    return one[1:] == other[1:] and (every or one[0] == other[0])


def _of_spread(pod: Json, here: NodePods, constraint: Json, counts: dict[str, int]) -> Iterator[NodeMisfit]:
    part = here.labels.get(constraint["topologyKey"])
    if part is None:
        yield NodeMisfit("node(s) didn't match pod topology spread constraints (missing required label)")
        return
    least = min(counts.values(), default=0)
    if len(counts) < (constraint.get("minDomains") or 1):
        least = 0
    own = terms.matches_itself(constraint, pod)
    if counts.get(part, 0) + own - least > constraint["maxSkew"]:
        yield NodeMisfit("node(s) didn't match pod topology spread constraints", curable=True)
