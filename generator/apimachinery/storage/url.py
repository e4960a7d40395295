"""Storage by URL: ``memory://``, ``sqlite:///relative/path``, ``sqlite:////absolute/path``."""

from __future__ import annotations

from pathlib import Path

from apimachinery.storage.interface import Storage
from apimachinery.storage.memory import MemoryStorage


class StorageUrlError(ValueError):
    """A URL that names no storage; the text says which ones do."""


def storage_path(url: str) -> Path | None:
    """The file of a storage, None for one in memory. Raises StorageUrlError."""
    if url in ("memory://", "memory:"):
        return None
    scheme, found, rest = url.partition(":///")
    if scheme != "sqlite" or not found or not rest or rest == "/":
        raise StorageUrlError(
            f"{url!r} is no storage; use memory://, sqlite:///relative/path or sqlite:////absolute/path"
        )
    return Path(rest)


async def open_storage(url: str) -> Storage:
    """Opens a storage. Raises StorageUrlError, and what the driver raises for a file that it cannot use."""
    path = storage_path(url)
    if path is None:
        return MemoryStorage()
    from apimachinery.storage.sqlite import SqliteStorage

    return await SqliteStorage.open(path)
