"""One suite over all drivers: what ``storage.interface`` promises, by the checklist of apiserver's storage tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.storage.followed import FollowedStorage

from apimachinery.storage import memory
from apimachinery.storage.interface import (
    REVISION_MARK,
    Compacted,
    Event,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    Storage,
    StorageClosed,
    Value,
)
from apimachinery.storage.url import open_storage

Story = Callable[[Storage], Awaitable[None]]
A, B, C = "/core/pods/ns/a", "/core/pods/ns/b", "/core/pods/ns/c"


OBJECT = (
    '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"%s","labels":{}},"v":"%s"}'
)


def value(text: str = "x") -> Value:
    return Value.cut((OBJECT % (REVISION_MARK, text)).encode())


def stored(revision: int, text: str = "x") -> bytes:
    return (OBJECT % (revision, text)).encode()


@pytest.fixture(params=["memory", "sqlite", "followed", "etcd"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Story], None]:
    """Runs a story on a fresh storage."""
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/log.db", "followed": "memory://"}
    url = urls.get(request.param) or request.getfixturevalue("etcd_url")

    async def run(story: Story) -> None:
        storage = await open_storage(url)
        if request.param == "followed":
            storage = await FollowedStorage.over(storage)
        try:
            await story(storage)
        finally:
            await storage.close()

    return lambda story: asyncio.run(run(story))


def names(events: list[Event]) -> list[tuple[str, str, int]]:
    return [
        ("DELETED" if e.deleted else "MODIFIED" if e.previous else "ADDED", e.record.key[-1], e.revision)
        for e in events
    ]


def test_a_new_store_is_empty_and_at_revision_one_where_it_is_nobody_elses(tell):
    async def story(s: Storage) -> None:
        assert s.compacted <= s.revision and (s.shared or (s.revision, s.compacted) == (1, 1))
        page = await s.list("")
        assert (list(page.records), page.revision, page.remaining) == ([], s.revision, 0)

    tell(story)


def test_create_takes_the_next_revision_and_puts_it_into_the_bytes(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        record = await s.create(A, value())
        assert (record.key, record.revision, record.created) == (A, base + 2, base + 2)
        assert record.value == stored(base + 2)
        assert await s.get(A) == record
        assert s.revision == base + 2

    tell(story)


def test_create_of_a_living_key_is_refused(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        await s.create(A, value())
        with pytest.raises(KeyExists):
            await s.create(A, value("y"))
        assert s.revision == base + 2

    tell(story)


def test_update_needs_the_newest_revision(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        first = await s.create(A, value())
        second = await s.update(A, first.revision, value("y"))
        assert (second.revision, second.created, second.value) == (base + 3, base + 2, stored(base + 3, "y"))
        with pytest.raises(RevisionConflict) as conflict:
            await s.update(A, first.revision, value("z"))
        assert conflict.value.current == second
        with pytest.raises(KeyNotFound):
            await s.update(B, base + 1, value())

    tell(story)


def test_delete_needs_the_newest_revision_and_shows_the_content_at_its_own(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        seen: list[Event] = []
        await s.watch("", base + 1, seen.extend)
        first = await s.create(A, value())
        second = await s.update(A, first.revision, value("y"))
        with pytest.raises(RevisionConflict):
            await s.delete(A, first.revision, value("y"))
        gone = await s.delete(A, second.revision, value("y"))
        assert (gone.revision, gone.value) == (base + 4, stored(base + 4, "y"))
        assert seen[-1].deleted and seen[-1].record == gone and seen[-1].previous == second
        assert await s.get(A) is None
        with pytest.raises(KeyNotFound):
            await s.delete(A, second.revision, value())

    tell(story)


def test_the_answer_to_a_delete_shows_the_last_content_and_so_does_the_event_where_the_log_is_owned(tell):
    async def story(s: Storage) -> None:
        seen: list[Event] = []
        await s.watch("", s.revision, seen.extend)
        first = await s.create(A, value("stored"))
        gone = await s.delete(A, first.revision, value("last"))
        assert gone.value == stored(gone.revision, "last")
        assert seen[-1].record.value == stored(gone.revision, "stored" if s.shared else "last")

    tell(story)


def test_a_marked_delete_is_an_update_and_a_deletion(tell):
    async def story(storage: Storage) -> None:
        seen: list[Event] = []
        await storage.watch("/core/", storage.revision, seen.extend)
        record = await storage.create(A, value())
        with pytest.raises(RevisionConflict):
            await storage.delete(A, record.revision - 1, value("last"), marked=True)
        last = await storage.delete(A, record.revision, value("last"), marked=True)
        assert (last.revision, last.value) == (record.revision + 2, stored(record.revision + 2, "last"))
        r = record.revision
        assert names(seen) == [("ADDED", "a", r), ("MODIFIED", "a", r + 1), ("DELETED", "a", r + 2)]
        assert seen[1].record.value == stored(r + 1, "last") and seen[2].previous == seen[1].record
        assert await storage.get(A) is None
        assert (await storage.get(A, at=r + 1)) == seen[1].record
        assert (await storage.create(A, value())).revision == r + 3

    tell(story)


def test_to_catch_up_is_to_see_what_was_acknowledged(tell):
    async def story(s: Storage) -> None:
        record = await s.create(A, value())
        await s.catch_up()
        assert s.revision >= record.revision
        # Who shares a log may have to learn first that others took theirs.
        assert True in [await s.take_turn(s.revision) for _ in range(2)]

    tell(story)


def test_a_key_can_come_back_with_a_new_creation(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        first = await s.create(A, value())
        await s.delete(A, first.revision, value())
        again = await s.create(A, value("again"))
        assert (again.revision, again.created) == (base + 4, base + 4)
        assert (await s.get(A, at=base + 2)) == first
        assert await s.get(A, at=base + 3) is None

    tell(story)


def test_get_at_a_revision(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        first = await s.create(A, value())
        second = await s.update(A, base + 2, value("y"))
        await s.create(B, value())
        assert await s.get(A, at=base + 2) == first
        assert await s.get(A, at=base + 3) == second
        assert await s.get(A, at=base + 4) == second
        assert await s.get(B, at=base + 3) is None
        with pytest.raises(FutureRevision):
            await s.get(A, at=base + 5)

    tell(story)


def test_lists_are_by_key_and_prefixes_are_exact(tell):
    async def story(s: Storage) -> None:
        for key in (B, A, "/core/pods/ns-2/a", "/core/podsets/ns/a", "/core/pods/ns/ab", "/core/pods/ns/A"):
            await s.create(key, value())
        page = await s.list("/core/pods/ns/")
        assert [r.key for r in page.records] == ["/core/pods/ns/A", A, "/core/pods/ns/ab", B]
        page = await s.list("/core/pods/")
        assert [r.key for r in page.records][:2] == ["/core/pods/ns-2/a", "/core/pods/ns/A"]
        assert len((await s.list("")).records) == 6

    tell(story)


def test_pages_of_one_snapshot_ignore_later_writes(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        for key in (A, B, C):
            await s.create(key, value())
        first = await s.list("/core/pods/", limit=1)
        assert ([r.key for r in first.records], first.revision, first.remaining) == ([A], base + 4, 2)
        await s.delete(C, base + 4, value())
        await s.update(B, base + 3, value("new"))
        await s.create("/core/pods/ns/bb", value())
        second = await s.list("/core/pods/", at=first.revision, after=A, limit=1)
        assert [(r.key, r.value) for r in second.records] == [(B, stored(base + 3))]
        assert second.remaining == 1
        third = await s.list("/core/pods/", at=first.revision, after=B, limit=1)
        assert ([r.key for r in third.records], third.remaining) == ([C], 0)

    tell(story)


def test_an_inconsistent_continuation_reads_the_state_of_now(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        for key in (A, B, C):
            await s.create(key, value())
        await s.delete(B, base + 3, value())
        await s.compact(base + 5)
        with pytest.raises(Compacted):
            await s.list("/core/pods/", at=base + 4, after=A, limit=1)
        page = await s.list("/core/pods/", after=A, limit=1)
        assert ([r.key for r in page.records], page.remaining) == ([C], 0)

    tell(story)


def test_list_in_the_future_is_refused(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        with pytest.raises(FutureRevision):
            await s.list("", at=base + 2)

    tell(story)


def test_watch_from_a_revision_replays_then_follows_without_gap_or_double(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        await s.create(A, value())
        await s.update(A, base + 2, value("y"))
        seen: list[Event] = []
        await s.watch("/core/pods/", base + 2, seen.extend)
        assert names(seen) == [("MODIFIED", "a", base + 3)]
        await s.create(B, value())
        await s.delete(A, base + 3, value())
        assert names(seen) == [
            ("MODIFIED", "a", base + 3),
            ("ADDED", "b", base + 4),
            ("DELETED", "a", base + 5),
        ]
        assert seen[0].previous is not None and seen[0].previous.value == stored(base + 2)

    tell(story)


def test_the_first_object_of_a_new_prefix_is_watched(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        seen: list[Event] = []
        await s.watch("/example.com/widgets/", s.revision, seen.extend)
        await s.create("/core/pods/ns/x", value())
        await s.create("/example.com/widgets/ns/a", value())
        assert names(seen) == [("ADDED", "a", base + 3)]

    tell(story)


def test_a_watch_of_the_future_leaves_out_what_comes_before(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        seen: list[Event] = []
        await s.watch("", base + 3, seen.extend)
        for key in (A, B, C):
            await s.create(key, value())
        assert names(seen) == [("ADDED", "c", base + 4)]

    tell(story)


def test_a_closed_watch_is_silent_and_others_go_on(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        one: list[Event] = []
        two: list[Event] = []
        watch = await s.watch("", base + 1, one.extend)
        await s.watch("", base + 1, two.extend)
        await s.create(A, value())
        watch.close()
        watch.close()
        await s.create(B, value())
        assert (len(one), len(two)) == (1, 2)

    tell(story)


def test_a_write_returns_after_its_event_was_handed_over(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        seen: list[Event] = []
        await s.watch("", base + 1, seen.extend)

        async def write(number: int) -> None:
            record = await s.create(f"/core/pods/ns/{number:03}", value())
            assert any(event.record is record or event.record == record for event in seen)
            assert s.revision >= record.revision

        await asyncio.gather(*(write(number) for number in range(50)))
        assert [event.revision for event in seen] == list(range(base + 2, base + 52))

    tell(story)


def test_writers_of_one_key_win_once_per_revision(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        await s.create(A, value("0"))
        won: list[int] = []

        async def add_one() -> None:
            while True:
                current = await s.get(A)
                assert current is not None
                count = int(current.value.rpartition(b'"v":"')[2].rstrip(b'"}'))
                try:
                    await s.update(A, current.revision, value(str(count + 1)))
                except RevisionConflict:
                    continue
                won.append(count)
                return

        await asyncio.gather(*(add_one() for _ in range(20)))
        assert won == list(range(20))
        assert (await s.get(A)).value == stored(base + 22, "20")

    tell(story)


def test_racing_creates_of_one_key_make_one(tell):
    async def story(s: Storage) -> None:
        results = await asyncio.gather(
            *(s.create(A, value(str(n))) for n in range(10)), return_exceptions=True
        )
        assert sum(not isinstance(r, Exception) for r in results) == 1
        assert sum(isinstance(r, KeyExists) for r in results) == 9

    tell(story)


def test_compaction_keeps_the_living_and_forgets_the_rest(tell):
    async def story(s: Storage) -> None:
        base = s.revision - 1
        await s.create(A, value("1"))  # 2
        await s.update(A, base + 2, value("2"))  # 3
        await s.create(B, value())  # 4
        await s.delete(B, base + 4, value())  # 5
        await s.update(A, base + 3, value("3"))  # 6
        await s.create(C, value())  # 7
        await s.compact(base + 5)
        assert s.compacted == base + 5
        assert (await s.get(A, at=base + 5)).value == stored(base + 3, "2")
        assert (await s.get(A)).value == stored(base + 6, "3")
        assert [r.key for r in (await s.list("", at=base + 5)).records] == [A]
        for revision in (base + 1, base + 4):
            with pytest.raises(Compacted) as refused:
                await s.get(A, at=revision)
            assert refused.value.oldest == base + 5
        with pytest.raises(Compacted):
            await s.watch("", base + 4, lambda events: None)
        seen: list[Event] = []
        await s.watch("", base + 5, seen.extend)
        assert names(seen) == [("MODIFIED", "a", base + 6), ("ADDED", "c", base + 7)]
        assert seen[0].previous.value == stored(base + 3, "2")
        with pytest.raises(FutureRevision):
            await s.compact(base + 8)
        await s.compact(base + 3)
        assert s.compacted == base + 5
        await s.compact(base + 7)
        assert [r.key for r in (await s.list("", at=base + 7)).records] == [A, C]

    tell(story)


def test_nothing_is_written_after_close(tell):
    async def story(s: Storage) -> None:
        await s.create(A, value())
        await s.close()
        await s.close()
        assert s.failed
        with pytest.raises(StorageClosed):
            await s.create(B, value())

    tell(story)


def test_a_value_without_a_mark_is_no_value():
    with pytest.raises(ValueError, match="no revision mark"):
        Value.cut(b"{}")


def test_events_come_in_pages(tell: Callable[[Story], None]) -> None:
    async def story(storage: Storage) -> None:
        base = storage.revision - 1
        for key in (A, "/core/pods/other/x", B, C):
            await storage.create(key, value())
        events, reached = await storage.events("/core/pods/ns/", base + 1, 2)
        assert ([event.record.key for event in events], reached) == ([A, B], base + 4)
        events, reached = await storage.events("/core/pods/ns/", reached, 2)
        assert ([event.record.key for event in events], reached) == ([C], base + 5)
        await storage.compact(base + 4)
        with pytest.raises(Compacted):
            await storage.events("", base + 3, 10)

    tell(story)


def test_the_history_in_memory_is_bounded_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is alive stays, whatever its size; what writes replaced and deleted goes, oldest first."""
    monkeypatch.setattr(memory, "HISTORY_BYTES", 100_000)

    async def story() -> None:
        s = memory.MemoryStorage()
        large = value("x" * 10_000)
        kept = [await s.create(f"/kept/{number}", large) for number in range(20)]
        assert (s.compacted, s._history.held < 100_000) == (1, True)
        record = await s.create(A, large)
        for _ in range(50):
            record = await s.update(A, record.revision, large)
            assert s._history.held <= 100_000
        for number in range(30):
            made = await s.create(f"/gone/{number}", large)
            await s.delete(made.key, made.revision, large, marked=number % 2 == 0)
            assert s._history.held <= 100_000
        assert s.compacted > record.revision
        assert [(await s.get(each.key)).value for each in kept] == [each.value for each in kept]
        assert (await s.get(A)).revision == record.revision
        assert len((await s.list("")).records) == 21
        with pytest.raises(Compacted):
            await s.watch("", record.revision, lambda events: None)
        await s.compact(s.revision)
        assert s._history.held == 0

    asyncio.run(story())
