"""What Windows and macOS lack is not called there: the same code with those names taken away."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from apimachinery.storage.file_lock import FileLock, StorageFileError
from apimachinery.storage.reserve import Reserve
from kubewright import output
from kubewright.tools.serve.ending import on_signals

NOT_ON_WINDOWS = ("pread", "pwrite", "fchmod", "posix_fallocate", "fstatvfs")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def locking(descriptor: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) >= 1 << 20, "the mark must stay readable"
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    for name in NOT_ON_WINDOWS:
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("windows")
def test_one_process_has_a_database_on_windows(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "a.db"), FileLock(tmp_path / "a.db")
    first.acquire()
    with pytest.raises(StorageFileError, match="held by another server"):
        second.acquire()
    first.set_mark(7, 41)
    first.set_mark(7, 42)
    assert (first.mark(7), first.mark(8), second.read_mark(7)) == (42, 0, 42)
    assert not first.restrict()
    first.release()
    second.acquire()
    assert second.mark(7) == 42
    second.release()


@pytest.mark.usefixtures("windows")
def test_a_reserve_needs_no_call_of_posix(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve", 1 << 16)
    assert reserve.take() and (tmp_path / "reserve").stat().st_size == 1 << 16
    reserve.give_quarter()
    assert (tmp_path / "reserve").stat().st_size == (1 << 16) // 4 * 3


@pytest.mark.usefixtures("windows")
def test_no_process_is_asked_by_a_signal_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signal 0 is Ctrl+C there."""
    monkeypatch.delattr(os, "kill")
    assert output._is_running(4)


def test_a_loop_without_signal_handlers_ends_all_the_same() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def refuse(*_: object) -> None:
            raise NotImplementedError

        loop.add_signal_handler = refuse  # type: ignore[method-assign]
        on_signals(ended.set)
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            await ended.wait()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        asyncio.run(story())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
