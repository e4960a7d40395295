"""One piece of work after the other, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from apimachinery.storage.own_thread import OwnThread


def test_work_is_done_in_order_and_answered_on_the_loop():
    async def story() -> None:
        thread, log = OwnThread("kubewright-test"), []
        going = threading.Event()

        def work(name: str) -> str:
            assert threading.current_thread().name == "kubewright-test"
            assert going.wait(30)
            log.append(name)
            return name

        first = thread.do(lambda: work("a"), then=lambda: log.append("a is known"))
        second = thread.do(lambda: work("b"))
        second.cancel()
        third = thread.do(lambda: log[7], then=lambda: log.append("never"))
        going.set()
        assert await first == "a"
        assert log[:2] == ["a", "a is known"]
        with pytest.raises(IndexError):
            await third
        last = thread.do(lambda: work("c"))
        thread.end()
        assert log == ["a", "a is known", "c"], "what nobody waits for is left out"
        assert await last == "c"

    asyncio.run(story())


def test_a_fault_of_what_follows_does_not_leave_anybody_waiting():
    async def story() -> None:
        faults = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: faults.append(said["exception"]))
        thread = OwnThread("kubewright-test")
        assert await asyncio.wait_for(thread.do(lambda: 7, then=lambda: [][0]), 30) == 7
        assert [type(fault) for fault in faults] == [IndexError]
        thread.end()

    asyncio.run(story())


def test_a_loop_that_was_closed_does_not_disturb_it():
    made = []

    async def story() -> OwnThread:
        thread = OwnThread("kubewright-test")
        thread.do(lambda: made.append("a"))
        return thread

    thread = asyncio.run(story())
    thread.end()
    assert made in (["a"], []), "what was not begun by then may have been given up with its loop"
