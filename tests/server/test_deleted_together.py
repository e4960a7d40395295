"""Deletions of many objects: committed together, and observed as if they were made one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_api import CM, NS, PODS, serve
from tests.server.test_policies import denies, request, validating

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.write.together import AT_ONCE, Together
from apimachinery.storage.interface import Event, StorageBusy
from apimachinery.storage.sqlite import SqliteStorage

MANY = 10 * AT_ONCE
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
POD = {"containers": [{"name": "a", "image": "a"}]}
Story = Callable[[AssembledApi, SqliteStorage, list[Event]], Awaitable[None]]


def tell(story: Story, folder: Path, *controllers: str) -> None:
    """``story`` on a database; it sees all events as they come."""

    async def play() -> None:
        storage = await SqliteStorage.open(folder / "x.db")
        api = await serve(ApiOptions(controllers=frozenset(controllers)), storage=storage)
        seen: list[Event] = []
        await storage.watch("", storage.revision, seen.extend)
        try:
            await story(api, storage, seen)
        finally:
            await api.stop()
            await storage.close()

    asyncio.run(play())


async def make(api: AssembledApi, number: int, path: str = CM, **rest: Any) -> list[str]:
    names = [f"o{each:04d}" for each in range(number)]
    made = await asyncio.gather(
        *(request(api, "POST", path, {"metadata": {"name": name}, **rest}) for name in names)
    )
    assert {status for status, *_ in made} == {201}
    return names


def shown(seen: list[Event], resource: str) -> list[tuple[str, str]]:
    return [
        (
            "DELETED" if event.deleted else "MODIFIED" if event.previous else "ADDED",
            event.record.key.rpartition("/")[2],
        )
        for event in seen
        if event.record.key.startswith(f"/core/{resource}/default/o")
    ]


def count_commits(storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    commits: list[int] = []
    write = storage._log.write
    monkeypatch.setattr(storage._log, "write", lambda events: (commits.append(1), write(events))[1])
    return commits


def test_a_collection_goes_in_few_commits_in_its_order(tmp_path, monkeypatch):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        names = await make(api, MANY)
        seen.clear()
        commits = count_commits(storage, monkeypatch)
        status, answer, _ = await request(api, "DELETE", CM)
        assert (status, [item["metadata"]["name"] for item in answer["items"]]) == (200, names)
        assert shown(seen, "configmaps") == [("DELETED", name) for name in names]
        revisions = [event.revision for event in seen]
        assert revisions == list(range(revisions[0], revisions[0] + MANY))
        assert len(commits) < MANY / 2
        assert (await storage.list("/core/configmaps/default/o")).records == []

    tell(story, tmp_path)


def test_each_pod_is_marked_right_before_it_goes(tmp_path):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        await request(api, "POST", f"{NS}/default/serviceaccounts", {"metadata": {"name": "default"}})
        names = await make(api, AT_ONCE + 3, PODS, spec=POD)
        seen.clear()
        assert (await request(api, "DELETE", PODS, NOW))[0] == 200
        wanted = [(kind, name) for name in names for kind in ("MODIFIED", "DELETED")]
        assert shown(seen, "pods") == wanted

    tell(story, tmp_path)


def test_a_refusal_in_the_middle_leaves_all_that_follows(tmp_path):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        path, made = validating(
            "p", {"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'o0070'"}
        )
        await request(api, "POST", path, made)
        path, made = denies("p")
        await request(api, "POST", path, made)
        names = await make(api, 100)
        seen.clear()
        status, answer, _ = await request(api, "DELETE", CM)
        assert (status, answer["reason"]) == (422, "Invalid")
        assert shown(seen, "configmaps") == [("DELETED", name) for name in names[:70]]
        assert [r.key[-5:] for r in (await storage.list("/core/configmaps/default/o")).records] == names[70:]

    tell(story, tmp_path)


def test_finalizers_hold_and_dry_runs_change_nothing(tmp_path):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        names = await make(api, 80)
        for name in names[::2]:
            await request(
                api,
                "PATCH",
                f"{CM}/{name}",
                {"metadata": {"finalizers": ["x/y"]}},
                **{"content-type": "application/merge-patch+json"},
            )
        seen.clear()
        assert (await request(api, "DELETE", f"{CM}?dryRun=All"))[0] == 200
        assert not seen
        assert (await request(api, "DELETE", CM))[0] == 200
        wanted = [("DELETED" if at % 2 else "MODIFIED", name) for at, name in enumerate(names)]
        assert shown(seen, "configmaps") == wanted

    tell(story, tmp_path)


def test_what_others_delete_and_change_meanwhile_is_no_failure(tmp_path):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        names = await make(api, MANY)
        change = {"data": {"a": "b"}}
        merge = {"content-type": "application/merge-patch+json"}
        answers = await asyncio.gather(
            request(api, "DELETE", CM),
            *(request(api, "DELETE", f"{CM}/{name}") for name in names[::7]),
            *(request(api, "PATCH", f"{CM}/{name}", change, **merge) for name in names[::5]),
            request(api, "DELETE", CM),
        )
        assert {status for status, *_ in answers} <= {200, 404}
        assert answers[0][0] == answers[-1][0] == 200
        assert (await storage.list("/core/configmaps/default/o")).records == []

    tell(story, tmp_path)


def test_a_namespace_and_what_nobody_owns_go_in_few_commits(tmp_path, monkeypatch):
    async def story(api: AssembledApi, storage: SqliteStorage, seen: list[Event]) -> None:
        _, owner, _ = await request(api, "POST", CM, {"metadata": {"name": "owner"}})
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]
        await asyncio.gather(
            *(
                request(api, "POST", CM, {"metadata": {"name": f"o{n}", "ownerReferences": owners}})
                for n in range(MANY)
            )
        )
        await request(api, "POST", NS, {"metadata": {"name": "n"}})
        await make(api, MANY, f"{NS}/n/configmaps")
        await asyncio.sleep(0.3)
        commits = count_commits(storage, monkeypatch)
        await request(api, "DELETE", f"{CM}/owner")
        await request(api, "DELETE", f"{NS}/n")
        for _ in range(200):
            await asyncio.sleep(0.05)
            if (
                len((await storage.list("/core/configmaps/")).records) <= 2
                and await storage.get("/core/namespaces/n") is None
            ):
                break
        left = [record.key for record in (await storage.list("/core/configmaps/")).records]
        assert not [key for key in left if "/o" in key]
        assert await storage.get("/core/namespaces/n") is None
        assert len(commits) < MANY  # one by one: twice as many at least

    tell(story, tmp_path, "namespace", "gc")


def test_the_earliest_failure_is_raised_when_all_are_done():
    """One that fails later, and one that is decided later, do not hide it; none is left alone."""
    ended: list[int] = []

    async def write(number: int, failure: Exception | None = None) -> None:
        await asyncio.sleep(0.02 / (number + 1))
        ended.append(number)
        if failure is not None:
            raise failure

    async def play(*failing: int, decided: bool = False) -> None:
        async with Together() as writes:
            for number in range(AT_ONCE // 2):
                await writes.add(write(number, StorageBusy(str(number)) if number in failing else None))
            if decided:
                raise ValueError("the decision after them")

    for decided in (False, True):
        ended.clear()
        with pytest.raises(StorageBusy, match=r"^3$"):
            asyncio.run(play(9, 3, decided=decided))
        assert len(ended) == AT_ONCE // 2
    with pytest.raises(ValueError, match="the decision"):
        asyncio.run(play(decided=True))


def test_who_is_cancelled_leaves_nothing_running():
    async def play() -> None:
        running = 0

        async def write() -> None:
            nonlocal running
            running += 1
            try:
                await asyncio.sleep(60)
            finally:
                running -= 1

        async def work() -> None:
            async with Together() as writes:
                for _ in range(AT_ONCE * 2):
                    await writes.add(write())

        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        assert running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running

    asyncio.run(play())
