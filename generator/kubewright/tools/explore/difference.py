"""What a write would make of an object, line by line, and who made each difference.

A line that is new has an ``origin``: ``you`` where the sent document says it, ``admission`` where a policy or
webhook did, ``server`` for the rest, which is defaults and what the server fills in. An apply shows who it was:
what admission changes belongs to the applier's name with the operation Update, and a default to nobody. Other
writes own all that changes, so there everything that was not sent counts as the server's.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from apimachinery.merge.managed_fields import APPLY, UPDATE
from apimachinery.merge.owners import Ownership
from kubewright.tools.explore.lines import OwnedLine, lines_of

MOST_LINES = 4_000
"""What is compared line by line between the first and the last difference; more is shown as one block replaced."""
_VOLATILE = frozenset({"metadata.resourceVersion", "metadata.generation"})
Json = dict[str, Any]


def difference(
    before: Json | None, after: Json | None, sent: Json | None = None, manager: str = ""
) -> list[Json]:
    """The lines of both, each with ``mark``: same, removed or added, and the origin of what is added."""
    old = _lines(before)
    ownership = Ownership.of(after) if after is not None else Ownership({})
    new = lines_of(after, ownership) if after is not None else []
    sent_fields = {line.field: line.text.strip() for line in _lines(sent)}
    shown: list[Json] = []
    for kind, old_from, old_to, new_from, new_to in _opcodes(old, new):
        if kind == "equal":
            shown += [
                {"text": line.text, "field": line.field, "mark": "same"} for line in new[new_from:new_to]
            ]
            continue
        shown += [
            {"text": line.text, "field": line.field, "mark": "removed"} for line in old[old_from:old_to]
        ]
        for line in new[new_from:new_to]:
            origin = _origin(line, ownership, sent_fields, manager) if sent is not None else ""
            shown.append({"text": line.text, "field": line.field, "mark": "added", "origin": origin})
    return shown


def _lines(obj: Json | None) -> list[OwnedLine]:
    return lines_of(obj, Ownership({})) if obj is not None else []


def _origin(line: OwnedLine, ownership: Ownership, sent: dict[str, str], manager: str) -> str:
    if line.field in _VOLATILE:
        return "server"
    owners = [ownership.managers[number].owner for number in line.owners]
    operations = {owner.operation for owner in owners if owner.manager == manager}
    if APPLY in operations or sent.get(line.field) == line.text.strip():
        return "you"
    if UPDATE in operations and any(
        m.owner.operation == APPLY and m.owner.manager == manager for m in ownership.managers
    ):
        return "admission"
    return "server"


def _opcodes(old: list[OwnedLine], new: list[OwnedLine]) -> list[tuple[str, int, int, int, int]]:
    """As difflib's, with equal ends taken off first, for it takes the square of what differs."""
    a = [(line.path, line.text) for line in old]
    b = [(line.path, line.text) for line in new]
    first, last = 0, 0
    while first < min(len(a), len(b)) and a[first] == b[first]:
        first += 1
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        last += 1
    middle_a, middle_b = a[first : len(a) - last], b[first : len(b) - last]
    if max(len(middle_a), len(middle_b)) > MOST_LINES:
        inner = [("replace", 0, len(middle_a), 0, len(middle_b))]
    else:
        inner = [*SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes()]
    found = [(kind, i + first, j + first, k + first, m + first) for kind, i, j, k, m in inner]
    return [
        ("equal", 0, first, 0, first),
        *found,
        ("equal", len(a) - last, len(a), len(b) - last, len(b)),
    ]
