"""The laws of work queues, on a clock that tests move."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.queue.async_work_queue import AsyncWorkQueue
from apimachinery.queue.backlog import (
    Backlog,
    ExponentialBackoff,
    LongestOf,
    OverallLimit,
    default_limiter,
)
from apimachinery.queue.clock import FakeClock
from apimachinery.queue.work_queue import WorkQueue


def test_a_key_is_in_line_once() -> None:
    backlog: Backlog[str] = Backlog()
    for key in "aba":
        backlog.add(key)
    assert [backlog.take()[0] for _ in range(3)] == ["a", "b", None]


def test_a_key_that_is_added_while_it_runs_runs_once_more() -> None:
    backlog: Backlog[str] = Backlog()
    backlog.add("a")
    assert backlog.take()[0] == "a"
    backlog.add("a")
    backlog.add("a")
    assert backlog.take()[0] is None  # it is under way
    backlog.done("a")
    assert backlog.take()[0] == "a"
    backlog.done("a")
    assert backlog.take() == (None, None)
    assert backlog.idle


def test_of_two_delays_the_earlier_counts() -> None:
    clock = FakeClock()
    backlog: Backlog[str] = Backlog(clock=clock)
    backlog.add_after("a", 10)
    backlog.add_after("a", 3)
    backlog.add_after("a", 7)
    assert backlog.take() == (None, 3.0)
    clock.advance(3)
    assert backlog.take()[0] == "a"
    backlog.done("a")
    clock.advance(10)
    assert backlog.take() == (None, None)


def test_a_stopped_queue_gives_what_is_in_line_and_takes_nothing() -> None:
    backlog: Backlog[str] = Backlog()
    backlog.add("a")
    backlog.add_after("b", 1)
    backlog.stop()
    backlog.add("c")
    backlog.add_after("d", 1)
    assert backlog.take()[0] == "a"
    assert backlog.take() == (None, None)


def test_failures_double_the_wait_and_a_success_ends_that() -> None:
    backoff = ExponentialBackoff(first=0.005, longest=1000.0)
    assert [backoff.delay("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert backoff.delay("b") == 0.005
    assert backoff.failures("a") == 4
    for _ in range(100):
        assert backoff.delay("a") <= 1000.0
    backoff.forget("a")
    assert backoff.delay("a") == 0.005


def test_all_failures_together_are_limited() -> None:
    clock = FakeClock()
    limit = OverallLimit(qps=10, burst=3, clock=clock)
    assert [round(limit.delay(n), 3) for n in range(5)] == [0, 0, 0, 0.1, 0.2]
    both = LongestOf(ExponentialBackoff(first=0.05), limit)
    assert both.delay("x") == pytest.approx(0.3)
    assert both.failures("x") == 1
    both.forget("x")
    assert both.failures("x") == 0
    assert default_limiter(clock).delay("y") == 0.005


@given(st.lists(st.tuples(st.sampled_from(["add", "after", "take", "done", "pass"]), st.integers(0, 3))))
def test_no_key_is_lost_and_none_runs_twice_at_once(steps: list[tuple[str, int]]) -> None:
    clock = FakeClock()
    backlog: Backlog[int] = Backlog(clock=clock)
    running: set[int] = set()
    owed: set[int] = set()
    for what, key in steps:
        if what == "add":
            backlog.add(key)
            owed.add(key)
        elif what == "after":
            backlog.add_after(key, key)
            owed.add(key)
        elif what == "take":
            taken, _ = backlog.take()
            if taken is not None:
                assert taken not in running
                running.add(taken)
                owed.discard(taken)
        elif what == "done" and key in running:
            running.discard(key)
            backlog.done(key)
        else:
            clock.advance(1)
    for key in running:
        backlog.done(key)
    clock.advance(100)
    left = set()
    while (taken := backlog.take()[0]) is not None:
        left.add(taken)
        backlog.done(taken)
    assert owed <= left
    assert backlog.idle


def test_workers_wait_for_keys_and_for_time() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    taken: list[str] = []

    def work() -> None:
        while (key := queue.get()) is not None:
            taken.append(key)
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    queue.add("now")
    queue.add_after("later", 60)
    assert not queue.wait_until_idle(0)
    while not queue.backlog.settled or "now" not in taken:
        pass
    assert taken == ["now"]
    clock.advance(61)
    while "later" not in taken:
        pass
    queue.stop()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()


def test_tasks_wait_for_keys_and_for_time() -> None:
    async def story() -> list[str]:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        taken: list[str] = []

        async def work() -> None:
            while (key := await queue.get()) is not None:
                taken.append(key)
                queue.done(key)

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(work())
            await asyncio.to_thread(queue.add, "from a thread")
            queue.add_rate_limited("later")
            clock.advance(1)
            while len(taken) < 2:
                await asyncio.sleep(0.001)
            assert await queue.wait_until_idle(1)
            queue.stop()
        return taken

    assert asyncio.run(story()) == ["from a thread", "later"]
