"""Durability and order: what was acknowledged is there after a kill and a power cut, and everybody sees one history.

Updates name the resourceVersion that they change, so a good history of an object is a chain: no two writes succeed from
the same version, each gives a greater one, and who begins to read after a write was acknowledged sees it or a later one
(linearizability of a register with compare-and-swap). A list at a version is one state, however it is paged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
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
KILLS, CUTS, LISTS = 5, 40, 50
RECONNECTED = 0.1
COMPACTED_EVERY = 50
"""Cuts after which the log forgets its past."""


def _tell(options: argparse.Namespace, text: str) -> None:
    """Says how much was tried, to who asked for more than usual."""
    if options.verbose or options.times > 1:
        print(f"    {text}", flush=True)


def _call(connection: Any, method: str, path: str, obj: Any = None) -> tuple[int, Any]:
    connection.request(method, path, json.dumps(obj).encode() if obj is not None else None, HEADERS)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def linearizability(
    target: Target, chance: random.Random, options: argparse.Namespace, *, broken: bool = False
) -> Iterator[str]:
    """Writers and readers on a few objects at once; their history is checked. ``broken``: connections may end at any
    time, and what became of the request is not known."""
    for key in range(KEYS):
        target.ask("DELETE", f"{CONFIG_MAPS}/register-{key}")
        target.make(CONFIG_MAPS, {"metadata": {"name": f"register-{key}"}})
    history: list[tuple[str, int, float, float, int, int]] = []

    def work(seed: float) -> None:
        own, connection = random.Random(seed), target.connect()
        for _ in range(OPERATIONS * options.times):
            if broken and own.random() < RECONNECTED:
                connection.close()
            try:
                step(own, connection)
            except (OSError, http.client.HTTPException):
                connection.close()
                if not broken:
                    raise

    def step(own: random.Random, connection: http.client.HTTPConnection) -> None:
        key = own.randrange(KEYS)
        path = f"{CONFIG_MAPS}/register-{key}"
        began = time.monotonic()
        _, obj = _call(connection, "GET", path)
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
    _tell(options, f"{len(history)} operations")
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
    for _ in range(LISTS * options.times):
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
    _tell(options, f"{LISTS * options.times} lists in pages")


def kills(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """The server killed while objects are made and those of the turn before are deleted, all at once; whatever was
    acknowledged is so afterwards."""
    run, total, swept = f"{chance.getrandbits(32):x}", 0, 0
    for turn in range(KILLS * options.times):
        made: list[str] = []
        gone: list[int] = []

        def work(writer: int, turn: int = turn, made: list[str] = made) -> None:
            connection = target.connect(5)
            try:
                for number in range(100_000):
                    metadata = {"name": f"kill-{run}-{turn}-{writer}-{number}", "labels": {"kill": f"{turn}"}}
                    if _call(connection, "POST", CONFIG_MAPS, {"metadata": metadata})[0] == 201:
                        made.append(metadata["name"])
            except (OSError, http.client.HTTPException, ValueError):
                return

        def sweep(turn: int = turn, gone: list[int] = gone) -> None:
            path = f"{CONFIG_MAPS}?labelSelector=kill,kill!%3D{turn}"
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                gone.append(_call(target.connect(5), "DELETE", path)[0])

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.2, 0.8))
        threads.append(threading.Thread(target=sweep))
        threads[-1].start()
        time.sleep(chance.uniform(0, 0.5))
        target.kill()
        for thread in threads:
            thread.join()
        target.start()
        listed = _call(target.connect(), "GET", f"{CONFIG_MAPS}?labelSelector=kill")[1]
        there = {item["metadata"]["name"]: item["metadata"]["labels"]["kill"] for item in listed["items"]}
        if lost := [name for name in made if name not in there]:
            yield f"{len(lost)} of {len(made)} acknowledged objects are gone after a kill"
        if gone == [200] and (back := [name for name, of in there.items() if of != str(turn)]):
            yield f"{len(back)} objects whose deletion was acknowledged are there after a kill"
        total, swept = total + len(made), swept + (gone == [200])
    _tell(
        options, f"{KILLS * options.times} kills, {total} objects acknowledged, {swept} collections deleted"
    )
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
        for number in range(CUTS * options.times * 5):
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
            for left in folder.glob(f"{copied.name}*"):
                left.unlink()
            if number % (COMPACTED_EVERY * 5) == 0:
                await storage.compact(record.revision)
        _tell(options, f"{CUTS * options.times} power cuts, {record.revision - 1} writes acknowledged")
        await storage.close()
        return wrong

    with tempfile.TemporaryDirectory(prefix="kubewright-cuts-") as folder:
        yield from asyncio.run(cut(Path(folder)))
