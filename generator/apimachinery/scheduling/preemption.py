"""Which pods give way to one of higher priority that no node can take."""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.meta.json import Json

from .board import Board, NodePods, priority_of
from .filters import prepare


def victims_for(board: Board, pod: Json, places: Sequence[NodePods]) -> tuple[str, list[Json]]:
    """The node where the fewest and least important pods have to go, and which; none where that helps nowhere.

    On each node all pods of lower priority are taken away, and put back one by one, the most important first, as long
    as the pod still has its place.
    """
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "", []
    choices = []
    for here in places:
        lower = [other for other in here.pods if priority_of(other) < priority_of(pod)]
        victims = _fewest(board, pod, here, lower) if lower else None
        if victims:
            highest = max(map(priority_of, victims))
            choices.append((highest, sum(map(priority_of, victims)), len(victims), here.name, victims))
    if not choices:
        return "", []
    *_, name, victims = min(choices, key=lambda choice: choice[:4])
    return name, victims


def _fewest(board: Board, pod: Json, here: NodePods, lower: Sequence[Json]) -> list[Json] | None:
    if not _takes(board, pod, here, lower):
        return None
    victims = list(lower)
    for other in sorted(
        lower, key=lambda each: (-priority_of(each), each["metadata"].get("creationTimestamp", ""))
    ):
        fewer = [each for each in victims if each is not other]
        if _takes(board, pod, here, fewer):
            victims = fewer
    return victims


def _takes(board: Board, pod: Json, here: NodePods, gone: Sequence[Json]) -> bool:
    """Whether a node takes a pod once some are gone."""
    trial = Board((), ())
    trial.namespaces = board.namespaces
    trial.places = {**board.places, here.name: here.without(gone)}
    return not any(prepare(trial, pod)(trial.places[here.name]))
