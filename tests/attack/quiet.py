"""A user who asks little, apart from those who ask much: what each of his requests takes him.

    python tests/attack/quiet.py PORT TOKEN PROCESS SECONDS

For so many seconds he creates an object of 40 KB, reads it, lists what he has, and deletes it, one after the other. For
each request it prints its name, its status, how long it took, and how much CPU time the server used meanwhile, in
seconds: what it did for him, and for others before him, less its share of the time for which this process waited for a
CPU. Other programs on the machine make the last no longer.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from pathlib import Path

PERIOD_SECONDS = 0.01

MAPS = "/api/v1/namespaces/quiet/configmaps"


def requests(number: int) -> list[tuple[str, str, str, bytes]]:
    """A round: name, method, path and body of each."""
    name = f"quiet-{number}"
    body = json.dumps({"metadata": {"name": name}, "data": {f"k{n}": "v" * 90 for n in range(400)}}).encode()
    return [
        ("create", "POST", MAPS, body),
        ("get", "GET", f"{MAPS}/{name}", b""),
        ("list", "GET", f"{MAPS}?limit=10", b""),
        ("delete", "DELETE", f"{MAPS}/{name}", b""),
    ]


def used(process: int) -> float:
    """Seconds of CPU time of a process, of threads that have ended too."""
    # As clock_getcpuclockid(3) makes it: the clock of a process that the scheduler counts to the nanosecond.
    return time.clock_gettime((~process << 3) | 2)


def waited() -> float:
    """Seconds for which this process could have run and got no CPU."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def main(port: int, token: str, process: int, seconds: float) -> None:
    """Asks until the time is over."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        number += 1
        for name, method, path, body in requests(number):
            before, late, began = used(process), waited(), time.monotonic()
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException):
                connection.close()
                status = 0
            took = time.monotonic() - began
            share = max(0.0, 1 - (waited() - late) / took)
            print(name, status, took, (used(process) - before) * share, flush=True)
            time.sleep(PERIOD_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
