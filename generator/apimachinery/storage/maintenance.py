"""A database looked over, copied and put back: what ``kubewright storage`` does.

- A check reads, next to a running server too. Repairing gives up what is damaged, or what the log lost, and needs the
  database for itself.
- A backup is SQLite's online copy: one consistent state, while the server goes on.
- A restored state is an old one under revisions that clients have already seen with other content. So it begins
  above them (as etcd's ``--bump-revision --mark-compacted``): whoever goes on from a revision of before is reported
  410 Expired and lists again, instead of missing what is different.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from apimachinery.storage.file_lock import FileLock, StorageFileError
from apimachinery.storage.sqlite_checks import explained
from apimachinery.storage.sqlite_log import Log, copy_database

REVISIONS_SKIPPED = 1_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. ``lost`` is the range of acknowledged revisions that are not there, (0, 0) for none."""

    newest: int
    compacted: int
    objects: dict[str, int]
    faults: tuple[str, ...]
    damaged: tuple[tuple[str, int], ...]
    lost: tuple[int, int]

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.faults or self.damaged or self.lost[1])


def check(path: Path) -> Report:
    """Reads all of a database. Raises StorageFileError for a file that is none, or none of ours."""
    path = _existing(path)
    if emptied := FileLock(path).emptied():
        raise StorageFileError(emptied)
    log = Log(path, read_only=True)
    try:
        faults = log.faults()
        try:
            damaged = tuple(log.damaged())
            living = Counter(key[: key.index("/", key.index("/", 1) + 1)] for key in log.living_keys())
            newest, compacted = log.newest(), log.compacted()
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as fault:
            # What is not of the type that was written makes as little sense as a page that cannot be read.
            first = "; ".join(faults[:2]) or str(fault)
            raise StorageFileError(
                f"{path} is damaged and cannot be read ({first}): restore a backup with 'kubewright storage restore'"
            ) from None
        mark = FileLock(path).read_mark(log.identity)
        lost = (newest + 1, mark) if mark > newest else (0, 0)
        return Report(newest, compacted, dict(sorted(living.items())), tuple(faults), damaged, lost)
    finally:
        log.close()


def repair(path: Path) -> Report:
    """Gives up what is damaged or lost, and answers what it was. Raises StorageFileError for a database in use, or
    one whose pages are damaged: that is a case for a backup."""
    path = _existing(path)
    lock = FileLock(path)
    lock.acquire()
    report: Report | None
    try:
        try:
            report = check(path)
            fault = StorageFileError(
                f"{path} cannot be repaired ({''.join(report.faults[:1])}): restore a backup with 'kubewright storage "
                "restore'"
            )
        except StorageFileError as unread:
            report, fault = None, unread
        # A damaged index makes sound rows look lost; so it is rebuilt before anything is given up.
        if report is None or report.faults:
            report = _with_index_anew(path, report.faults if report else (str(fault),), fault)
        if not report.good:
            log = Log(path)
            # Far above everything seen: a client that goes on from a lost revision gets 410 and lists again.
            newest = max(report.newest, report.lost[1]) + REVISIONS_SKIPPED
            log.drop(report.damaged, newest)
            lock.set_mark(log.identity, newest)
            log.close()
        return report
    finally:
        lock.release()


def _with_index_anew(path: Path, faults: tuple[str, ...], fault: StorageFileError) -> Report:
    """Rebuilds the index, if only the index is damaged, and reports what was wrong and which rows still are. Raises
    ``fault`` if more is damaged."""
    log = Log(path)
    try:
        lost = log.rebuild_index()
    finally:
        log.close()
    if lost is None:
        raise fault
    now = check(path)
    return replace(now, faults=faults, damaged=tuple(sorted({*now.damaged, *lost})))


