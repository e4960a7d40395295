"""Asks a server for /livez every 20 ms, apart from the attackers, whose own work must not make it look slow.

    python tests/attack/livez.py PORT

On its input it is told the server's process, again after each start. For each answer it prints when that came, how long
it took, and how long less what the threads of both sides waited for a CPU, in seconds: other programs make the last no
longer.
"""

from __future__ import annotations

import contextlib
import http.client
import sys
import threading
import time
from pathlib import Path

PERIOD_SECONDS = 0.02


def waits(process: int | str = "self") -> dict[str, float]:
    """For each thread of a process the seconds for which it could have run and got no CPU; empty where the system does
    not say."""
    found: dict[str, float] = {}
    try:
        paths = list(Path(f"/proc/{process}/task").glob("*/schedstat"))
    except OSError:  # the process was killed
        return found
    for path in paths:
        with contextlib.suppress(OSError, IndexError):  # a thread that ended
            found[str(path)] = int(path.read_text().split()[1]) / 1e9
    return found


def waited_since(before: dict[str, float], process: int | str = "self") -> float:
    """The seconds for which its threads have waited for a CPU since ``before``.

    One that has ended counts as if it had not waited: a difference of sums would take off all it ever waited, and
    others' waits would look like the server's own time.
    """
    return sum(seconds - before.get(thread, 0.0) for thread, seconds in waits(process).items())


class Asking:
    """Asks until the program's input ends."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._process = 0
        self._ending = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._process = int(line)
        self._ending.set()

    def ask(self) -> None:
        connection = self._connect()
        while not self._ending.wait(PERIOD_SECONDS):
            process = self._process
            server, own, began = waits(process), waits(), time.monotonic()
            try:
                connection.request("GET", "/livez")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = self._connect()
                if process != self._process or not Path(f"/proc/{process}").exists():
                    continue  # it was killed
            now = time.monotonic()
            took = now - began
            print(now, took, took - waited_since(server, process) - waited_since(own), flush=True)

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=60.0)


if __name__ == "__main__":
    Asking(int(sys.argv[1])).ask()
