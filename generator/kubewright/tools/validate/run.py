"""Documents judged in several processes, their findings in the order of the input."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from itertools import pairwise

from apimachinery.meta.release import rules_of
from kubewright.processes import usable_processes
from kubewright.source.text import KUSTOMIZATIONS
from kubewright.tools.validate.check import CheckOptions, Judgement, is_clean, judge
from kubewright.tools.validate.inputs import Chunk, decoded
from kubewright.tools.validate.kinds import Kinds

BATCH_BYTES = 64 * 1024
WORTH_A_PROCESS = 256 * 1024
"""Below that many bytes a second process costs more than it saves."""

_TYPE = re.compile(rb"^(?:apiVersion|kind):[^\n]*", re.MULTILINE)

Progress = Callable[[int], None]

_state: tuple[Sequence[Chunk], Kinds, CheckOptions] | None = None
"""What a worker has from its parent by being forked: nothing of it is sent."""


def judge_all(
    chunks: Sequence[Chunk],
    kinds: Kinds,
    options: CheckOptions,
    *,
    jobs: int = 0,
    progress: Progress | None = None,
) -> list[Judgement]:
    """The judgement of each document, in order. CRDs among the documents count for the others.

    ``jobs`` 0 takes as many processes as there are processors, as far as there is work for them.
    """
    with rules_of(kinds.release):
        return _judge_all(chunks, kinds, options, jobs, progress)


def _judge_all(
    chunks: Sequence[Chunk], kinds: Kinds, options: CheckOptions, jobs: int, progress: Progress | None
) -> list[Judgement]:
    judged = _judge(chunks, kinds, options, jobs, progress)
    missing = {key for each in judged for key in each.missing}
    if missing and _learn(chunks, kinds, {kind for _, kind in missing}):
        again = [index for index, each in enumerate(judged) if each.missing]
        for index, each in zip(
            again, _judge([chunks[i] for i in again], kinds, options, jobs, None), strict=True
        ):
            judged[index] = each
    return judged


def _learn(chunks: Sequence[Chunk], kinds: Kinds, wanted: set[str]) -> bool:
    """Makes those CRDs among the documents known that may describe a kind wanted."""
    names = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(wanted)))
    learnt = False
    for chunk in chunks:
        if b"CustomResourceDefinition" in chunk.content and names.search(chunk.content):
            value = decoded(chunk)
            items = value.get("items") if isinstance(value, dict) and value.get("kind") == "List" else [value]
            for item in items if isinstance(items, list) else ():
                learnt |= kinds.add_crd(item)
    if learnt:
        kinds.forget_missing()
    return learnt


def _judge(
    chunks: Sequence[Chunk], kinds: Kinds, options: CheckOptions, jobs: int, progress: Progress | None
) -> list[Judgement]:
    """Judges equal documents once where nothing is to be said of them; a finding is of one place in one file."""
    first: dict[tuple[bytes, bool, bool], int] = {}
    leaders = [first.setdefault(_judged_alike(chunk), number) for number, chunk in enumerate(chunks)]
    own = [*first.values()]
    judged = dict(
        zip(own, _judge_each([chunks[i] for i in own], kinds, options, jobs, progress), strict=True)
    )
    more = [i for i, leader in enumerate(leaders) if leader != i and not is_clean(judged[leader])]
    judged.update(zip(more, _judge_each([chunks[i] for i in more], kinds, options, jobs, None), strict=True))
    return [judged.get(i) or Judgement(objects=judged[leader].objects) for i, leader in enumerate(leaders)]


def _judged_alike(chunk: Chunk) -> tuple[bytes, bool, bool]:
    """All that a judgement without findings depends on; a broken document is JSON if its file is called so."""
    return chunk.content, chunk.file.endswith(".json"), chunk.file.endswith(KUSTOMIZATIONS)


def _judge_each(
    chunks: Sequence[Chunk], kinds: Kinds, options: CheckOptions, jobs: int, progress: Progress | None
) -> list[Judgement]:
    size = sum(len(chunk.content) for chunk in chunks)
    workers = min(
        jobs or os.cpu_count() or 1, max(1, size // WORTH_A_PROCESS) if jobs == 0 else jobs, len(chunks)
    )
    if usable_processes(workers) < 2:
        found: list[Judgement] = []
        for chunk in chunks:
            found.append(judge(chunk, kinds, options))
            if progress is not None:
                progress(len(found))
        return found
    import multiprocessing  # not above: many runs judge few documents, and need none

    global _state
    judged = {number: judge(chunks[number], kinds, options) for number in _first_of_each_kind(chunks)}
    rest = [number for number in range(len(chunks)) if number not in judged]
    _state = ([chunks[number] for number in rest], kinds, options)
    try:
        with multiprocessing.get_context("fork").Pool(workers, _end_when_told) as pool:
            numbers = iter(rest)
            for batch in pool.imap(_judge_batch, _batches(_state[0])):
                for each, number in zip(batch, numbers, strict=False):
                    judged[number] = Judgement(objects=each) if isinstance(each, int) else each
                if progress is not None:
                    progress(len(judged))
            return [judged[number] for number in range(len(chunks))]
    finally:
        _state = None


def _first_of_each_kind(chunks: Sequence[Chunk]) -> list[int]:
    """The numbers of documents that are judged before work is shared, so that each kind is compiled once for all."""
    seen: dict[frozenset[bytes], int] = {}
    for number, chunk in enumerate(chunks):
        seen.setdefault(frozenset(_TYPE.findall(chunk.content, 0, 500)), number)
    return [*seen.values()]


def _end_when_told() -> None:
    """Restores SIGTERM: with a handler of this process, its workers could not be ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _batches(chunks: Sequence[Chunk]) -> list[range]:
    """The numbers of consecutive documents that are judged together."""
    starts: list[int] = []
    size = BATCH_BYTES
    for number, chunk in enumerate(chunks):
        if size >= BATCH_BYTES:
            starts.append(number)
            size = 0
        size += len(chunk.content)
    return [range(low, high) for low, high in pairwise([*starts, len(chunks)])]


def _judge_batch(batch: range) -> list[Judgement | int]:
    """The judgements of some documents; of those that nothing is to be said of, the number of their objects."""
    assert _state is not None
    chunks, kinds, options = _state
    judged = [judge(chunks[number], kinds, options) for number in batch]
    return [each.objects if is_clean(each) else each for each in judged]
