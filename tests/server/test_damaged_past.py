"""A record of the past whose bytes have changed: lists and watches that need it say so, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

from tests.server.test_api import CM, ask, serve

from apimachinery.http.messages import Request, StreamResponse
from apimachinery.storage.sqlite import SqliteStorage


def test_reads_of_the_past_tell_of_damage(tmp_path: Path) -> None:
    async def play() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        api = await serve(storage=storage)
        _, made, _ = await ask(api, "POST", CM, {"metadata": {"name": "a"}, "data": {"a": "before"}})
        made["data"]["a"] = "after"
        _, now, _ = await ask(api, "PUT", f"{CM}/a", made)
        first = made["metadata"]["resourceVersion"]
        await api.stop()
        await storage.close()
        with sqlite3.connect(tmp_path / "x.db") as connection:
            connection.execute(
                "UPDATE log SET value = CAST(replace(value, 'before', 'nefore') AS BLOB) WHERE revision = ?",
                (first,),
            )
        connection.close()

        storage = await SqliteStorage.open(tmp_path / "x.db")
        api = await serve(storage=storage)
        exact = f"resourceVersion={first}&resourceVersionMatch=Exact"
        status, answer, _ = await ask(api, "GET", f"{CM}?{exact}")
        assert (status, answer["reason"]) == (500, "InternalError")
        assert f"/core/configmaps/default/a at {first}" in answer["message"]
        watch = await api.handle(
            Request("GET", CM, f"watch=1&resourceVersion={int(first) - 1}", {}, b"", None)
        )
        assert isinstance(watch, StreamResponse)
        events = [json.loads(piece) async for piece in watch.parts]
        assert [event["type"] for event in events] == ["ERROR"]
        assert events[0]["object"]["message"] == answer["message"]
        assert (await ask(api, "GET", f"{CM}/a"))[1] == now
        await api.stop()
        await storage.close()

    asyncio.run(play())
