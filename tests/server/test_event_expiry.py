"""Events end some time after they were written last."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from tests.server.test_api import MERGE, ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.controllers.expiry import EventExpiry, _age
from apimachinery.storage.interface import StorageBusy

EVENTS = "/api/v1/namespaces/default/events"
SHORT = ApiOptions(controllers=frozenset(), event_seconds=3.0)


def event(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "reason": "R", **more}


async def names(api: AssembledApi) -> list[str]:
    _, found, _ = await ask(api, "GET", EVENTS)
    return [each["metadata"]["name"] for each in found["items"]]


def test_events_end_and_a_write_makes_them_last() -> None:
    async def story(api: AssembledApi) -> None:
        await ask(api, "POST", EVENTS, event("a"))
        await ask(api, "POST", EVENTS, event("b"))
        await asyncio.sleep(1.5)
        await ask(api, "PATCH", f"{EVENTS}/a", {"count": 2}, MERGE)
        seen = [await names(api)]
        async with asyncio.timeout(60):
            while seen[-1]:
                await asyncio.sleep(0.05)
                now = await names(api)
                seen += [now] * (now != seen[-1])
        assert seen == [["a", "b"], ["a"], []]

    run(story, SHORT)


def test_events_of_before_the_start_end_by_what_they_say() -> None:
    async def story(api: AssembledApi) -> None:
        await ask(api, "POST", EVENTS, event("a"))
        first = api.parts.expiry
        assert first is not None
        await first.stop()
        again = EventExpiry(first._served, api.writer.driver._cache, api.writer, 3600.0)
        again.start()
        assert list(again._until) == ["/core/events/default/a"]
        await again.stop()

    run(story)
    told = {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}
    assert _age(told) > 1e8
    assert _age({**told, "lastTimestamp": datetime.now(UTC).isoformat()}) < 5
    assert _age({**told, "lastTimestamp": "no time"}) > 1e8
    assert _age({"metadata": {}}) == 0


def test_an_event_that_could_not_be_deleted_is_deleted_later() -> None:
    async def story(api: AssembledApi) -> None:
        assert api.parts.expiry is not None
        faults: list[Exception] = [StorageBusy(), StorageBusy()]
        remove = api.writer.remove

        async def fails(*given: Any) -> Any:
            if faults:
                raise faults.pop()
            return await remove(*given)

        api.parts.expiry._writer.remove = fails  # type: ignore[method-assign]
        await ask(api, "POST", EVENTS, event("a"))
        async with asyncio.timeout(60):
            while await names(api):
                await asyncio.sleep(0.01)
        assert not faults

    run(story, SHORT)
