"""Records that no request could store, put straight into a database: the server starts, serves the rest, names each.

The good ones are of every kind that the server itself reads, at its start or in its loops. What is changed of them:
bytes cut off or flipped, values of other types, odd names, depth, huge numbers, another kind, key or version; and of
each kind each part in turn, null, empty and missing.
"""

from __future__ import annotations

import argparse
import copy
import http.client
import itertools
import json
import logging
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from apimachinery.storage.sqlite_checks import checksum
from kubewright.testing import ApiServer
from tests.attack.target import Target
from tests.differential.answers import is_own_failure

BATCH = 2_000
DECIDING = (
    "/admissionregistration.k8s.io",
    "/core/resourcequotas/kube-public",
    "/core/limitranges/kube-public",
    "/core/namespaces",
)
"""Keys of objects without which no write of a ConfigMap is decided."""
SEEDS = Path(__file__).with_name("stored_seeds.yaml")
_PLURALS = {"Endpoints": "endpoints", "PriorityClass": "priorityclasses"}
_CLUSTER = frozenset(
    "CustomResourceDefinition ClusterRole ClusterRoleBinding APIService "
    "ValidatingWebhookConfiguration MutatingWebhookConfiguration "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "PriorityLevelConfiguration FlowSchema Namespace Node PersistentVolume PriorityClass RuntimeClass StorageClass "
    "IngressClass ServiceCIDR".split()
)
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**70,
    1e308,
    1.5,
    "",
    "x",
    "a/b",
    "\u0000",
    "é" * 300,
    "10.0.0.999",
    "fd00::/8",
    "1e9999",
    "../..",
    "*",
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "((",
    "true",
    "\ud7ff\ufffd",
    [],
    [None],
    [[]],
    {},
    {"": ""},
    {"x": None},
    ["x", 1],
    [{}],
    {"matchLabels": 5},
    {"kind": "User"},
    "P1D",
    "k8s:enc:aescbc:v1:a:b",
    "-1",
    "0.1m",
    "1Ki" * 9,
]


def _plural(kind: str) -> str:
    small = kind.lower()
    return _PLURALS.get(
        kind, small[:-1] + "ies" if small.endswith("y") else small + ("es" if small[-1] == "s" else "s")
    )


def good_records(folder: Path) -> list[tuple[str, bytes]]:
    """Key and value of a good record of every kind that the server reads, as it stored them; the database is left."""
    path = folder / "good.db"
    with ApiServer(storage=f"sqlite:///{path}", controllers="none") as server:
        for number, body in enumerate(yaml.safe_load(SEEDS.read_text())):
            version, kind = body["apiVersion"], body["kind"]
            metadata = {"name": f"seed{number}", **body.get("metadata", {})}
            place = "" if kind in _CLUSTER else "namespaces/default/"
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            server.request("POST", f"{root}/{place}{_plural(kind)}", {**body, "metadata": metadata})
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT key, value, max(revision), deleted FROM log GROUP BY key ORDER BY key"
        ).fetchall()
    database.close()
    return [(key, bytes(value)) for key, value, _, deleted in rows if not deleted]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from _places(item, (*path, key))


def _changed(obj: Any, chance: random.Random) -> None:
    path = chance.choice(list(_places(obj)))
    holder = obj
    for key in path[:-1]:
        holder = holder[key]
    if chance.random() < 0.25:
        del holder[path[-1]]
    elif isinstance(holder, list) and chance.random() < 0.2:
        holder.extend(copy.deepcopy(holder[path[-1]]) for _ in range(3))
    else:
        holder[path[-1]] = copy.deepcopy(chance.choice(ODD))


