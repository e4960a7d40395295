"""Disk space kept for the day the disk is full: what a deletion, and a compaction after it, need to be written.

Without it a full disk wedges a log: even a deletion is one more record, and forgetting old ones needs room in the
write-ahead log. The space lies in a file next to the database and is given back in two steps: a quarter for
deletions, the rest for a compaction. SQLite starts a checkpoint at 4 MiB of write-ahead log, which may all be new to
the database; with the deletions' quarter that is half of the reserve, and the compaction itself has the other half.
"""

from __future__ import annotations

import os
from pathlib import Path

RESERVE_BYTES = 16 << 20
SPARE_BYTES = 2 << 20
"""What must be free next to the reserve before a storage takes writes again, so that it does not change its mind at
every write."""


class Reserve:
    """The file. Nothing here raises: a reserve that cannot be had is a smaller one."""

    def __init__(self, path: Path, size: int = RESERVE_BYTES) -> None:
        self._path = path
        self._size = size

    def take(self) -> bool:
        """Takes the whole reserve; False where the disk does not have it, or would be full then."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError:
            return False
        try:
            if os.fstat(descriptor).st_size < self._size:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(descriptor, 0, self._size)
                else:
                    os.write(descriptor, bytes(self._size))
            return _free(descriptor) >= SPARE_BYTES
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def give_quarter(self) -> None:
        """Leaves the space that a compaction needs and gives back the rest."""
        self._shrink(self._size // 4 * 3)

    def give_all(self) -> None:
        """Gives back all."""
        self._shrink(0)

    def _shrink(self, size: int) -> None:
        try:
            if self._path.stat().st_size > size:
                os.truncate(self._path, size)
        except OSError:
            return

    def remove(self) -> None:
        """No reserve while nobody writes."""
        self._path.unlink(missing_ok=True)


def _free(descriptor: int) -> int:
    if not hasattr(os, "fstatvfs"):
        return SPARE_BYTES
    state = os.fstatvfs(descriptor)
    return state.f_bavail * state.f_frsize
