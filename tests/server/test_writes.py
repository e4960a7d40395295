"""Writes driven without an event loop, in every order; and the driver that runs them on one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.test_api import serve

from apimachinery.http.steps import HEAVY, AtOnce, Wait, Waiting, compute
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.order import PluginsInOrder
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write import driver as at_work
from apimachinery.server.write.creating import new_uid
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.driver import Driver
from apimachinery.server.write.effects import Begin, Create, Current, Delete, Effect, Steps, Update
from apimachinery.server.write.pipeline import Pipeline
from apimachinery.storage.interface import (
    VALUE_BYTES,
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    Value,
)
from apimachinery.wire.json import decode

Json = dict[str, Any]


class Table:
    """A storage of a few lines, which answers effects."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.revision = 0

    def answer(self, effect: Effect) -> Record | None:
        if isinstance(effect, Current):
            return self.records.get(effect.target.key)
        if isinstance(effect, Create):
            key = effect.target.key
            if key in self.records:
                raise KeyExists(key)
            return self._put(key, effect.value, 0)
        if isinstance(effect, Update | Delete):
            return self._change(effect)
        assert effect is HEAVY or isinstance(effect, Begin), effect
        return None

    def _change(self, effect: Update | Delete) -> Record:
        record = effect.record
        if (present := self.records.get(record.key)) is None:
            raise KeyNotFound(record.key)
        if present.revision != record.revision:
            raise RevisionConflict(record.revision, present)
        if isinstance(effect, Update):
            return self._put(record.key, effect.value, record.created)
        del self.records[record.key]
        return record

    def _put(self, key: str, value: Value, created: int) -> Record:
        self.revision += 1
        shown = value.at(self.revision) if value.tail else value.head  # of a dry run
        made = Record(key, self.revision, created or self.revision, shown)
        self.records[key] = made
        return made

    def obj(self, key: str) -> Json:
        shown: Json = decode(self.records[key].value)
        return shown


class Under:
    """Steps under way, and what came of them."""

    def __init__(self, steps: Steps[Any]) -> None:
        self.steps = steps
        self.effects: list[str] = []
        self.result: Any = None
        self.effect: Effect | None = next(steps)

    def go(self, table: Table) -> None:
        """Meets one effect."""
        assert self.effect is not None
        self.effects.append(type(self.effect).__name__)
        try:
            try:
                answer = table.answer(self.effect)
            except Exception as fault:
                self.effect = self.steps.throw(fault)
            else:
                self.effect = self.steps.send(answer)
        except StopIteration as end:
            self.effect, self.result = None, end.value
        except ApiError as refusal:
            self.effect, self.result = None, refusal

    def end(self, table: Table) -> Any:
        while self.effect is not None:
            self.go(table)
        return self.result


_api: list[AssembledApi] = []


def maps() -> Served:
    """The resource of config maps; made once, on a loop that has ended."""
    if not _api:
        _api.append(asyncio.run(serve()))
    found = _api[0].catalog.find("", "v1", "configmaps")
    assert found is not None
    return found


def target(name: str = "a", *, dry_run: bool = False) -> WriteTarget:
    return WriteTarget(maps(), "default", name, WriteOptions(dry_run=dry_run, manager="m"))


def config(name: str = "a", count: int = 0) -> Json:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "data": {"count": str(count)},
    }


def counted(obj: Json) -> Json:
    obj["data"]["count"] = str(int(obj["data"]["count"]) + 1)
    return obj


PIPELINE = Pipeline(PluginsInOrder(()), {})
KEY = "/core/configmaps/default/a"


def deletion(name: str = "a", *, dry_run: bool = False) -> Steps[Any]:
    class Writer:
        driver, pipeline = None, PIPELINE

    return Deleter(Writer(), PluginsInOrder(())).steps(target(name, dry_run=dry_run), DeletionOptions())  # type: ignore[arg-type]


