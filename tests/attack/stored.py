"""Records that no request could store, put straight into a database: the server starts, serves the rest, names each.

The good ones are of every kind that the server itself reads, at its start or in its loops. What is changed of them:
bytes cut off or flipped, values of other types or other objects, odd names, depth, huge numbers, another kind, key or
version, deletion and owners; and of each kind each part in turn, null, empty and missing.
"""

from __future__ import annotations

import argparse
import asyncio
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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.driver import EtcdStorage
from apimachinery.storage.sqlite_checks import checksum
from apimachinery.storage.url import open_storage
from kubewright.testing import ApiServer
from kubewright.testing.etcd import EtcdMembers, find_etcd
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
_PLURALS = {"Endpoints": "endpoints"}
_CLUSTER = frozenset(
    "CustomResourceDefinition ClusterRole ClusterRoleBinding APIService "
    "ValidatingWebhookConfiguration MutatingWebhookConfiguration "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "PriorityLevelConfiguration FlowSchema Namespace Node PersistentVolume PriorityClass RuntimeClass StorageClass "
    "IngressClass ServiceCIDR CertificateSigningRequest IPAddress VolumeAttachment CSIDriver DeviceClass".split()
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


_OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "seed28",
    "uid": "uid-1",
    "blockOwnerDeletion": True,
}
ENDS: list[dict[str, Any]] = [
    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"]},
    {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]},
    {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan", "kubernetes.io/pvc-protection"]},
    {"deletionTimestamp": "tomorrow", "deletionGracePeriodSeconds": -1},
    {"ownerReferences": [_OWNER]},
    {"ownerReferences": [_OWNER, {**_OWNER, "uid": 5}, None]},
    {"managedFields": [{"manager": "a", "operation": "Apply", "fieldsV1": {"f:metadata": 5}}]},
    {"labels": {"a": "b"}, "namespace": "gone"},
    {"generation": "1", "creationTimestamp": 0},
]
"""Metadata of objects that are being deleted, or that others own."""


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


