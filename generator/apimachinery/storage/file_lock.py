"""One process at a time: an advisory lock on a file, let go by the kernel when its holder dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from apimachinery.storage.interface import StorageError


class StorageFileError(StorageError):
    """A storage file that cannot be used; the text says why and what to do."""


class FileLock:
    """An exclusive lock. Raises StorageFileError on ``acquire`` where another process holds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Takes the lock, at once or not at all."""
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as fault:
            raise StorageFileError(f"cannot write {self._path}: {fault.strerror}") from None
        if sys.platform == "win32":  # SQLite's own locks are mandatory there
            return
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise StorageFileError(
                f"{self._path} is held by another server; end that one, or choose another file"
            ) from None

    def release(self) -> None:
        """Lets go; harmless when repeated."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
