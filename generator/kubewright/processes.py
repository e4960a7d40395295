"""Whether work may be shared among processes.

A forked child has one thread. A lock that another thread held at that moment, the interpreter's or a C library's, stays
locked in it, and a parent that waits for the child waits with it (POSIX.1-2017, fork; CPython warns from 3.12 on). A
command of ours is alone in its process; a program that calls one may have threads.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


def usable_processes(wanted: int) -> int:
    """How many processes to use: ``wanted``, or 1 where this process cannot be forked safely."""
    return wanted if hasattr(os, "fork") and _threads() == 1 else 1


def _threads() -> int:
    """Those of C libraries too, where the system tells."""
    try:
        return len([*Path("/proc/self/task").iterdir()])
    except OSError:
        return threading.active_count()
