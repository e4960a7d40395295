"""What a write would make of an object, line by line, and who made each difference.

A line that is new has an ``origin``:

- ``you``: the sent document says it;
- ``server``: a default, or what the server keeps itself. Defaults come with structures that the document adds, and take
  the place of fields that an applier gives up;
- ``admission``: the rest, which a policy or a webhook has changed. No answer says who did, and managedFields
  do not have it; yet an object that is stored has all its defaults already, so what changes in a part that was there
  before, and was not sent, is no default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from apimachinery.merge.managed_fields import APPLY
from apimachinery.merge.owners import Ownership
from kubewright.tools.explore.lines import OwnedLine, Path, lines_of

MOST_LINES = 4_000
"""What is compared line by line between the first and the last difference; more is shown as one block replaced."""
_KEPT_BY_SERVER = ("f:resourceVersion", "f:generation", "f:uid", "f:creationTimestamp")
Json = dict[str, Any]


def difference(
    before: Json | None, after: Json | None, sent: Json | None = None, manager: str = ""
) -> list[Json]:
    """The lines of both, each with ``mark``: same, removed or added, and the origin of what is added."""
    old = _lines(before)
    new = _lines(_in_order_of(after, before) if before is not None else after)
    origins = _Origins(before or {}, old, _lines(sent), manager) if sent is not None else None
    shown: list[Json] = []
    for kind, old_from, old_to, new_from, new_to in _opcodes(old, new):
        if kind == "equal":
            shown += [_shown(line, "same") for line in new[new_from:new_to]]
            continue
        shown += [_shown(line, "removed") for line in old[old_from:old_to]]
        for line in new[new_from:new_to]:
            added = _shown(line, "added")
            if origins is not None:
                added["origin"] = origins.of(line.path, line.text.strip())
            shown.append(added)
    return shown


def _shown(line: OwnedLine, mark: str) -> Json:
    return {"text": line.text, "field": line.field, "mark": mark}


def _lines(obj: Json | None) -> list[OwnedLine]:
    return lines_of(obj, Ownership({})) if obj is not None else []


def _in_order_of(after: Any, before: Any) -> Any:
    """``after`` with the fields of ``before`` in the order they have there: order is no difference."""
    if isinstance(after, dict) and isinstance(before, dict):
        known = {name: _in_order_of(after[name], before[name]) for name in before if name in after}
        return {**known, **{name: value for name, value in after.items() if name not in known}}
    if isinstance(after, list) and isinstance(before, list):
        pairs = [_in_order_of(item, other) for item, other in zip(after, before, strict=False)]
        return pairs + after[len(pairs) :]
    return after


def beside(objects: list[Json]) -> list[Json]:
    """The lines of several objects next to each other: each line has ``texts``, one for each object, which is empty
    where that object has nothing at the place, and says whether they differ."""
    columns = [_placed(_lines(_in_order_of(each, objects[0]))) for each in objects]
    tree: Json = {}
    for column in columns:
        for place in column:
            node = tree
            for element in place:
                node = node.setdefault(element, {})
    rows = [[column.get(place, "") for column in columns] for place in _leaves(tree, ()) if place]
    return [{"texts": texts, "differs": len(set(texts)) > 1} for texts in rows]


def _placed(lines: list[OwnedLine]) -> dict[Path, str]:
    """Lines by their place: their path, and a number, as all lines of a text have the path of its field."""
    counts: Counter[Path] = Counter()
    placed: dict[Path, str] = {}
    for line in lines:
        placed[*line.path, str(counts[line.path])] = line.text
        counts[line.path] += 1
    return placed


def _leaves(node: Json, place: Path) -> Iterator[Path]:
    if not node:
        yield place
    for element, below in node.items():
        yield from _leaves(below, (*place, element))


class _Origins:
    """Says who is behind a line that is new."""

    def __init__(self, before: Json, old: list[OwnedLine], sent: list[OwnedLine], manager: str) -> None:
        self._old = {line.path for line in old}
        self._sent = {line.path: line.text.strip() for line in sent}
        self._given_up = _applied_fields(before, manager)
        self._fields = {line.path: line.field for line in old}

    def of(self, path: Path, text: str) -> str:
        """The origin of the line of a path; its text tells whether it is as it was sent."""
        if path[:1] == ("f:status",) or (
            path[:1] == ("f:metadata",) and path[1:2] and path[1] in _KEPT_BY_SERVER
        ):
            return "server"
        if self._sent.get(path) == text:
            return "you"
        if path in self._old:
            return (
                "server" if self._fields[path] in self._given_up and path not in self._sent else "admission"
            )
        parent = path[:-1]
        if not parent or parent in self._old:
            return "admission"
        return "server" if parent in self._sent else self.of(parent, "")


def _applied_fields(obj: Json, manager: str) -> set[str]:
    """The fields that a manager has applied."""
    ownership = Ownership.of(obj)
    own = {n for n, each in enumerate(ownership.managers) if each.owner[:2] == (manager, APPLY)}
    return {line.field for line in lines_of(obj, ownership) if own.intersection(line.owners)}


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
