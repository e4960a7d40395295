"""Hypothesis: any story of writes, told to a driver and to a naive model, gives the same states and watches."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apimachinery.storage.interface import (
    REVISION_MARK,
    Compacted,
    Event,
    Record,
    Storage,
    StorageError,
    Value,
)
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.url import open_storage
from apimachinery.storage.watch_cache import WatchCache

KEYS = [f"/core/pods/{ns}/{name}" for ns in ("a", "a-b") for name in ("x", "xy", "y")]
steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(("write", "write", "write", "delete", "create", "stale")), st.sampled_from(KEYS)
        ),
        st.tuples(st.just("compact"), st.integers(0, 5)),
    ),
    min_size=5,
    max_size=60,
)
SCOPES = ["/core/pods/", "/core/pods/a/", "/core/pods/a-b/", *KEYS[:2]]


def value(text: str) -> Value:
    return Value.cut(
        f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{REVISION_MARK}"}},"v":"{text}"}}'.encode()
    )


def within(key: str, scope: str) -> bool:
    return key.startswith(scope) if scope.endswith("/") else key == scope


async def write(storage: Storage, verb: str, key: str, expected: int, number: int) -> Record:
    match verb:
        case "create":
            return await storage.create(key, value(str(number)))
        case "update":
            return await storage.update(key, expected, value(str(number)))
        case "delete":
            return await storage.delete(key, expected, value(str(number)))
        case _:
            return await storage.update(key, expected - 1, value("stale"))


async def play(storage: Storage, story: list[tuple[str, object]]) -> None:
    cache = await WatchCache.open(storage)
    pods = cache.resource("/core/pods/")
    base = storage.revision
    states: dict[int, dict[str, tuple[int, bytes]]] = {base: {}}
    log: list[tuple[int, str, bool]] = []
    now: dict[str, tuple[int, bytes]] = {}
    live: list[Event] = []
    await storage.watch("", base, live.extend)
    compacted = base
    for number, (verb, key) in enumerate(story):
        if verb == "compact":
            compacted = max(compacted, storage.revision - int(str(key)), base)
            await storage.compact(compacted)
            continue
        assert isinstance(key, str)
        if verb == "write":
            verb = "update" if key in now else "create"
        expected = now[key][0] if key in now else base
        allowed = (verb == "create") != (key in now) and verb != "stale"
        if not allowed:
            with pytest.raises(StorageError):
                await write(storage, verb, key, expected, number)
            continue
        record = await write(storage, verb, key, expected, number)
        assert record.revision == base + len(log) + 1
        log.append((record.revision, key, verb == "delete"))
        if verb == "delete":
            del now[key]
        else:
            now[key] = (record.revision, record.value)
        states[record.revision] = dict(now)

    assert [(e.revision, e.record.key, e.deleted) for e in live] == log
    for revision, state in states.items():
        for scope in SCOPES:
            wanted = {k: v for k, v in state.items() if within(k, scope)}
            if revision < compacted:
                with pytest.raises(Compacted):
                    await pods.snapshot_at(scope, revision)
                continue
            snapshot = await pods.snapshot_at(scope, revision)
            assert [(r.key, (r.revision, r.value)) for r in snapshot.records] == sorted(wanted.items())
            if scope.endswith("/"):
                page = await storage.list(scope, at=revision)
                assert [(r.key, (r.revision, r.value)) for r in page.records] == sorted(wanted.items())
            since, reached = [], revision
            while (recent := pods.recent_events(scope, reached)) is None:
                older, reached = await pods.older_events(scope, reached, 3)
                since += [(e.revision, e.record.key, e.deleted) for e in older]
            since += [(e.revision, e.record.key, e.deleted) for e in recent]
            assert since == [e for e in log if e[0] > revision and within(e[1], scope)]
            if scope.endswith("/"):
                replayed: list[Event] = []
                (await storage.watch(scope, revision, replayed.extend)).close()
                assert [(e.revision, e.record.key, e.deleted) for e in replayed] == since
    for event in live:
        before = states[event.revision - 1].get(event.record.key)
        assert (event.previous.revision if event.previous else None) == (before[0] if before else None)
    for scope in SCOPES:
        snapshot = pods.snapshot(scope)
        assert snapshot.revision == storage.revision
    cache.close()


@given(steps)
def test_memory_is_the_model(story):
    asyncio.run(play(MemoryStorage(), story))


@settings(deadline=None, max_examples=40)
@given(steps)
def test_sqlite_is_the_model(story):
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            storage = await SqliteStorage.open(Path(folder) / "x.db")
            await play(storage, story)
            await storage.close()

    asyncio.run(run())


@settings(deadline=None, max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=steps)
def test_etcd_is_the_model(etcd_member, story):
    async def run() -> None:
        storage = await open_storage(f"{etcd_member}?prefix=/{uuid.uuid4().hex}")
        await play(storage, story)
        await storage.close()

    asyncio.run(run())


@settings(deadline=None, max_examples=40)
@given(steps)
def test_a_small_window_answers_as_a_large_one(story):
    from apimachinery.storage import watch_cache

    kept = watch_cache.WINDOW_EVENTS
    watch_cache.WINDOW_EVENTS = 3
    try:
        asyncio.run(play(MemoryStorage(), story))
    finally:
        watch_cache.WINDOW_EVENTS = kept


def test_the_garbage_collector_passes_over_records() -> None:
    """There may be millions."""
    record = Record("/core/pods/a/b", 7, 5, b"{}")
    record.memo = {"shown": b"{}"}
    assert not gc.is_tracked(record)
    assert record == Record("/core/pods/a/b", 7, 5, b"{}", foreign=True)
    assert record != Record("/core/pods/a/b", 8, 5, b"{}")
    with pytest.raises(TypeError):
        hash(record)
