"""When a server is asked to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def on_signals(call: Callable[[], None]) -> None:
    """Calls when the process is asked to end: SIGINT, SIGTERM, on Windows Ctrl+Break too."""
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # the loops of Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