def _at(obj: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        obj = obj[key]
    return obj


def _changed(obj: Any, chance: random.Random, other: Any) -> None:
    """Changes one place; ``other`` is an object that parts may come from."""
    path = chance.choice(list(_places(obj)))
    holder = _at(obj, path[:-1])
    if chance.random() < 0.25:
        del holder[path[-1]]
    elif isinstance(holder, list) and chance.random() < 0.2:
        holder.extend(copy.deepcopy(holder[path[-1]]) for _ in range(3))
    elif chance.random() < 0.2:
        holder[path[-1]] = copy.deepcopy(_at(other, chance.choice(list(_places(other)))))
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
        if chance.random() < 0.1:
            obj["metadata"] |= copy.deepcopy(chance.choice(ENDS))
        other = json.loads(chance.choice(good)[1])
        for _ in range(chance.randint(0, 3)):
            _changed(obj, chance, other)
            if not obj:
                break
        if chance.random() < 0.03:
            key = f"{chance.choice(good)[0].rpartition('/')[0]}/m{first + number}"
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
                holder = _at(obj, path[:-1])
                if value is _GONE:
                    del holder[path[-1]]
                else:
                    holder[path[-1]] = copy.deepcopy(value)
                yield _renamed(key, number), json.dumps(obj).encode()


def _renamed(text: str, number: int) -> str:
    """A seed's key or value under a name of its own, with names of its own for what it defines."""
    for name in ("seed", "thing", "Thing", "gadget", "Gadget", "far"):
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


def ask_server(
    port: int, method: str, path: str, body: Any = None, accept: str = "application/json"
) -> tuple[int, str]:
    """One request to a server on loopback: status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json", "Accept": accept})
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


def start_and_serve(storage: Path | str, seen: Iterable[str] = (), controllers: str = "all") -> Iterator[str]:
    """Starts a server over a database or a storage's URL; what is wrong with it, of the answers for the keys ``seen``
    too, and whether it names no record that it does not serve."""
    faults = _Faults()
    for logger in _LOGGERS:
        logging.getLogger(logger).addHandler(faults)
    url = f"sqlite:///{storage}" if isinstance(storage, Path) else storage
    try:
        with ApiServer(storage=url, controllers=controllers, nodes=controllers != "all") as server:
            yield from _answers(server.port, rests=controllers == "all")
            yield from _read_back(server.port, seen)
    finally:
        for logger in _LOGGERS:
            logging.getLogger(logger).removeHandler(faults)
    yield from faults.seen


def _roots() -> dict[str, tuple[str, str]]:
    """Where the resources of the seeds are served, by the beginning of their keys."""
    found = {}
    for body in yaml.safe_load(SEEDS.read_text()):
        version, plural = body["apiVersion"], _plural(body["kind"])
        group, root = ("core", "/api/v1")
        if "/" in version:
            group, root = version.split("/")[0], f"/apis/{version}"
        found[f"/{group}/{plural}/"] = (root, plural)
    return found


def _read_back(port: int, seen: Iterable[str]) -> Iterator[str]:
    """Each of the keys is served or refused as one that cannot be read, and so is each list, as objects and rows."""
    roots, plain = _roots(), re.compile(r"([a-z0-9-]+/)?m[0-9]+")
    for key in seen:
        first, place = key[: key.index("/", key.index("/", 1) + 1) + 1], ""
        rest = key[len(first) :]
        if first not in roots or plain.fullmatch(rest) is None:
            continue
        root, plural = roots[first]
        if "/" in rest:
            place, rest = f"/namespaces/{rest.partition('/')[0]}", rest.partition("/")[2]
        status, text = ask_server(port, "GET", f"{root}{place}/{plural}/{rest}")
        # Controllers end what is ending, and a record may be of the other scope than its kind.
        if (not _handed_on(text) and status not in (200, 404, 500)) or is_own_failure(status, text):
            yield f"GET {key}: {status} {text[:300]}"
    for root, plural in roots.values():
        for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            status, text = ask_server(port, "GET", f"{root}/{plural}", accept=accept)
            if _handed_on(text):
                continue
            if status not in (200, 500) or is_own_failure(status, text):
                yield f"GET {root}/{plural} as {accept}: {status} {text[:300]}"


def _handed_on(text: str) -> bool:
    """Whether an APIService, good by itself, hands the group-version to a server that is not there."""
    return text.startswith("service unavailable")


def _answers(port: int, *, rests: bool) -> Iterator[str]:
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
        if _handed_on(text):
            continue
        if method == "POST" and status == 500 and any(f"{key}/" in text for key in DECIDING):
            continue  # what might forbid it cannot be read
        if status not in wanted or is_own_failure(status, text):
            yield f"{method} {where}: {status} {text[:300]}"
    waiting = re.compile(r"^workqueue_depth\{.*\} [1-9].*", re.MULTILINE)
    # Where a quota cannot be read, workloads in its namespace are tried again without end.
    try:
        until(lambda: not rests or not waiting.search(ask("GET", "/metrics")[1]))
    except TimeoutError:
        yield f"controllers do not come to rest: {waiting.findall(ask('GET', '/metrics')[1])}"
    figures = ask("GET", "/metrics")[1]
    named = [line for line in figures.splitlines() if line.startswith("kubewright_unreadable_objects{")]
    if not named:
        yield "no record is named as unreadable"


def records(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Fills databases with ``--stored`` records in all, and starts a server over each; the same in an etcd with
    ``--stored-etcd``."""
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
            put = list(drawn)
            store(path, iter(put))
            controllers = ("all", "all,workloads,node")[number % 2]
            try:
                found = start_and_serve(path, _sample(put, chance), controllers)
                yield from (f"{what}, {controllers}: {wrong}" for wrong in found)
            except Exception as fault:
                yield f"{what}, {controllers}: the server does not start: {fault!r}"
            path.unlink()
        if options.stored_etcd and find_etcd() is not None:
            with EtcdMembers(Path(folder) / "etcd") as members:
                for batch in range(0, options.stored_etcd, BATCH):
                    seed, url = chance.random(), f"{members.url}?prefix=/drawn{batch}"
                    count = min(BATCH, options.stored_etcd - batch)
                    put = list(mutants(good, count, random.Random(seed), first))
                    try:
                        asyncio.run(store_in_etcd(url, good + put))
                        found = start_and_serve(url, _sample(put, chance))
                        yield from (f"etcd, seed {seed}: {wrong}" for wrong in found)
                    except Exception as fault:
                        yield f"etcd, seed {seed}: the server does not start: {fault!r}"


def _sample(put: list[tuple[str, bytes]], chance: random.Random) -> list[str]:
    return [key for key, _ in chance.sample(put, min(100, len(put)))]


async def store_in_etcd(url: str, records: Iterable[tuple[str, bytes]]) -> None:
    """Puts records below the prefix of a storage's URL, without their revisions, as the driver stores them."""
    storage = await open_storage(url)
    assert isinstance(storage, EtcdStorage)
    try:
        for key, data in records:
            if key.count("/") < 3:
                continue
            value = re.sub(rb'"resourceVersion": ?"[0-9]+"(, ?)?', b"", data)
            put = messages.PutRequest(key=storage._keys.to_etcd(key), value=value)
            await storage._connection.write(
                messages.TxnRequest(success=[messages.RequestOp(request_put=put)])
            )
    finally:
        await storage.close()
