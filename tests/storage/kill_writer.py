"""Writes as fast as it can and says on stdout what was acknowledged, until it is killed. Run by test_kill.py."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.sqlite import SqliteStorage


def value(text: str) -> Value:
    return Value.cut(f"{REVISION_MARK} {text}".encode())


async def write(storage: SqliteStorage, writer: int, first: int) -> None:
    for number in range(first, first + 1_000_000):
        key = f"/core/things/{writer}/{number}"
        record = await storage.create(key, value("a"))
        os.write(1, f"{key} {record.revision} a\n".encode())
        record = await storage.update(key, record.revision, value("b" * 500))
        os.write(1, f"{key} {record.revision} b\n".encode())
        if number % 3 == 0:
            record = await storage.delete(key, record.revision, value("c"))
            os.write(1, f"{key} {record.revision} -\n".encode())


async def compact(storage: SqliteStorage) -> None:
    while True:
        await asyncio.sleep(0.05)
        await storage.compact(max(1, storage.revision - 500))


async def main() -> None:
    storage = await SqliteStorage.open(Path(sys.argv[1]))
    first = int(sys.argv[2]) * 1_000_000
    await asyncio.gather(compact(storage), *(write(storage, writer, first) for writer in range(16)))


asyncio.run(main())
