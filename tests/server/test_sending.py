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


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("leaves", [0, 2])
def test_who_waits_longest_is_next(leaves: int, goes_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has its next write ready at once took every turn, and others waited for seconds."""
    clock = iter(range(100_000))
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(sending, "TURN_SECONDS", 0.5)
    made = [0] * 6

    async def write_without_end(pace: Pace, number: int) -> None:
        while True:
            began = await pace.begin(goes_on=goes_on)
            made[number] += 1
            pace.end(began)

    async def story() -> None:
        pace = Pace()
        writers = [asyncio.create_task(write_without_end(pace, number)) for number in range(len(made))]
        for _ in range(60):
            await asyncio.sleep(0)
        for writer in writers[:leaves]:
            writer.cancel()
        before = sum(made)
        while sum(made) < before + 200:
            await asyncio.sleep(0)
        for writer in writers:
            writer.cancel()

    asyncio.run(story())
    rest = made[leaves:]
    assert min(rest) > 20 and max(rest) - min(rest) <= 3
