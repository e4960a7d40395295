"""Whether what clients saw is a history of one object at a time: linearizability, key by key.

Every answer names the revision of the object that it is about, and revisions are the order that the storage claims. So
a history needs no search: it is linearizable if that very order explains it. For each key:

- an object at one revision has one content, that of the write that was answered with it, or of one whose answer
  never came;
- what was answered before another request began is not newer than its answer (no stale read, no lost write), and a
  write has a revision of its own;
- a write that named a revision follows on that one directly, and one that was refused had a reason: a newer one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Read:
    """A read without resourceVersion: the revision and content that it was answered."""

    key: str
    began: float
    ended: float
    revision: int
    content: str


@dataclass(frozen=True, slots=True)
class Write:
    """A write over ``expected``, 0 for one that created. ``revision`` is 0 where no answer came."""

    key: str
    began: float
    ended: float
    expected: int
    revision: int
    content: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A write over ``expected`` that was answered 409."""

    key: str
    began: float
    ended: float
    expected: int


Operation = Read | Write | Refused


def faults_of_history(operations: Iterable[Operation]) -> list[str]:
    """What no order explains; empty for a linearizable history."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_key[operation.key].append(operation)
    return [fault for key in sorted(by_key) for fault in _faults(key, by_key[key])]


def _faults(key: str, operations: list[Operation]) -> list[str]:
    faults: list[str] = []
    content: dict[int, str] = {}
    follows: dict[int, int] = {}
    unknown = {o.content for o in operations if isinstance(o, Write) and not o.revision}
    for one in operations:
        if isinstance(one, Write) and one.revision:
            if one.revision in content:
                faults.append(f"{key}: two writes were answered revision {one.revision}")
            content[one.revision] = one.content
            if one.expected in follows:
                faults.append(f"{key}: two writes over revision {one.expected}")
            follows[one.expected] = one.revision
    for one in operations:
        if isinstance(one, Read):
            known = content.setdefault(one.revision, one.content)
            if known != one.content:
                faults.append(f"{key}: revision {one.revision} is {known!r} and {one.content!r}")
            elif one.content not in unknown and not _written(one, operations):
                faults.append(f"{key}: nobody wrote {one.content!r}")
    known_revisions = sorted(content)
    for one in operations:
        if isinstance(one, Write) and one.revision and one.expected:
            between = [r for r in known_revisions if one.expected < r < one.revision]
            if between:
                faults.append(
                    f"{key}: {one.revision} was written over {one.expected}, though {between[0]} was there"
                )
        elif isinstance(one, Refused) and not unknown:
            if not any(r > one.expected for r in known_revisions):
                faults.append(f"{key}: a write over {one.expected}, which nobody changed, was refused")
    return faults + _out_of_time(key, operations)


def _written(read: Read, operations: Sequence[Operation]) -> bool:
    return any(isinstance(o, Write) and o.content == read.content for o in operations)


def _out_of_time(key: str, operations: Sequence[Operation]) -> list[str]:
    """Answers that are older than what was answered before they were asked for."""
    answered = [o for o in operations if isinstance(o, Read | Write) and o.revision]
    by_end = sorted(answered, key=lambda o: o.ended)
    faults: list[str] = []
    newest, place = 0, 0
    for one in sorted(answered, key=lambda o: o.began):
        while place < len(by_end) and by_end[place].ended < one.began:
            newest = max(newest, by_end[place].revision)
            place += 1
        if one.revision < newest or (isinstance(one, Write) and one.revision == newest):
            kind = "a read" if isinstance(one, Read) else "a write"
            faults.append(f"{key}: {kind} was answered {one.revision} after {newest} had been answered")
    return faults


def faults_of_watches(
    seen: Sequence[Sequence[tuple[int, int, Sequence[tuple[int, str]]]]], answered: Iterable[tuple[int, str]]
) -> list[str]:
    """What is wrong with the events of watchers. Each watcher has spans: from a revision, to a revision, the events
    between; a new span begins where a client had to list again. ``answered`` are the writes that were acknowledged."""
    faults: list[str] = []
    every: dict[int, str] = {}
    for spans in seen:
        for _, _, events in spans:
            for revision, name in events:
                if every.setdefault(revision, name) != name:
                    faults.append(f"revision {revision} is an event of {every[revision]} and of {name}")
    order = sorted(every)
    for number, spans in enumerate(seen):
        for after, until, events in spans:
            revisions = [revision for revision, _ in events]
            if any(a >= b for a, b in pairwise(revisions)):
                faults.append(f"watcher {number}: events are doubled or out of order")
            wanted = [revision for revision in order if after < revision <= until]
            if revisions != wanted:
                lost = sorted({*wanted} - {*revisions})
                faults.append(
                    f"watcher {number}: {len(lost)} events lost between {after} and {until}: {lost[:3]}"
                )
    for revision, name in answered:
        if order and order[0] <= revision <= order[-1] and every.get(revision) != name:
            faults.append(f"no watcher saw the write of {name} at {revision}")
    return faults
