"""One server of several processes against one of one process: rates, and the CPU time of a request in all of them.

    python tests/bench/workers.py [--workers 1,2,4] [--seconds 4] [--tls] [--only get,list-1k]

Needs wrk and Linux. Rates say something only where there are cores for the processes and for wrk; the CPU time of a
request, user and system, does anywhere, and so does ``could``: how many times as much all could do with a core each,
which the busiest of them limits. ``health`` asks /livez on new connections while large objects are written.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server_load import CREATE, TOKEN, Target, fan_out, running, seed, wrk

TICK = os.sysconf("SC_CLK_TCK")
PORT = 7690
Measured = tuple[float, str, int]


def family(process: int) -> list[int]:
    """A process and all below it: the writer, the nursery, the readers."""
    below = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(each for child in below for each in family(int(child)))]


def cpu(processes: list[int]) -> list[float]:
    """Seconds that each has used."""
    used = []
    for each in processes:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        used.append((int(fields[11]) + int(fields[12])) / TICK)
    return used


@contextmanager
def served(workers: int, tls: bool) -> Iterator[Target]:
    options = ["--workers", str(workers), "--packages", "kubernetes_api"]
    with running("memory://", tls, options, PORT) as target:
        until = time.monotonic() + 60
        while workers > 1 and len(family(target.process.pid)) < workers + 1:
            time.sleep(0.1)
        while f'worker="{workers - 1}"' not in metrics(target) and workers > 1 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(2)
        seed(target, "load1k", 1000)
        yield target


def metrics(target: Target) -> str:
    connection = target.connect()
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return connection.getresponse().read().decode()


def health(target: Target, seconds: int) -> Measured:
    """How long /livez takes while bodies of 3 MB are read and objects of 900 kB are written."""
    ending = threading.Event()
    path = "/api/v1/namespaces/load1k/configmaps"
    head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    # Made before: encoding them here would hold up the thread that asks.
    bodies = [
        json.dumps(
            {"metadata": {"generateName": "large-"}, "data": {f"key{n}": "v" * 90 for n in range(keys)}}
        ).encode()
        for keys in (9_000, 30_000)
    ]

    def write() -> None:
        connection = target.connect()
        turn = 0
        while not ending.is_set():
            turn += 1
            try:
                connection.request("POST", path, bodies[turn % 2], head)
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    late, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        connection = target.connect()
        began = time.monotonic()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        late.append(time.monotonic() - began)
        connection.close()
        time.sleep(0.005)
    ending.set()
    for thread in threads:
        thread.join()
    late.sort()
    slow = f"{late[int(len(late) * 0.99)] * 1e3:.1f}ms, at most {late[-1] * 1e3:.1f}ms"
    return len(late) / seconds, slow, 0


def measures(target: Target, seconds: int, connections: int) -> dict[str, Callable[[], Measured]]:
    one = "/api/v1/namespaces/load1k/configmaps"
    script = f'local PATH, RUN = "{one}", "w{time.time_ns()}"' + CREATE
    return {
        "get": lambda: wrk(f"{target.url}{one}/cm-000005", connections, seconds),
        "list-1k": lambda: wrk(target.url + one, connections // 4, seconds),
        "fan-out": lambda: asyncio.run(fan_out(target, 200, 200)),
        "create": lambda: wrk(target.url, connections, seconds, script),
        "health": lambda: health(target, seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    first: dict[str, tuple[float, float]] = {}
    for workers in map(int, options.workers.split(",")):
        with served(workers, options.tls) as target:
            for name, measure in measures(target, options.seconds, options.connections).items():
                if options.only and name not in options.only.split(","):
                    continue
                processes = family(target.process.pid)
                before, began = cpu(processes), time.monotonic()
                rate, slow, failed = measure()
                took = time.monotonic() - began
                used = [after - each for after, each in zip(cpu(processes), before, strict=True)]
                count = 200 * 200 if name == "fan-out" else rate * options.seconds
                each = sum(used) / count * 1e6
                rated, cost = first.setdefault(name, (rate, each))
                could = cost / (max(used) / count * 1e6)
                shares = "/".join(f"{part / took:.2f}" for part in used)
                print(
                    f"{workers} {name:8s} {rate:9,.0f}/s ({rate / rated:4.2f} x)  {each:8,.1f} µs CPU "
                    f"({each / cost:4.2f} x)  could {could:4.2f} x  p99 {slow}  failed {failed}  cores {shares}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
