"""Admission that waits: what happens to a write that others overtake, and to those who meet nothing that waits."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.server.test_api import CM, ask, serve

from apimachinery.http.steps import Waiting, wait_for
from apimachinery.meta.errors import bad_request
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.order import PluginsInOrder
from apimachinery.server.assembly.api import AssembledApi


class Slow(Plugin):
    """Waits for a turn with every object named \"slow\"; then leaves its mark."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.go = asyncio.Event()
        self.refuses = False

    def admit(self, operation: Operation) -> Waiting:
        return wait_for(lambda: self._wait(operation)) if operation.name == "slow" else None

    def validate(self, operation: Operation) -> Waiting:
        return wait_for(lambda: self._judge(operation)) if operation.name == "slow" else None

    async def _wait(self, operation: Operation) -> None:
        self.turns.append(operation.verb)
        await self.go.wait()
        if operation.obj is not None:
            operation.obj["data"]["seen"] = str(len(self.turns))
        operation.annotate("a", "first")
        operation.annotate("a", "second")

    async def _judge(self, operation: Operation) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise bad_request("no")


class Counting(Plugin):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def admit(self, operation: Operation) -> Waiting:
        self.seen.append((operation.name, (operation.obj or {}).get("data", {}).get("seen")))
        return None


async def with_slow() -> tuple[AssembledApi, Slow, Counting]:
    api = await serve()
    slow, counting = Slow(), Counting()
    plugins = PluginsInOrder([slow, counting])
    api.writer.pipeline.admission = api.deleter.admission = plugins
    return api, slow, counting


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"k": "v", **data}}


def test_plugins_after_one_that_waits_see_what_it_did_and_others_go_on() -> None:
    async def run() -> None:
        api, slow, counting = await with_slow()
        waiting = asyncio.ensure_future(ask(api, "POST", CM, config("slow")))
        await asyncio.sleep(0.01)
        assert (await ask(api, "POST", CM, config("quick")))[0] == 201
        slow.go.set()
        status, shown, _ = await waiting
        assert (status, shown["data"]["seen"]) == (201, "1")
        assert counting.seen == [("quick", None), ("slow", "1")]

    asyncio.run(run())


def overtaken(method: str, body: Any, **headers: str) -> tuple[int, dict[str, Any], list[str]]:
    """The answer to a write of \"slow\" while somebody else changes the object twenty times."""

    async def run() -> tuple[int, dict[str, Any], list[str]]:
        api, slow, _ = await with_slow()
        slow.go.set()
        await ask(api, "POST", CM, config("slow"))
        slow.turns.clear()
        slow.go.clear()
        waiting = asyncio.ensure_future(ask(api, method, f"{CM}/slow", body, dict(headers)))
        for number in range(20):
            await asyncio.sleep(0.005)
            pipeline = api.writer.pipeline
            with_it, pipeline.admission = pipeline.admission, PluginsInOrder([])
            changes = {"data": {"other": str(number)}}
            merge = {"content-type": "application/merge-patch+json"}
            assert (await ask(api, "PATCH", f"{CM}/slow", changes, merge))[0] == 200
            pipeline.admission = with_it
            slow.go.set()
            await asyncio.sleep(0)
            slow.go.clear()
        slow.go.set()
        status, shown, _ = await waiting
        return status, shown, slow.turns

    return asyncio.run(run())


def test_a_patch_without_a_version_starts_again_however_often_others_are_faster() -> None:
    status, shown, turns = overtaken(
        "PATCH", {"data": {"mine": "1"}}, **{"content-type": "application/merge-patch+json"}
    )
    assert status == 200
    assert shown["data"]["other"] == "19" and shown["data"]["mine"] == "1"
    assert len(turns) > 12 and shown["data"]["seen"] == str(len(turns))


def test_a_replacement_that_names_a_version_does_not() -> None:
    stale = {"metadata": {"name": "slow", "resourceVersion": "1"}, "data": {"k": "w"}}
    status, shown, turns = overtaken("PUT", stale)
    assert (status, shown["reason"], turns) == (409, "Conflict", ["UPDATE"])


def test_a_deletion_waits_too_and_a_refusal_stores_nothing() -> None:
    async def run() -> None:
        api, slow, _ = await with_slow()
        slow.go.set()
        slow.refuses = True
        assert (await ask(api, "POST", CM, config("slow")))[0] == 400
        assert (await ask(api, "GET", f"{CM}/slow"))[0] == 404
        slow.refuses = False
        assert (await ask(api, "POST", CM, config("slow")))[0] == 201
        slow.refuses = True
        assert (await ask(api, "DELETE", f"{CM}/slow"))[0] == 400
        slow.refuses = False
        assert (await ask(api, "DELETE", f"{CM}/slow"))[0] == 200
        assert slow.turns == ["CREATE", "CREATE", "DELETE", "DELETE"]

    asyncio.run(run())