def test_a_write_is_plain_code_that_asks() -> None:
    table = Table()
    created = Under(PIPELINE.create(target(), config()))
    assert created.end(table).created and created.effects == ["Begin", "Create"]
    assert table.obj(KEY)["metadata"]["resourceVersion"] == "1"
    changed = Under(PIPELINE.update(target(), counted))
    changed.end(table)
    assert changed.effects == ["Current", "Update"] and table.obj(KEY)["data"] == {"count": "1"}
    same = Under(PIPELINE.update(target(), lambda obj: obj))
    assert same.end(table).record is table.records[KEY] and same.effects == ["Current"]
    gone = Under(deletion())
    assert not gone.end(table).stays and gone.effects == ["Current", "Begin", "Delete"] and not table.records


def test_a_name_that_is_taken_is_generated_again() -> None:
    table = Table()
    obj = config()
    obj["metadata"] = {"generateName": "x-"}
    steps = PIPELINE.create(WriteTarget(maps(), "default", "", WriteOptions()), obj)
    first = Under(steps)
    first.go(table)
    assert isinstance(first.effect, Create)
    table.records[first.effect.target.key] = Record(first.effect.target.key, 1, 1, b"{}")
    assert first.end(table).created and first.effects == ["Begin", "Create", "Create"]


@given(st.lists(st.integers(0, 4), max_size=60))
def test_no_change_is_lost_in_any_order_of_events(order: list[int]) -> None:
    """Five writers count up in one object, each of whose effects are met whenever ``order`` says."""
    table = Table()
    Under(PIPELINE.create(target(), config())).end(table)
    writers = [Under(PIPELINE.update(target(), counted)) for _ in range(5)]
    for number in order:
        if writers[number].effect is not None:
            writers[number].go(table)
    for writer in writers:
        writer.end(table)
    assert table.obj(KEY)["data"] == {"count": "5"}
    assert sorted(writer.result.record.revision for writer in writers) == [2, 3, 4, 5, 6]


