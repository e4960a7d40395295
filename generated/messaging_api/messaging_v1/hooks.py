"""What a queue does that no schema and no declared rule can say. Written by hand: the generator leaves it alone.

A server that serves this package finds ``HOOKS`` here; see apimachinery.kinds.hooks for all that a kind can hook into.
"""

from __future__ import annotations

from apimachinery.kinds.hooks import Hooks, Json
from apimachinery.meta.field_errors import FieldError, Reason
from apimachinery.meta.quantity import parse_quantity


def check_queue(queue: Json, old: Json | None) -> list[FieldError]:
    """A queue may grow but not shrink: messages that are already in it would have nowhere to go."""
    before, after = _capacity(old or {}), _capacity(queue)
    if before and after and parse_quantity(after).value < parse_quantity(before).value:
        return [FieldError(Reason.FORBIDDEN, "spec.capacity", f"may not become less than {before}")]
    return []


def warn_of_queue(queue: Json, old: Json | None) -> list[str]:
    """A queue that is its own dead letter queue keeps what nobody can deal with for ever."""
    letter = (queue.get("spec") or {}).get("deadLetter") or {}
    if letter.get("queueName") and letter["queueName"] == (queue.get("metadata") or {}).get("name"):
        return ["spec.deadLetter.queueName: the queue is its own dead letter queue"]
    return []


def _capacity(queue: Json) -> str:
    return str((queue.get("spec") or {}).get("capacity") or "")


HOOKS = {
    "Queue": Hooks(
        validate=check_queue, warnings=warn_of_queue, selectable={"spec.ordering": "spec.ordering"}
    ),
}