def _spoiled(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    match chance.randrange(7):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + chance.randbytes(chance.randint(1, 4)) + data[place + 1 :]
        case 2:
            return data[:place] + b"[" * chance.choice((10, 500, 5_000)) + data[place:]
        case 3:
            depth = chance.choice((150, 250, 900, 20_000))
            return data[:-1] + b',"x":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        case 4:
            return chance.choice(
                (b"", b"null", b"[]", b"{}", b"5", b'"x"', b"\xff\xfe", b"k8s\0\x0a", b"\0" * 50)
            )
        case 5:
            return (
                b"k8s:enc:"
                + chance.choice((b"", b"aescbc:v1:gone:", b"kms:v2:", b"::::", b"\xff:"))
                + data[:place]
            )
    return data.replace(b'"', chance.choice((b"'", b'"\\ud800', b'"\xc3', b'"\x01')), chance.randint(1, 3))


def mutants(
    good: list[tuple[str, bytes]], count: int, chance: random.Random, first: int
) -> Iterator[tuple[str, bytes]]:
    """Keys and values to store from revision ``first`` on: two of three of their own keys, the others in the place of
    a good record."""
    for number in range(count):
        key, data = chance.choice(good)
        obj = json.loads(data)
        if chance.random() < 0.67:
            name = (
                f"m{first + number}"
                if chance.random() < 0.97
                else chance.choice(("", "a/b/c", "é", "%00", "..", "A"))
            )
            key = f"{key.rpartition('/')[0]}/{name}"
            if chance.random() < 0.9:
                obj["metadata"]["name"] = name
        if chance.random() < 0.95:
            obj["metadata"]["resourceVersion"] = str(first + number)
        if chance.random() < 0.5:
            obj["metadata"]["uid"] = f"uid-{number}"
        for _ in range(chance.randint(0, 3)):
            _changed(obj, chance)
            if not obj:
                break
        data = json.dumps(obj, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        yield key, data if chance.random() < 0.7 or not data else _spoiled(data, chance)


_GONE = object()


def emptied(good: list[tuple[str, bytes]], first: int) -> Iterator[tuple[str, bytes]]:
    """Keys and values to store from revision ``first`` on, ``BATCH`` of them in a database: of each seed each part in
    turn is null, empty or missing."""
    numbers = itertools.count()
    for key, data in good:
        if _renamed(key, 0) == key:
            continue
        for path in _places(json.loads(data)):
            for value in (None, [], {}, [None], _GONE):
                number = next(numbers)
                obj = json.loads(_renamed(data.decode(), number))
                obj["metadata"]["resourceVersion"] = str(first + number % BATCH)
                holder = obj
                for step in path[:-1]:
                    holder = holder[step]
                if value is _GONE:
                    del holder[path[-1]]
                else:
                    holder[path[-1]] = copy.deepcopy(value)
                yield _renamed(key, number), json.dumps(obj).encode()


def _renamed(text: str, number: int) -> str:
    """A seed's key or value under a name of its own, with names of its own for what it defines."""
    for name in ("seed", "thing", "Thing", "far"):
        text = text.replace(name, f"{name}{number}")
    return text


def store(path: Path, records: Iterator[tuple[str, bytes]]) -> None:
    """Appends records to a database, with the checksums that they should have."""
    with sqlite3.connect(path) as database:
        for key, data in records:
            last = database.execute("SELECT max(revision) FROM log").fetchone()[0] or 1
            before = database.execute(
                "SELECT max(revision), created, deleted FROM log WHERE key = ?", (key,)
            ).fetchone()
            living = before[0] is not None and not before[2]
            created = before[1] if living else last + 1
            database.execute(
                "INSERT INTO log VALUES (?, ?, ?, ?, 0, ?, ?)",
                (
                    last + 1,
                    key,
                    created,
                    before[0] if living else 0,
                    data,
                    checksum(key, last + 1, created, 0, data),
                ),
            )
    database.close()


def newest(path: Path) -> int:
    """The newest revision of a database."""
    database = sqlite3.connect(path)
    found: int = database.execute("SELECT max(revision) FROM log").fetchone()[0]
    database.close()
    return found


_LOGGERS = ("kubewright", "asyncio")


class _Faults(logging.Handler):
    """Keeps what is logged with a traceback: a record that was not expected."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps it."""
        if record.exc_info:
            self.seen.append(self.format(record)[-1500:])


def ask_server(port: int, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """One request to a server on loopback: status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until something holds. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


def start_and_serve(path: Path) -> Iterator[str]:
    """Starts a server over a database; what is wrong with it, and at last how many records it does not serve."""
    faults = _Faults()
    for logger in _LOGGERS:
        logging.getLogger(logger).addHandler(faults)
    try:
        with ApiServer(storage=f"sqlite:///{path}") as server:
            yield from _answers(server.port)
    finally:
        for logger in _LOGGERS:
            logging.getLogger(logger).removeHandler(faults)
    yield from faults.seen


def _answers(port: int) -> Iterator[str]:
    ask = partial(ask_server, port)
    for check in ("/livez", "/readyz"):
        if (answer := ask("GET", check))[0] != 200:
            yield f"{check}: {answer}"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "served-"}}
    for method, where, body, wanted in (
        ("POST", "/api/v1/namespaces/kube-public/configmaps", made, (201, 403, 404)),
        ("GET", "/api/v1/namespaces/kube-public/configmaps", None, (200, 500)),
        ("GET", "/apis", None, (200,)),
        ("GET", "/openapi/v2", None, (200,)),
    ):
        status, text = ask(method, where, body)
        if text.startswith("service unavailable"):
            continue  # an APIService, good by itself, hands the group-version to a server that is not there
        if method == "POST" and status == 500 and any(f"{key}/" in text for key in DECIDING):
            continue  # what might forbid it cannot be read
        if status not in wanted or is_own_failure(status, text):
            yield f"{method} {where}: {status} {text[:300]}"
    waiting = re.compile(r"^workqueue_depth\{.*\} [1-9]", re.MULTILINE)
    until(lambda: not waiting.search(ask("GET", "/metrics")[1]))
    figures = ask("GET", "/metrics")[1]
    named = [line for line in figures.splitlines() if line.startswith("kubewright_unreadable_objects{")]
    if not named:
        yield "no record is named as unreadable"


def records(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Fills databases with ``--stored`` records in all, and starts a server over each."""
    del target
    with tempfile.TemporaryDirectory(prefix="kubewright-stored-") as folder:
        good = good_records(Path(folder))
        first = newest(Path(folder) / "good.db") + 1
        draws: dict[str, Iterator[tuple[str, bytes]]] = {}
        parts = list(emptied(good, first))
        for batch in range(0, len(parts), BATCH):
            draws[f"parts from {batch} on"] = iter(parts[batch : batch + BATCH])
        for batch in range(0, options.stored, BATCH):
            seed = chance.random()
            draws[f"seed {seed}"] = mutants(
                good, min(BATCH, options.stored - batch), random.Random(seed), first
            )
        for number, (what, drawn) in enumerate(draws.items()):
            path = Path(folder) / f"{number}.db"
            path.write_bytes((Path(folder) / "good.db").read_bytes())
            store(path, drawn)
            try:
                yield from (f"{what}: {wrong}" for wrong in start_and_serve(path))
            except Exception as fault:
                yield f"{what}: the server does not start: {fault!r}"
            path.unlink()
