"""Asks a server for /livez every 20 ms, apart from the attackers, whose own work must not make it look slow.

    python tests/attack/livez.py PORT

On its input it is told the server's process, again after each start. For each answer it prints when that came, how long
it took, and how long less what the threads of both sides waited for a CPU, in seconds: other programs make the last no
longer.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from pathlib import Path

PERIOD_SECONDS = 0.02


def waited(process: int | str = "self") -> float:
    """Seconds for which the threads of a process could have run and got no CPU; 0 where the system does not say."""
    total = 0
    try:
        paths = list(Path(f"/proc/{process}/task").glob("*/schedstat"))
    except OSError:  # the process was killed
        return 0.0
    for path in paths:
        try:
            total += int(path.read_text().split()[1])
        except (OSError, IndexError):  # a thread that ended
            continue
    return total / 1e9


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
            process, lost, began = self._process, self._lost(), time.monotonic()
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
            # A thread that ended takes its count with it.
            print(now, took, took - max(0.0, self._lost() - lost), flush=True)

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=60.0)

    def _lost(self) -> float:
        return waited(self._process) + waited()


if __name__ == "__main__":
    Asking(int(sys.argv[1])).ask()
