"""Which of several nodes is best for a pod: what it prefers, how its like spread, where there is most room."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from apimachinery.meta.json import Json

from . import terms
from .board import Board, NodePods, requests_of
from .node_terms import term_matches
from .tolerations import PREFER, untolerated

MOST = 100
"""What each kind of score is at most, before its weight."""


def best_of(board: Board, pod: Json, places: Sequence[NodePods]) -> NodePods:
    """The best place; of equals the one with the fewest pods, then the first by name."""
    scores = {place.name: Fraction(0) for place in places}
    for weight, raw, rising in (
        (2, {place.name: _preferred(pod, place) for place in places}, True),
        (3, {place.name: Fraction(len(untolerated(pod, place.node, (PREFER,)))) for place in places}, False),
        (2, _neighbours(board, pod, places), True),
        (2, _spread(board, pod, places), False),
        (1, {place.name: _room(pod, place) for place in places}, True),
    ):
        for name, score in _scaled(raw, rising).items():
            scores[name] += weight * score
    return min(places, key=lambda place: (-scores[place.name], len(place.pods), place.name))


def _scaled(raw: dict[str, Fraction], rising: bool) -> dict[str, Fraction]:
    """Scores between 0 and ``MOST``; the same for all where nothing differs."""
    low, high = min(raw.values()), max(raw.values())
    if low == high:
        return dict.fromkeys(raw, Fraction(0))
    return {
        name: MOST * (value - low if rising else high - value) / (high - low) for name, value in raw.items()
    }


def _preferred(pod: Json, place: NodePods) -> Fraction:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms_ = affinity.get(terms.PREFERRED) or ()
    return Fraction(sum(each["weight"] for each in terms_ if term_matches(each["preference"], place.node)))


def _neighbours(board: Board, pod: Json, places: Sequence[NodePods]) -> dict[str, Fraction]:
    scores = {place.name: Fraction(0) for place in places}
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for weight, term in terms.preferred(pod, kind):
            counts = terms.domains(board, term, pod)
            for place in places:
                scores[place.name] += sign * weight * counts[place.labels.get(term["topologyKey"], "")]
    return scores


def _spread(board: Board, pod: Json, places: Sequence[NodePods]) -> dict[str, Fraction]:
    """How many of its like are near: by its own constraints, or else those of the same controller on a node."""
    scores = {place.name: Fraction(0) for place in places}
    constraints = terms.spread(pod, "ScheduleAnyway")
    for constraint in constraints:
        counts = terms.spread_counts(board, pod, constraint)
        for place in places:
            scores[place.name] += counts[place.labels.get(constraint["topologyKey"], "")]
    owner = _owner(pod)
    if not constraints and owner:
        for place in places:
            scores[place.name] = Fraction(sum(_owner(other) == owner for other in place.pods))
    return scores


def _owner(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return str(next((each["uid"] for each in owners if each.get("controller")), ""))


def _room(pod: Json, place: NodePods) -> Fraction:
    """The part of cpu and memory that is left with the pod."""
    wanted = requests_of(pod)
    parts = [
        1 - (place.used.get(name, Fraction(0)) + wanted.get(name, Fraction(0))) / place.capacity[name]
        for name in ("cpu", "memory")
        if place.capacity.get(name)
    ]
    return sum(parts, Fraction(0))