@given(st.lists(st.integers(0, 5), max_size=40))
def test_creates_and_deletions_in_any_order_leave_one_story(order: list[int]) -> None:
    """Of three creates and three deletions each success fits those before it: the object is there, or it is not."""
    table = Table()
    story: list[str] = []
    writes = [Under(PIPELINE.create(target(), config())) for _ in range(3)]
    writes += [Under(deletion()) for _ in range(3)]

    def go(number: int) -> None:
        write = writes[number]
        if write.effect is not None:
            before = len(table.records)
            write.go(table)
            if len(table.records) != before:
                story.append("made" if number < 3 else "gone")

    for number in order:
        go(number)
    for number, write in enumerate(writes):
        while write.effect is not None:
            go(number)
    results = [write.result for write in writes]
    refused = {"AlreadyExists", "NotFound"}
    assert all(not isinstance(each, ApiError) or each.reason in refused for each in results)
    assert sum(not isinstance(each, ApiError) for each in results) == len(story)
    assert story == ["made", "gone"] * (len(story) // 2) + ["made"] * (len(story) % 2)


CHANGES: list[Callable[[Json], Json]] = [
    counted,
    lambda obj: obj,
    lambda obj: {**obj, "metadata": {**obj["metadata"], "finalizers": []}},
    lambda obj: {**obj, "data": {"no name": "x"}},
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
@pytest.mark.parametrize("deleting", [False, True])
def test_a_dry_run_asks_for_the_same_and_shows_the_same(number: int, deleting: bool) -> None:
    seen = []
    for dry_run in (False, True):
        table = Table()
        begun = config()
        begun["metadata"]["finalizers"] = ["x.example.com/y"]
        Under(PIPELINE.create(target(), begun)).end(table)
        if deleting:
            Under(deletion()).end(table)
        write = Under(PIPELINE.update(target(dry_run=dry_run), lambda obj: CHANGES[number](deepcopy(obj))))
        write.end(table)
        if isinstance(write.result, ApiError):
            seen.append((write.effects, write.result.status()))
            continue
        shown = decode(write.result.record.value)
        for key in ("resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "managedFields"):
            shown["metadata"].pop(key, None)
        seen.append((write.effects, shown))
    assert seen[0] == seen[1]


# The driver.


class Storage:
    """Notes what is stored."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.conflicts = 0

    async def create(self, key: str, value: Value) -> Record:
        self.stored.append(key)
        return Record(key, 1, 1, value.at(1))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        if self.conflicts:
            self.conflicts -= 1
            raise RevisionConflict(expected, Record(key, expected + 1, 1, b""))
        return Record(key, expected + 1, 1, value.at(expected + 1))

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        return Record(key, expected, 1, b"")


class Allocation:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def secure(self, name: str) -> None:
        self.told.append(f"secure {name}")

    async def keep(self) -> None:
        self.told.append("keep")

    async def drop(self) -> None:
        self.told.append("drop")


def drive(story: Callable[[Driver, Storage], Awaitable[None]]) -> None:
    storage = Storage()
    cache = _api[0].writer.driver._cache if maps() else None
    assert cache is not None
    asyncio.run(_within(story(Driver(storage, cache), storage)))


async def _within(story: Awaitable[None]) -> None:
    await story


def where() -> str:
    name = threading.current_thread().name
    return (
        "loop" if threading.current_thread() is threading.main_thread() else name.rpartition("_")[0] or name
    )


def test_a_stretch_runs_where_its_weight_says() -> None:
    async def story(driver: Driver, storage: Storage) -> None:
        def steps(*effects: Effect) -> Steps[list[str]]:
            seen = [where()]
            for effect in effects:
                yield effect
                seen.append(where())
            return seen

        async def none() -> None:
            return None

        large, small = target(), target()
        large.large = True
        wait = Wait(none)
        assert await driver.run(steps(Begin(small), wait)) == ["loop"] * 3
        assert await driver.run(steps(Begin(large), wait)) == ["loop", "kubewright-work", "kubewright-work"]
        assert await driver.run(steps(wait, HEAVY, wait)) == ["loop"] * 2 + ["kubewright-work"] * 2
        assert await driver.run(steps(Begin(small)), large=True) == ["kubewright-work"] * 2

    drive(story)


def test_what_is_noted_alone_does_not_end_a_stretch_on_a_thread(monkeypatch) -> None:
    """The way to the loop and back again is long where others ask for much."""
    stretches: list[int] = []

    async def counted(weight: int, work: Any, *args: Any) -> Any:
        stretches.append(weight)
        return await compute(weight, work, *args)

    async def story(driver: Driver, storage: Storage) -> None:
        async def none() -> None:
            return None

        def steps(*effects: Effect) -> Steps[None]:
            yield from effects

        large = target()
        large.large = True
        await driver.run(steps(HEAVY, Begin(large), HEAVY, Wait(none), HEAVY, Begin(large)), large=True)
        assert len(stretches) == 2

    monkeypatch.setattr(at_work, "compute", counted)
    drive(story)


def test_a_failure_of_what_is_awaited_is_raised_where_it_was_asked_for() -> None:
    async def story(driver: Driver, storage: Storage) -> None:
        async def fail() -> None:
            raise ValueError("no")

        def steps() -> Steps[str]:
            for heavy in (False, True):
                if heavy:
                    yield HEAVY
                with pytest.raises(ValueError, match="no"):
                    yield Wait(fail)
            yield Wait(fail)
            return "unreachable"

        with pytest.raises(ValueError, match="no"):
            await driver.run(steps())

    drive(story)


def test_of_what_is_asked_at_once_the_first_in_order_counts_and_the_rest_is_dropped() -> None:
    async def story(driver: Driver, storage: Storage) -> None:
        go, dropped = asyncio.Event(), []

        def late() -> Steps[None]:
            yield Wait(go.wait)
            raise ValueError("first in order")

        def early() -> Steps[None]:
            go.set()
            raise KeyError("first in time")
            yield HEAVY

        def never() -> Steps[None]:
            try:
                yield Wait(asyncio.Event().wait)
            finally:
                dropped.append(True)

        def steps() -> Steps[None]:
            yield AtOnce([late(), early(), never()])

        with pytest.raises(ValueError, match="first in order"):
            await driver.run(steps())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert dropped == [True]

        def answers() -> Steps[list[int]]:
            def one(number: int) -> Steps[int]:
                yield Wait(lambda: asyncio.sleep(0))
                return number

            shown: list[int] = yield AtOnce([one(1), one(2)])
            return shown

        assert await driver.run(answers()) == [1, 2]

    drive(story)


def test_what_was_allocated_ends_with_the_write_one_way_or_the_other() -> None:
    async def story(driver: Driver, storage: Storage) -> None:
        value, there = Value(b'{"a":', b"}"), Record(KEY, 1, 1, b"{}")

        def steps(effects: Iterator[Effect], given: WriteTarget, made: Allocation) -> Steps[None]:
            yield Begin(given)
            given.allocation = made
            for effect in effects:  # noqa: UP028 - an iterator takes no answers
                yield effect

        async def told(effects: Callable[[WriteTarget], list[Effect]], dry_run: bool = False) -> list[str]:
            given, made = target(dry_run=dry_run), Allocation()
            with suppress(RevisionConflict, ValueError):
                await driver.run(steps(iter(effects(given)), given, made))
            return made.told

        async def fail() -> None:
            raise ValueError

        assert await told(lambda given: [Create(given, value)]) == ["secure a", "keep"]
        assert await told(lambda given: []) == ["keep"], "nothing was to be stored"
        assert await told(lambda given: [Wait(fail)]) == ["drop"]
        assert await told(lambda given: [Create(given, value), Wait(fail)]) == ["secure a", "keep"]
        assert await told(lambda given: [Create(given, value)], dry_run=True) == ["keep"]
        storage.conflicts = 1
        assert await told(lambda given: [Update(given, there, value)]) == ["secure a", "drop"]
        given, made = target(), Allocation()
        hanging = asyncio.ensure_future(driver.run(steps(iter([Wait(asyncio.Event().wait)]), given, made)))
        await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert made.told == ["drop"]

    drive(story)


def test_what_is_begun_stops_before_it_stores() -> None:
    async def story(driver: Driver, storage: Storage) -> None:
        course = await driver.begin(PIPELINE.create(target(), config()))
        assert storage.stored == []
        assert (await course.to_end()).created
        assert storage.stored == [KEY]
        ended = await driver.begin(PIPELINE.create(target("b", dry_run=True), config("b")))
        shown = decode((await ended.to_end()).record.value)
        assert storage.stored == [KEY] and "resourceVersion" not in shown["metadata"]

        def nothing() -> Steps[int]:
            yield HEAVY
            return 7

        assert await (await driver.begin(nothing())).to_end() == 7

    drive(story)


def test_who_changes_an_object_that_is_being_written_reads_what_was_written() -> None:
    """What would be computed before that would have to be computed again."""

    async def story(driver: Driver, storage: Storage) -> None:
        log: list[str] = []
        going = asyncio.Event()

        class Slow(Storage):
            async def create(self, key: str, value: Value) -> Record:
                await going.wait()
                log.append("stored")
                return await super().create(key, value)

        driver._storage = Slow()

        def change(given: WriteTarget) -> Steps[None]:
            yield Current(given)
            log.append(f"reads {given.name}")

        creating = asyncio.ensure_future(driver.run(PIPELINE.create(target(), config())))
        await asyncio.sleep(0)
        changing = [asyncio.ensure_future(driver.run(change(target(name)))) for name in "aba"]
        for _ in range(3):
            await asyncio.sleep(0)
        assert log == ["reads b"], "of another object nothing is under way"
        going.set()
        await asyncio.gather(creating, *changing)
        assert log == ["reads b", "stored", "reads a", "reads a"]

    drive(story)


def test_an_object_that_became_large_is_worked_on_elsewhere() -> None:
    threads: list[str] = []

    class Seen(Plugin):
        def admit(self, operation: Operation) -> Waiting:
            threads.append(where())
            return None

    async def play() -> None:
        api = await serve()
        pipeline = Pipeline(PluginsInOrder([Seen()]), {})
        obj = config("big")
        obj["data"] = {"x": "y" * (VALUE_BYTES // 8)}
        await api.writer.create(target("big"), obj)
        await api.writer.create(target("small"), config("small"))
        for name in ("big", "small"):
            await api.writer.driver.run(pipeline.update(target(name), lambda obj: {**obj, "immutable": True}))
        await api.stop()

    asyncio.run(play())
    assert threads == ["kubewright-work", "loop"]


def test_uids_are_random_ones_of_rfc_9562() -> None:
    made = {new_uid() for _ in range(200)}
    assert len(made) == 200
    for text in made:
        uid = UUID(text)
        assert (str(uid), uid.version, uid.variant) == (text, 4, RFC_4122)
    assert {text[19] for text in made} == {*"89ab"}
