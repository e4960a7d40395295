"""A quiet user beside a hostile one: what the second costs the first.

The quiet user (``quiet.py``, a process of its own) is measured alone, and then beside each hostile flow: another user
who sends one kind of costly request on many connections. What counts is the CPU time that the server uses from a quiet
request to its answer, which is what it does for others first; a busy machine makes that no longer. Nor does a disk that
stops for a moment: the database is in memory where the system has a folder there, or all that the server does while a
commit waits would count. Bar: the 99th percentile is at most ten times what it is alone, in one run; less than
``FLOOR_SECONDS`` counts as that.

Each flow's request is sent by a user without rights too: what it costs before anybody knows that it may be answered is
bounded as that of a stranger is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.attack.inputs import definition_of_columns
from tests.attack.sending import Sender, request
from tests.attack.target import ROOT, Target
from tests.attack.unauthenticated import MOST_SECONDS, SMALL, cost

MEMORY = Path("/dev/shm")
TIMES = 10
CONNECTIONS = 60
FLOOR_SECONDS = 0.01
"""Two turns of the loop; the system counts CPU time to some milliseconds."""
ALONE_SECONDS = 6.0
BESIDE_SECONDS = 8.0
QUIET, HOSTILE, ADMIN, STRANGER = "quiet-token", "hostile-token", "admin-token", "strange-token"
MAPS = "/api/v1/namespaces/hostile/configmaps"
COLUMNS = "/apis/columns.example.com/v1/namespaces/hostile/columns"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"


@dataclass(frozen=True)
class Flow:
    """What each of the connections sends: one request, made for the connection's number."""

    name: str
    make: Callable[[int], bytes]
    connections: int = CONNECTIONS


def _ask(
    method: str, path: str, body: bytes | Callable[[int], bytes] = b"", kind: str = JSON, accept: str = JSON
) -> Callable[[int], bytes]:
    def make(number: int) -> bytes:
        sent = body(number) if callable(body) else body
        lines = (f"Authorization: Bearer {HOSTILE}", f"Content-Type: {kind}", f"Accept: {accept}")
        return request(path.replace("NUMBER", str(number)), *lines, method=method, body=sent)

    return make


