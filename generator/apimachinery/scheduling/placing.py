"""Where the next pod goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from apimachinery.meta.json import Json

from .board import Board, NodePods
from .filters import prepare
from .preemption import victims_for
from .scores import best_of


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod goes; or nowhere, for reasons with the number of nodes that each is true of. ``victims`` give way on
    ``nominated`` for it."""

    node: str = ""
    reasons: Counter[str] = field(default_factory=Counter)
    nominated: str = ""
    victims: tuple[Json, ...] = ()

    def message(self, nodes: int) -> str:
        """The text of the condition PodScheduled."""
        if not nodes:
            return "no nodes available to schedule pods"
        parts = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"0/{nodes} nodes are available: {', '.join(parts)}."


def place(board: Board, pod: Json) -> Placement:
    """Decides for one pod."""
    refuses = prepare(board, pod)
    reasons: Counter[str] = Counter()
    free: list[NodePods] = []
    curable: list[NodePods] = []
    for here in board.places.values():
        found = list(refuses(here))
        if not found:
            free.append(here)
        reasons.update({reason.text for reason in found})
        if found and all(reason.curable for reason in found):
            curable.append(here)
    if free:
        return Placement(best_of(board, pod, free).name)
    nominated, victims = victims_for(board, pod, curable)
    return Placement("", reasons, nominated, tuple(victims))
