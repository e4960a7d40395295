"""What a large request leaves behind: freed on a thread, in parts, and only where nobody else refers to it."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from typing import Any, ClassVar

import pytest

from apimachinery.http import workers
from apimachinery.http.leftovers import free, free_what_was_made


class Part:
    """Notes the threads on which parts go."""

    gone: ClassVar[list[str]] = []

    def __del__(self) -> None:
        self.gone.append(threading.current_thread().name)


def _raise(made: list[Any]) -> None:
    raise ValueError("no")


def test_what_work_made_is_freed_on_a_thread() -> None:
    async def story() -> None:
        workers.begin_request(keeps_what_is_made=True)
        made = await workers.apart(lambda: {"a": [Part(), {"b": (Part(),)}]})
        with pytest.raises(ValueError, match="no"):
            await workers.apart(lambda: _raise([[Part()]]))
        del made
        assert not Part.gone
        free_what_was_made()
        later = await workers.apart(lambda: [Part()])
        assert len(later) == 1

    Part.gone.clear()
    asyncio.run(story())
    while len(Part.gone) < 4:
        time.sleep(0.01)
    apart = [name for name in Part.gone if name.startswith("kubewright-work")]
    # What came after the request is its holder's: freed by whoever lets go of it last, which may be its thread too.
    assert len(apart) >= 3


def test_what_somebody_refers_to_stays_whole() -> None:
    shared: dict[str, Any] = {"a": [1, {"b": [2]}], "c": {}}
    inner: list[Any] = [{"d": [3]}]
    values: list[Any] = [shared, {"x": inner, "y": [shared, (inner, shared)]}, (shared,)]
    free(values)
    assert values == []
    assert shared == {"a": [1, {"b": [2]}], "c": {}}
    assert inner == [{"d": [3]}]


def test_the_frames_of_a_fault_let_go() -> None:
    part = Part()
    there = weakref.ref(part)

    def fail(held: list[Any]) -> None:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("no") from None

    try:
        fail([{"a": part}])
    except ValueError as error:
        fault = error
    del part
    assert there() is not None
    free([fault])
    assert there() is None
    assert fault.__traceback__ is None and fault.__context__ is None
