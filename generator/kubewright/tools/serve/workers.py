"""``--workers``: the processes of one server.

A process that has threads cannot be forked safely, and a server has some. So the *nursery* is forked first, before
there are any: it does nothing but fork a reader whenever it is asked to. A reader inherits options, keys and
certificates as they are here, and ends with its writer: when the connection with it breaks, nothing is left to serve.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from apimachinery.server.catalog.options import OptionError
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.url import is_etcd, is_snapshot
from kubewright.processes import usable_processes
from kubewright.tools.serve import delegation

FILES_AT_ONCE = 8
MOST_WORKERS = 64
RunReader = Callable[[RevisionBoard, int, socket.socket, Sequence[socket.socket]], int]
"""Runs the reader of a number with its door and its listening sockets; the exit code of its process."""
_RunNumber = Callable[[int, socket.socket, Sequence[socket.socket]], int]


def check_workers(options: argparse.Namespace) -> int:
    """How many processes serve. Raises OptionError where there can be one only."""
    workers = int(options.workers)
    if not 1 <= workers <= MOST_WORKERS:
        raise OptionError(f"--workers {workers}: give 1 to {MOST_WORKERS}")
    if workers == 1:
        return 1
    if not sys.platform.startswith("linux"):
        raise OptionError(f"--workers {workers}: {sys.platform} does not share connections among processes")
    if is_etcd(options.storage) or is_snapshot(options.storage):
        raise OptionError(
            f"--workers {workers}: {options.storage.partition(':')[0]} is for several servers already; start as many "
            "servers over it behind a load balancer"
        )
    refused = {
        "--delegate": delegation.delegates(options),
        "--tracing-config-file": options.tracing_config_file is not None,
        "--audit-log-mode blocking-strict": options.audit_log_path is not None
        and options.audit_log_mode == "blocking-strict",
    }
    for name, is_given in refused.items():
        if is_given:
            raise OptionError(f"--workers {workers}: {name} works with one process only")
    return workers


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of one server, beside this one."""

    workers: int
    board: RevisionBoard
    nursery: Nursery

    @classmethod
    def of(cls, workers: int, packages: Sequence[str], run: RunReader) -> Processes | None:
        """Forks the nursery; None for one process. Raises OptionError."""
        if workers == 1:
            return None
        for name in packages:
            ServedPackage(name)  # its modules are read once, for all processes
        board = RevisionBoard()
        return cls(workers, board, Nursery(partial(run, board)))


class Nursery:
    """The process that forks. Make it before there are threads. Raises OptionError where there are."""

    def __init__(self, run: _RunNumber) -> None:
        if usable_processes(2) < 2:
            raise OptionError("--workers: this process has threads already, and cannot be forked")
        self._own, theirs = socket.socketpair()
        gc.collect()
        gc.freeze()
        if os.fork():
            theirs.close()
            self._own.setblocking(False)
            gc.unfreeze()
            return
        self._own.close()
        _nurse(theirs, run)

    def spawn(self, number: int, sockets: Sequence[socket.socket]) -> None:
        """Starts a reader. Raises OSError where the nursery is gone."""
        socket.send_fds(self._own, [bytes([number])], [each.fileno() for each in sockets])

    def close(self) -> None:
        """Ends it."""
        self._own.close()


def _nurse(asked: socket.socket, run: _RunNumber) -> None:
    """Forks until the other side is gone; never returns."""
    try:
        # A terminal's interrupt is for the writer, which tells the others.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        while True:
            said, files, _, _ = socket.recv_fds(asked, 1, FILES_AT_ONCE)
            if not said:
                break
            given = [socket.socket(fileno=file) for file in files]
            if not os.fork():
                asked.close()
                os._exit(_reader(said[0], given, run))
            for each in given:
                each.close()
    finally:
        os._exit(0)


def _reader(number: int, given: Sequence[socket.socket], run: _RunNumber) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    door, *sockets = given
    door.setblocking(False)
    try:
        return run(number, door, sockets)
    except BaseException:
        logging.getLogger("kubewright.server").exception("a reader failed", extra={"worker": number})
        return 1


def end_with_writer() -> None:
    """Ends this process at once: the writer is gone."""
    os._exit(1)


class _NumberedLines(logging.Filter):
    """Adds the process to lines of the log."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "worker"):
            record.worker = self._number
        return True


def number_lines(number: int) -> None:
    """Has the lines of this process's log say which one it is."""
    for handler in logging.getLogger("kubewright").handlers:
        handler.addFilter(_NumberedLines(number))


async def until(asked: asyncio.Event) -> None:
    """Returns when the end is asked for, by the writer or by a signal to this process."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, asked.set)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    await asked.wait()
