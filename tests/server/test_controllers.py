"""Controllers of the server: nothing that is heard is lost, and a key that fails keeps no other waiting."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from apimachinery.metrics import Metrics
from apimachinery.queue.backlog import ExponentialBackoff
from apimachinery.queue.clock import FakeClock
from apimachinery.queue.prometheus import PrometheusObserver
from apimachinery.server.controllers import controller
from apimachinery.server.controllers.controller import EVERYTHING, Controller, Source, everything, written
from apimachinery.storage.interface import Event, Record, RevisionConflict, StorageBusy
from apimachinery.storage.watch_cache import WatchCache


class Resource:
    """A resource of a cache that holds some records, and whose events are made by hand."""

    def __init__(self, *keys: str) -> None:
        self.records = [Record(key, 1, 1, b"{}") for key in keys]
        self.heard: list[Any] = []

    def resource(self, scope: str) -> Resource:
        return self

    def listen(self, scope: str, heard: Any) -> Any:
        self.heard.append(heard)
        return lambda: self.heard.remove(heard)

    def snapshot(self, scope: str) -> SimpleNamespace:
        return SimpleNamespace(records=self.records)

    def write(self, key: str, *, deleted: bool = False) -> None:
        for heard in self.heard:
            heard(Event(Record(key, 2, 2, b"{}"), None, deleted))


class Keys(Controller):
    """Notes what it looks at; keys may fail for ever, some times, or run until they are let go."""

    def __init__(self, *sources: Source, resource: Resource | None = None, workers: int = 1) -> None:
        super().__init__("keys", cast(WatchCache, resource or Resource()), *sources, workers=workers)
        self.seen: list[str] = []
        self.fails: dict[str, list[Exception]] = {}
        self.holds: dict[str, asyncio.Event] = {}
        self.again: dict[str, float] = {}

    async def reconcile(self, key: str) -> float | None:
        self.seen.append(key)
        if key in self.holds:
            await self.holds[key].wait()
        if self.fails.get(key):
            raise self.fails[key].pop()
        return self.again.pop(key, None)


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.001)


def test_many_keys_that_fail_hold_up_no_other_key() -> None:
    """60 of them made a new one wait for 30 s."""

    async def story() -> list[str]:
        keys = Keys()
        failing = [f"failing-{number}" for number in range(60)]
        for key in failing:
            keys.fails[key] = [StorageBusy() for _ in range(1000)]
            keys.queue.add(key)
        keys.start()
        await until(lambda: len(keys.seen) >= 60)
        keys.queue.add("new")
        await until(lambda: "new" in keys.seen)
        await keys.stop()
        return keys.seen[: keys.seen.index("new")]

    # Before it come those alone whose wait was over when it was added.
    before = asyncio.run(story())
    assert len(before) <= 60 * 3, "the new key came before any of them failed a fourth time"


def test_a_failing_key_waits_twice_as_long_each_time_up_to_a_minute() -> None:
    limiter = ExponentialBackoff(controller.FIRST_RETRY_SECONDS, controller.LONGEST_RETRY_SECONDS)
    waits = [limiter.delay("key") for _ in range(14)]
    assert waits[:4] == [0.02, 0.04, 0.08, 0.16]
    assert waits[-1] == 60.0


def test_waits_pass_by_the_clock_and_an_event_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> tuple[int, int, int]:
        keys, clock = Keys(), FakeClock()
        keys.queue.backlog.clock = clock
        keys.fails["key"] = [StorageBusy() for _ in range(9)]
        keys.queue.add("key")
        keys.start()
        await until(lambda: len(keys.seen) == 1 and keys.queue.failures("key") == 1)
        clock.advance(0.019)
        await asyncio.sleep(0.02)
        first = len(keys.seen)
        clock.advance(0.002)
        await until(lambda: keys.queue.failures("key") == 2)
        second = len(keys.seen)
        keys.queue.add("key")
        await until(lambda: keys.queue.failures("key") == 3)
        await keys.stop()
        return first, second, len(keys.seen)

    assert asyncio.run(story()) == (1, 2, 3)


def test_a_key_that_is_held_up_takes_one_worker() -> None:
    async def story() -> list[str]:
        keys = Keys(workers=2)
        keys.holds["held"] = asyncio.Event()
        for key in ("held", "held", "a", "b"):
            keys.queue.add(key)
        keys.start()
        await until(lambda: len(keys.seen) == 3)
        keys.queue.add("held")  # while it runs: one more turn, and none at once
        await until(lambda: keys.queue.backlog._line == type(keys.queue.backlog._line)())
        before = list(keys.seen)
        keys.holds["held"].set()
        await until(lambda: len(keys.seen) == 4)
        await keys.stop()
        return [*before, "|", *keys.seen[3:]]

    assert asyncio.run(story()) == ["held", "a", "b", "|", "held"]


def test_events_make_keys_due_and_so_does_what_is_stored() -> None:
    async def story() -> list[str]:
        resource = Resource("/pods/old")
        keys = Keys(
            Source("/pods/"),
            Source("/nodes/", lambda event: ("node",), listed=False),
            resource=resource,
        )
        keys.again["/pods/old"] = 0.0
        keys.start()
        await until(lambda: len(keys.seen) == 2)
        resource.write("/pods/new")
        await until(lambda: len(keys.seen) == 4)
        resource.write("/pods/gone", deleted=True)
        await until(lambda: len(keys.seen) == 5)
        await keys.stop()
        assert not resource.heard
        return keys.seen

    assert asyncio.run(story()) == ["/pods/old", "/pods/old", "/pods/new", "node", "node"]
    event = Event(Record("/pods/a", 1, 1, b"{}"), None)
    assert list(written(event)) == ["/pods/a"]
    assert list(everything(event)) == [EVERYTHING]


def test_failures_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> str:
        metrics = Metrics()
        keys = Keys()
        keys.fails = {
            "bug": [KeyError("bug")],
            "busy": [StorageBusy()],
            "late": [RevisionConflict(1, Record("late", 1, 1, b"{}"))],
        }
        for key in ("bug", "busy", "late", "good"):
            keys.queue.add(key)
        keys.start(PrometheusObserver(metrics))
        await until(lambda: len(keys.seen) == 7 and not len(keys.queue))
        await until(lambda: 'result="success"} 4' in metrics.text())
        await keys.stop()
        return metrics.text()

    with caplog.at_level(logging.WARNING, "kubewright.server.controllers"):
        text = asyncio.run(story())
    assert 'controller_runtime_reconcile_total{controller="keys",result="error"} 2' in text
    assert 'controller_runtime_reconcile_total{controller="keys",result="conflict"} 1' in text
    assert 'workqueue_retries_total{name="keys"} 3' in text
    assert 'workqueue_depth{name="keys"} 0' in text
    told = [
        (record.message, getattr(record, "key", ""), getattr(record, "failures", 0))
        for record in caplog.records
    ]
    again = "a controller tries a key again"
    # A conflict is everyday life.
    assert told == [("a controller failed", "bug", 0), (again, "bug", 1), (again, "busy", 1)]
