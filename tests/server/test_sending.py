"""How large writes share the loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from apimachinery.http import sending
from apimachinery.http.sending import Pace


def test_many_large_writes_are_made_in_many_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000))  # each look at the clock is a second later
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(sending, "TURN_SECONDS", 2.5)
    done: list[str] = []

    async def write(pace: Pace, number: int) -> None:
        began = await pace.begin()
        done.append(f"write {number}")
        pace.end(began)

    async def beat() -> None:
        while len(done) < 20:
            done.append("turn")
            await asyncio.sleep(0)

    async def story() -> None:
        pace = Pace()
        await asyncio.gather(beat(), *(write(pace, number) for number in range(7)))

    asyncio.run(story())
    writes = "".join("." if entry == "turn" else "w" for entry in done).rstrip(".")
    assert [len(run) for run in writes.split(".") if run] == [3, 3, 1]
    assert [entry for entry in done if entry != "turn"] == [f"write {number}" for number in range(7)]
