"""One server of several processes: the history that clients see is one, also while readers are killed."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.attack import consistency
from tests.attack.target import Target

WORKERS = 4
FIRST_SECONDS, KILLED_EVERY = 1.0, 0.7
KILLS, SECONDS = 8, 60.0


def several(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Linearizability and snapshots over four processes, whose readers are killed all the time; a server of its own."""
    del target
    with tempfile.TemporaryDirectory(prefix="kubewright-processes-") as folder:
        own = Target(Path(folder), ("--anonymous-admin", "--workers", str(WORKERS)))
        ending, killed = threading.Event(), [0]
        thread = threading.Thread(target=_kill, args=(own, random.Random(chance.random()), ending, killed))
        try:
            yield from consistency.linearizability(own, chance, options)
            yield from consistency.snapshots(own, chance, options)
            thread.start()
            until = time.monotonic() + SECONDS * options.times
            while killed[0] < KILLS * options.times and time.monotonic() < until:
                yield from consistency.linearizability(own, chance, options, broken=True)
            if options.verbose:
                print(f"    {killed[0]} readers killed", flush=True)
            if own.tracebacks():
                yield f"tracebacks in the log; the last: {own.last_traceback()}"
        finally:
            ending.set()
            if thread.ident is not None:
                thread.join()
            own.end()


def _kill(target: Target, chance: random.Random, ending: threading.Event, killed: list[int]) -> None:
    ending.wait(FIRST_SECONDS)
    while not ending.wait(KILLED_EVERY):
        readers = [reader for nursery in _children(target.process.pid) for reader in _children(nursery)]
        if readers:
            killed[0] += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(readers), signal.SIGKILL)


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []
