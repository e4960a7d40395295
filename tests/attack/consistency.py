"""Durability and order: what was acknowledged is there after a kill and a power cut, and everybody sees one history.

Updates name the resourceVersion that they change, so a good history of an object is a chain: no two writes succeed from
the same version, each gives a greater one, and who begins to read after a write was acknowledged sees it or a later one
(linearizability of a register with compare-and-swap). A list at a version is one state, however it is paged.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.sqlite import SqliteStorage
from tests.attack.inputs import CONFIG_MAPS
from tests.attack.target import Target

HEADERS = {"Content-Type": "application/json"}
WRITERS, OPERATIONS, KEYS = 6, 200, 4
KILLS, CUTS = 5, 40


def _call(connection: Any, method: str, path: str, obj: Any = None) -> tuple[int, Any]:
    connection.request(method, path, json.dumps(obj).encode() if obj is not None else None, HEADERS)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def linearizability(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Writers and readers on a few objects at once; their history is checked."""
    for key in range(KEYS):
        target.ask("DELETE", f"{CONFIG_MAPS}/register-{key}")
        target.make(CONFIG_MAPS, {"metadata": {"name": f"register-{key}"}})
    history: list[tuple[str, int, float, float, int, int]] = []

    def work(seed: float) -> None:
        own, connection = random.Random(seed), target.connect()
        for _ in range(OPERATIONS):
            key = own.randrange(KEYS)
            path = f"{CONFIG_MAPS}/register-{key}"
            began = time.monotonic()
            status, obj = _call(connection, "GET", path)
            version = int(obj["metadata"]["resourceVersion"])
            history.append(("read", key, began, time.monotonic(), 0, version))
            if own.random() < 0.6:
                obj["data"] = {"n": str(own.random())}
                began = time.monotonic()
                status, written = _call(connection, "PUT", path, obj)
                if status == 200:
                    new = int(written["metadata"]["resourceVersion"])
                    history.append(("write", key, began, time.monotonic(), version, new))

    threads = [threading.Thread(target=work, args=(chance.random(),)) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key in range(KEYS):
        own = [entry for entry in history if entry[1] == key]
        writes = [entry for entry in own if entry[0] == "write"]
        if len({entry[4] for entry in writes}) != len(writes):
            yield f"register-{key}: two writes changed one version"
        if any(entry[5] <= entry[4] for entry in writes):
            yield f"register-{key}: a version went back"
        acknowledged = sorted((entry[3], entry[5]) for entry in writes)
        place = newest = 0
        for _, _, began, _, _, version in sorted(own, key=lambda entry: entry[2]):
            while place < len(acknowledged) and acknowledged[place][0] < began:
                newest = max(newest, acknowledged[place][1])
                place += 1
            if version < newest:
                yield f"register-{key}: {version} was seen after {newest} was acknowledged"


def snapshots(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Lists in pages while objects change: each is the state that the whole list at its version shows."""
    for number in range(30):
        target.make(CONFIG_MAPS, {"metadata": {"name": f"page-{number}", "labels": {"set": "pages"}}})
    ending = threading.Event()

    def change() -> None:
        own, connection = random.Random(chance.random()), target.connect()
        while not ending.is_set():
            path = f"{CONFIG_MAPS}/page-{own.randrange(30)}"
            connection.request(
                "PATCH",
                path,
                json.dumps({"data": {"n": str(own.random())}}).encode(),
                {"Content-Type": "application/merge-patch+json"},
            )
            connection.getresponse().read()

    thread = threading.Thread(target=change)
    thread.start()
    connection = target.connect()
    for _ in range(50):
        token, items, version = "", [], ""
        while True:
            _, page = _call(connection, "GET", f"{CONFIG_MAPS}?limit=7&continue={token}")
            items += [
                (item["metadata"]["name"], item["metadata"]["resourceVersion"]) for item in page["items"]
            ]
            version = version or page["metadata"]["resourceVersion"]
            if not (token := page["metadata"].get("continue", "")):
                break
        _, whole = _call(
            connection, "GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"
        )
        wanted = [(item["metadata"]["name"], item["metadata"]["resourceVersion"]) for item in whole["items"]]
        if items != wanted:
            yield f"the pages of version {version} are not that state"
    ending.set()
    thread.join()


def kills(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """The server killed while objects are made; every one that was acknowledged is there afterwards."""
    run = f"{chance.getrandbits(32):x}"
    for turn in range(KILLS):
        made: list[str] = []

        def work(writer: int, turn: int = turn, made: list[str] = made) -> None:
            connection = target.connect(5)
            try:
                for number in range(100_000):
                    name = f"kill-{run}-{turn}-{writer}-{number}"
                    if _call(connection, "POST", CONFIG_MAPS, {"metadata": {"name": name}})[0] == 201:
                        made.append(name)
            except (OSError, http.client.HTTPException, ValueError):
                return

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.2, 0.8))
        target.kill()
        for thread in threads:
            thread.join()
        target.start()
        listed = _call(target.connect(), "GET", CONFIG_MAPS)[1]
        there = {item["metadata"]["name"] for item in listed["items"]}
        if lost := [name for name in made if name not in there]:
            yield f"{len(lost)} of {len(made)} acknowledged objects are gone after a kill"
    connection = target.connect()
    connection.request("DELETE", f"{CONFIG_MAPS}")
    connection.getresponse().read()
    target.make(CONFIG_MAPS, {"metadata": {"name": "small"}, "data": {"a": "x" * 900}})


def power_cuts(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """The files as they are when a write is acknowledged, with the beginning of a next one behind them: all that was
    acknowledged is there."""

    async def cut(folder: Path) -> list[str]:
        wrong: list[str] = []
        storage = await SqliteStorage.open(folder / "log.db")
        acknowledged: dict[str, int] = {}
        for number in range(CUTS * 5):
            key = f"/g/r/{chance.randrange(30)}"
            value = Value.cut(f"{REVISION_MARK} {'x' * chance.randrange(3000)}".encode())
            current = await storage.get(key)
            record = await (
                storage.update(key, current.revision, value) if current else storage.create(key, value)
            )
            acknowledged[key] = record.revision
            if number % 5:
                continue
            copied = folder / f"cut-{number}.db"
            for end in ("", "-wal"):
                shutil.copy(folder / f"log.db{end}", f"{copied}{end}")
            with Path(f"{copied}-wal").open("ab") as torn:
                torn.write(chance.randbytes(chance.randrange(6000)))
            again = await SqliteStorage.open(copied)
            there = {record.key: record.revision for record in (await again.list("")).records}
            if there != acknowledged:
                wrong.append(f"after a cut at revision {record.revision} the state is another")
            await again.close()
        await storage.close()
        return wrong

    with tempfile.TemporaryDirectory(prefix="kubewright-cuts-") as folder:
        yield from asyncio.run(cut(Path(folder)))