def back_up(path: Path, target: Path) -> int:
    """Copies a database that may be in use, in the place of what is at the target; the newest revision of the copy.
    Raises StorageFileError, OSError."""
    path, target = _existing(path), target.resolve()
    wal = target.with_name(target.name + "-wal")
    # Overwriting a database in use would corrupt it together with its log.
    if target.exists() and (target.samefile(path) or (wal.exists() and wal.stat().st_size)):
        raise StorageFileError(f"{target} is a database in use; save to another file")
    with _part_of(target) as part:
        copy_database(path, part)
        report = check(part)
        # A backup that cannot be restored is worse than none, since it is trusted.
        if not report.good:
            raise StorageFileError(
                f"{path} is damaged, and so would be the backup; see 'kubewright storage check'"
            )
        # rename replaces the file at once: there is the old backup or the new one, never half of one.
        part.replace(target)
        _sync_folder(target)
    return report.newest


@contextlib.contextmanager
def _part_of(target: Path) -> Iterator[Path]:
    """A file next to ``target``, for its owner alone, that is gone in the end. Raises StorageFileError."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # O_EXCL and 0600: nobody else may have made the file, or read it meanwhile.
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield part
    except OSError as fault:
        raise StorageFileError(f"cannot write {target}: {fault.strerror}") from None
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                part.with_name(part.name + end).unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """Makes a new name last through a power cut."""
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def restore(backup: Path, path: Path, *, replace: bool = False) -> int:
    """Puts a backup in the place of a database; the revision from which it goes on. The former file is kept next to
    it as ``NAME.replaced``. Raises StorageFileError for a target that is in use, or is there and ``replace`` is not
    given; OSError."""
    backup, path = _existing(backup), path.resolve()
    if not check(backup).good:
        raise StorageFileError(f"{backup} is damaged; see 'kubewright storage check {backup}'")
    if path.exists() and not replace:
        raise StorageFileError(f"{path} is there already; --replace keeps it as {path.name}.replaced")
    # Before the lock, which makes an empty file where there is none.
    newest = _highest(path)
    existed = path.exists()
    lock = FileLock(path)
    lock.acquire()
    try:
        with _part_of(path) as part:
            copy_database(backup, part)
            log = Log(part)
            try:
                revision = max(log.newest(), newest) + REVISIONS_SKIPPED
                log.begin_anew(revision)
                identity = log.identity
            finally:
                log.close()
            # At no time the database is gone, or has the log of another: who starts a server in between is refused.
            # A log without its database too is put away: SQLite would take it for one of the restored.
            for end in ("-wal", "-shm"):
                former = path.with_name(path.name + end)
                if former.exists():
                    former.replace(path.with_name(f"{path.name}.replaced{end}"))
            if existed:
                kept = path.with_name(f"{path.name}.replaced")
                kept.unlink(missing_ok=True)
                # A hard link keeps the name of the database occupied at every moment.
                kept.hardlink_to(path)
            part.replace(path)
            _sync_folder(path)
        lock.set_mark(identity, revision)
        return revision
    except sqlite3.Error as fault:
        raise explained(path, fault) from None
    finally:
        # An empty file would look like a database that lost its content.
        if not existed and not path.stat().st_size:
            path.unlink()  # made by the lock
        lock.release()


def begin_past(path: Path, revision: int) -> None:
    """Takes a database past a revision that clients know from elsewhere. Raises StorageFileError for one in use."""
    path = _existing(path)
    lock = FileLock(path)
    lock.acquire()
    try:
        log = Log(path)
        newest = max(log.newest(), revision) + REVISIONS_SKIPPED
        log.begin_anew(newest)
        lock.set_mark(log.identity, newest)
        log.close()
    finally:
        lock.release()


def _highest(path: Path) -> int:
    """The highest revision that clients of a database may have seen, as far as that can still be read."""
    mark = FileLock(path).read_mark(None)
    try:
        report = check(path)
    except StorageFileError:  # which is why it is restored
        return mark
    return max(report.newest, mark)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise StorageFileError(f"{path} is no file")
    return path.resolve()
