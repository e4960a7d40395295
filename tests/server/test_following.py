"""Controllers that follow resources: nothing that is heard is lost, and who fails keeps nobody waiting."""

from __future__ import annotations

import asyncio
import logging

import pytest

from apimachinery.server.controllers.following import Keyed, Rounds
from apimachinery.storage.interface import StorageBusy


class Keys(Keyed):
    def __init__(self) -> None:
        super().__init__("a key could not be looked at", pause=0.01)
        self.refuses = {"refused": 2}
        self.seen: list[str] = []

    async def reconcile(self, key: str) -> None:
        self.seen.append(key)
        if self.refuses.get(key):
            self.refuses[key] -= 1
            raise StorageBusy
        if key == "bug":
            raise KeyError(key)


class Turns(Rounds):
    def __init__(self) -> None:
        super().__init__("a round failed")
        self.count = 0

    async def round(self) -> None:
        self.count += 1
        if self.count == 1:
            self.wake()  # something happens meanwhile
        if self.count == 2:
            raise StorageBusy


def test_a_key_that_is_refused_comes_again_after_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> Keys:
        keys = Keys()
        for key in ("refused", "bug", "good"):
            keys.look_at(key)
        keys.start()
        await asyncio.sleep(0.1)
        keys.look_at("later")
        await asyncio.sleep(0.05)
        await keys.stop()
        keys.look_at("too late")
        return keys

    with caplog.at_level(logging.ERROR):
        keys = asyncio.run(story())
    assert keys.seen == ["refused", "bug", "good", "refused", "refused", "later"]
    assert [record.message for record in caplog.records] == ["a key could not be looked at"]


def test_what_happens_in_a_round_makes_another_and_a_refused_one_is_repeated() -> None:
    async def story() -> int:
        turns = Turns()
        turns.start()
        await asyncio.sleep(0.5)
        await turns.stop()
        return turns.count

    assert asyncio.run(story()) == 3