def _large(number: int) -> bytes:
    return json.dumps({"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 1_000_000}}).encode()


def _many_keys(number: int) -> bytes:
    data = {f"k{n}": "v" for n in range(60_000)}
    return json.dumps({"metadata": {"name": f"keys-{number}"}, "data": data}).encode()


def _yaml(number: int) -> bytes:
    lines = "".join(f"  k{n}: v\n" for n in range(20_000))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml-{number}\ndata:\n{lines}".encode()


def _operations(number: int) -> bytes:
    return json.dumps([{"op": "add", "path": f"/data/p{n}", "value": "a"} for n in range(9_000)]).encode()


FLOWS = [
    Flow("large creates", _ask("POST", f"{MAPS}?dryRun=All", lambda number: _large(1_000 + number))),
    Flow("large updates", _ask("PUT", f"{MAPS}/large-NUMBER", _large)),
    Flow("creates of many keys", _ask("POST", f"{MAPS}?dryRun=All", _many_keys)),
    Flow("creates in YAML", _ask("POST", f"{MAPS}?dryRun=All", _yaml, YAML)),
    Flow("applies", _ask("PATCH", f"{MAPS}/yaml-NUMBER?fieldManager=a&dryRun=All", _yaml, APPLY)),
    Flow("patches", _ask("PATCH", f"{MAPS}/seed-1?dryRun=All", _operations, "application/json-patch+json")),
    Flow("refused bodies", _ask("POST", MAPS, b"[" * 1_400_000)),
    Flow("lists", _ask("GET", MAPS)),
    Flow("lists in YAML", _ask("GET", MAPS, accept=YAML)),
    Flow("tables", _ask("GET", MAPS, accept=TABLE)),
    Flow("tables of recursive columns", _ask("GET", COLUMNS, accept=TABLE)),
    Flow("lists by selectors", _ask("GET", f"{MAPS}?labelSelector={','.join(f'a{n}!%3Db' for n in range(6_000))}")),
    Flow("watches", _ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0")),
    Flow("deletions", _ask("DELETE", f"{MAPS}?dryRun=All")),
    Flow("gets", _ask("GET", f"{MAPS}/seed-1")),
    Flow("descriptions", _ask("GET", "/openapi/v2?NUMBER")),
    Flow("without credentials", lambda number: request("/api/v1/pods?fieldSelector=" + "%41" * 80_000)),
]  # fmt: skip


class _Hostile:
    """The connections of a hostile flow, each a thread."""

    def __init__(self, target: Target, flow: Flow) -> None:
        self._target = target
        self._ending = threading.Event()
        self.answers: dict[int, int] = defaultdict(int)
        self._threads = [
            threading.Thread(target=self._send, args=(flow.make(number),), daemon=True)
            for number in range(flow.connections)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, data: bytes) -> None:
        sender = Sender(self._target)
        while not self._ending.is_set():
            with contextlib.suppress(OSError):
                self.answers[sender.send(data)] += 1
        sender.close()

    def end(self) -> None:
        """Waits for the last answers."""
        self._ending.set()
        for thread in self._threads:
            thread.join(90)


def _percentiles(target: Target, seconds: float) -> tuple[dict[str, float], list[str]]:
    """The 99th percentile of the quiet user's requests by name, and what was wrong with them."""
    command = [sys.executable, str(ROOT / "tests/attack/quiet.py"), str(target.port), QUIET]
    command += [str(target.process.pid), str(seconds)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    took: dict[str, list[float]] = defaultdict(list)
    statuses: dict[str, int] = defaultdict(int)
    for line in said.splitlines():
        name, status, _, used = line.split()
        took[name].append(float(used))
        if not status.startswith("2"):
            statuses[f"{name}: {status}"] += 1
    wrong = [f"{status}, {count} times" for status, count in statuses.items()]
    return {name: sorted(times)[max(0, int(len(times) * 0.99) - 1)] for name, times in took.items()}, wrong


def flows(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every hostile flow, on a server of its own."""
    del target, chance
    names = {name.strip() for name in options.inputs.split(",") if name.strip()}
    memory = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kubewright-flows-", dir=memory) as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(
            f'{ADMIN},admin,1,"system:masters"\n{QUIET},quiet,2,"team"\n{HOSTILE},hostile,3,"team"\n'
            f"{STRANGER},stranger,4\n"
        )
        tokens.chmod(0o600)
        own = Target(Path(folder), ["--tls", "off", "--token-file", str(tokens)])
        try:
            _prepare(own)
            chosen = [flow for flow in FLOWS if not names or flow.name in names]
            yield from _without_rights(own, chosen, options)
            yield from _beside(own, chosen, options)
            if own.tracebacks():
                yield f"tracebacks in the log; the last: {own.last_traceback()}"
        finally:
            own.end()


def _prepare(own: Target) -> None:
    """Two namespaces, rights in them, and what the hostile user reads."""
    own.token = ADMIN
    for name in ("quiet", "hostile"):
        own.make("/api/v1/namespaces", {"metadata": {"name": name}})
        own.make(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}],
            },
        )
    own.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition_of_columns())
    names = {"apiVersion": "columns.example.com/v1", "kind": "Column"}
    flat = {f"k{number}": [number] for number in range(900)}
    for number in range(20):
        own.make(COLUMNS, {**names, "metadata": {"name": f"c{number}"}, "spec": flat})
    data = {f"k{number}": "v" * 60 for number in range(10)}
    for number in range(3_000):
        own.make(MAPS, {"metadata": {"name": f"seed-{number}", "labels": {"n": str(number)}}, "data": data})
    for number in range(CONNECTIONS):
        own.make(MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"a": "x"}})
    own.make(MAPS.replace("hostile", "quiet"), {"metadata": {"name": "first"}, "data": data})


def _without_rights(own: Target, chosen: Sequence[Flow], options: argparse.Namespace) -> Iterator[str]:
    """What each request costs where it is refused; whoever is authenticated may read descriptions."""
    for flow in chosen:
        data = flow.make(1).replace(HOSTILE.encode(), STRANGER.encode())
        seconds, status = cost(own, data)
        bar = MOST_SECONDS * max(len(data), SMALL) / SMALL
        if options.verbose:
            print(
                f"    {flow.name:30} refused: {status}, {seconds * 1000:.2f} of {bar * 1000:.1f} ms",
                flush=True,
            )
        if status != (200 if flow.name == "descriptions" else 403):
            yield f"{flow.name} without rights: {status}"
        if seconds > bar:
            yield f"{flow.name} without rights: {seconds * 1000:.1f} ms of CPU time; {bar * 1000:.1f} are allowed"


def _beside(own: Target, chosen: Sequence[Flow], options: argparse.Namespace) -> Iterator[str]:
    _percentiles(own, 1.0)  # what is made once
    alone, wrong = _percentiles(own, ALONE_SECONDS)
    yield from wrong
    _show(options, "alone", alone, {}, {})
    for flow in chosen:
        hostile = _Hostile(own, flow)
        try:
            beside, wrong = _percentiles(own, BESIDE_SECONDS)
        finally:
            hostile.end()
        _show(options, flow.name, beside, alone, hostile.answers)
        for line in wrong:
            yield f"beside {flow.name}: {line}"
        for name, took in beside.items():
            ratio = took / max(alone[name], FLOOR_SECONDS)
            if ratio > TIMES:
                yield f"beside {flow.name}: {name} takes {took * 1000:.0f} ms, {ratio:.0f} times what it does alone"


def _show(
    options: argparse.Namespace,
    name: str,
    took: dict[str, float],
    alone: dict[str, float],
    answers: dict[int, int],
) -> None:
    if not options.verbose:
        return
    cells = [
        f"{verb} {seconds * 1000:6.0f} ms"
        + (f" ({seconds / max(alone[verb], FLOOR_SECONDS):5.1f})" if alone else "")
        for verb, seconds in took.items()
    ]
    print(f"    {name:30} {'  '.join(cells)}  {dict(answers) or ''}", flush=True)
