"""One process at a time: advisory locks that the kernel lets go when their holder dies, and the high-water mark.

The lock is on a file next to the database, which also says for people who holds it and holds the mark; on Linux it is
on the database itself too, so that neither a symbolic or hard link nor a lock file that somebody removed lets
a second server in. (Elsewhere ``flock`` and SQLite's own locks are of one kind and would shut each other out.)

The mark is the newest revision that was acknowledged. It is written behind each commit and not synced: it outlives the
process, not always a power cut, and is never ahead of what was committed. A database that ends before its mark has
lost writes: its write-ahead log was cut off, or left behind by a copy.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from apimachinery.storage.interface import StorageError

_MARK_BYTES = 64


class StorageFileError(StorageError):
    """A storage file that cannot be used; the text says why and what to do."""


class FileLock:
    """The exclusive use of a database. Raises StorageFileError on ``acquire`` where another process has it."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self._path = database.with_name(database.name + ".lock")
        self._descriptors: list[int] = []
        self._mark = b""

    def acquire(self) -> None:
        """Takes the locks, at once or not at all; makes an empty database, readable for its owner alone, where
        there is none."""
        try:
            for path in (self._path, self.database):
                self._take(path)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as fault:
            raise StorageFileError(f"cannot write {path}: {fault.strerror}") from None
        self._descriptors.append(descriptor)
        if path != self._path and not sys.platform.startswith("linux"):
            return
        try:
            _lock(descriptor)
        except OSError:
            raise StorageFileError(
                f"{path} is held by another server; end that one, or choose another file"
            ) from None

    def emptied(self) -> str:
        """Why a database that is gone must not be made anew, to be asked before ``acquire``; empty where it may be."""
        wal = self.database.with_name(self.database.name + "-wal")
        try:
            size = self.database.stat().st_size
        except OSError:
            size = -1
        if size > 0:
            return ""
        what = "is gone" if size < 0 else "is empty"
        advice = "restore a backup with 'kubewright storage restore', or remove"
        if wal.exists() and wal.stat().st_size:
            return (
                f"{self.database} {what}, but {wal.name} holds writes of it: put the database back, {advice} "
                f"{wal.name} to begin anew"
            )
        if size == 0 and (mark := self.read_mark(None)):
            return f"{self.database} is empty, but revision {mark} was acknowledged in it: {advice} it to begin anew"
        return ""

    def mark(self, identity: int) -> int:
        """The mark of the database of this identity; 0 where none was written."""
        os.lseek(self._descriptors[0], 0, os.SEEK_SET)
        return _parse(os.read(self._descriptors[0], _MARK_BYTES), identity)

    def read_mark(self, identity: int | None) -> int:
        """The mark, read without holding the lock; that of whatever database for the identity None."""
        try:
            return _parse(self._path.read_bytes(), identity)
        except OSError:
            return 0

    def set_mark(self, identity: int, revision: int) -> None:
        """Writes the mark. A full disk is no reason to fail: the mark is then older than it could be."""
        mark = b"%016x %020d\n" % (identity, revision)
        try:
            if sys.platform == "win32":
                os.lseek(self._descriptors[0], 0, os.SEEK_SET)
                os.write(self._descriptors[0], mark)
            else:
                # Somebody may have removed the file while it was locked; the mark would go to a file without a name.
                if not os.fstat(self._descriptors[0]).st_nlink:
                    self._renew()
                # One write of fixed length: a reader sees the old mark or the new one.
                os.pwrite(self._descriptors[0], mark, 0)
        except OSError:
            return

    def _renew(self) -> None:
        """Makes the lock file again that somebody removed: the mark is for the next start. Raises OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        # The new lock is taken before the old one goes.
        former, self._descriptors[0] = self._descriptors[0], descriptor
        os.close(former)

    def restrict(self) -> bool:
        """Takes the permissions of the database, and of what SQLite keeps next to it, from group and others; whether
        they had any."""
        if sys.platform == "win32":
            return False
        had = False
        for end in ("", "-wal", "-shm"):
            path = self.database.with_name(self.database.name + end)
            try:
                mode = path.stat().st_mode & 0o777
                if mode & 0o077:
                    path.chmod(mode & 0o700)
                    had = True
            except OSError:  # not there, or another user's file, written through its group
                continue
        return had

    def release(self) -> None:
        """Lets go; harmless when repeated. SQLite must have closed the database: to close a file that it has open
        too would drop its locks."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def _lock(descriptor: int) -> None:
    """Takes the exclusive lock, without waiting. Raises OSError where another process has it."""
    if sys.platform == "win32":
        import msvcrt

        # A locked byte cannot be read by others, and the mark is for them: the byte far behind it is no data.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _parse(text: bytes, identity: int | None) -> int:
    try:
        owner, revision = text[:_MARK_BYTES].split()
        return int(revision) if identity is None or int(owner, 16) == identity else 0
    except ValueError:
        return 0
