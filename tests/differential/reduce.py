"""Delta debugging: the smallest conversation that still shows a difference (Zeller and Hildebrandt, 2002).

First whole steps are left out, then headers and parameters, then parts of bodies; each time the difference must stay
what it was, which is what its signature says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.differential.conversation import Conversation, Step, with_steps

Shows = Callable[[Conversation], bool]


def reduced(conversation: Conversation, shows: Shows, budget: int = 150) -> Conversation:
    """A conversation with less in it that ``shows`` the same; at most ``budget`` tries."""
    tries = [budget]

    def still(steps: list[Step]) -> bool:
        if tries[0] <= 0 or not steps:
            return False
        tries[0] -= 1
        return shows(with_steps(conversation, steps))

    steps = without_parts(conversation.steps, still)
    for number in range(len(steps) - 1, -1, -1):
        steps = _smaller_step(steps, number, still)
    smaller = with_steps(conversation, steps)
    if smaller.crds and not any(crd["spec"]["group"] in str(steps) for crd in smaller.crds):
        smaller.crds = []
    return smaller


def without_parts(parts: list[Any], still: Callable[[list[Any]], bool]) -> list[Any]:
    """The fewest of ``parts``, in order, for which ``still`` holds: ddmin over complements."""
    count = 2
    while len(parts) >= 2:
        size = max(1, len(parts) // count)
        for start in range(0, len(parts), size):
            rest = parts[:start] + parts[start + size :]
            if rest and still(rest):
                parts, count = rest, max(2, count - 1)
                break
        else:
            if size == 1:
                break
            count = min(len(parts), count * 2)
    return parts


def _smaller_step(steps: list[Step], number: int, still: Callable[[list[Step]], bool]) -> list[Step]:
    def put(step: Step) -> list[Step]:
        return [*steps[:number], step, *steps[number + 1 :]]

    step = steps[number]
    for key in ("headers", "query", "save"):
        for name in list(step.get(key) or {}):
            smaller = copy.deepcopy(step)
            del smaller[key][name]
            if not smaller[key]:
                del smaller[key]
            if still(put(smaller)):
                step = smaller
    if isinstance(step.get("body"), dict | list):
        step = _smaller_body(step, lambda smaller: still(put(smaller)))
    return put(step)


def _smaller_body(step: Step, still: Callable[[Step], bool]) -> Step:
    """Leaves out members and items, from the outside in."""
    todo: list[tuple[Any, ...]] = [()]
    while todo:
        place = todo.pop(0)
        value = _at(step["body"], place)
        keys = (
            list(value)
            if isinstance(value, dict)
            else list(range(len(value) - 1, -1, -1))
            if isinstance(value, list)
            else []
        )
        for key in keys:
            smaller = copy.deepcopy(step)
            del _at(smaller["body"], place)[key]
            if still(smaller):
                step = smaller
        value = _at(step["body"], place)
        children = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        todo += [(*place, key) for key in children]
    return step


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value
