"""The mirror's laws, on a server made of data that breaks, forgets and repeats at will."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from apimachinery.client.access import Key, key_of, resource_version_of
from apimachinery.client.async_informer import AsyncInformer
from apimachinery.client.async_reflector import AsyncReflector
from apimachinery.client.calls import UNSTRUCTURED, Call, Event, ListOptions, Target
from apimachinery.client.endpoint import Request, TransportError
from apimachinery.client.errors import Forbidden, Gone
from apimachinery.client.informer import Informer, Store
from apimachinery.client.reflector import Change, Mirror, Reflector, ReflectorOptions
from apimachinery.meta.errors import ApiError
from apimachinery.meta.resources import Resource

THINGS = Resource(
    group="example.com",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    verbs=(),
)
TARGET = Target(THINGS, "ns")
QUICK = ReflectorOptions(first_wait=0.0, longest_wait=0.0)


def obj(name: str, version: int, uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version)}}


class FaultyServer:
    """A log of changes with what a real server does to its readers: closes, breaks mid-way, forgets history."""

    def __init__(self, seed: int, changes: int) -> None:
        self.random = random.Random(seed)
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.oldest = 0
        state: dict[str, dict[str, Any]] = {}
        for version in range(1, changes + 1):
            name = f"n{self.random.randrange(5)}"
            if name in state and self.random.random() < 0.3:
                gone = state.pop(name)
                self.log.append(("DELETED", obj(name, version, gone["metadata"]["uid"])))
            else:
                uid = state[name]["metadata"]["uid"] if name in state else f"u{version}"
                self.log.append(("MODIFIED" if name in state else "ADDED", obj(name, version, uid)))
                state[name] = self.log[-1][1]
        self.visible = 0
        self.final = {("ns", name): value for name, value in state.items()}
        self.breaks = 0

    @property
    def done(self) -> bool:
        return self.visible >= len(self.log)

    def state(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for kind, value in self.log[: self.visible]:
            name = value["metadata"]["name"]
            found.pop(name, None)
            if kind != "DELETED":
                found[name] = value
        return found

    def list(self) -> bytes:
        meta = {"resourceVersion": str(self.visible)}
        return json.dumps({"metadata": meta, "items": [*self.state().values()]}).encode()

    def lines(self, request: Request) -> Iterator[bytes]:
        query = parse_qs(urlsplit(request.target).query)
        if "sendInitialEvents" in query:
            for value in self.state().values():
                yield self.line("ADDED", value)
                self.maybe_break()
            end = {"resourceVersion": str(self.visible), "annotations": {"k8s.io/initial-events-end": "true"}}
            yield self.line("BOOKMARK", {"metadata": end})
            start = self.visible
        else:
            start = int(query["resourceVersion"][0])
            if start < self.oldest:
                yield self.line(
                    "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
                )
                return
        at = start
        while True:
            self.maybe_break()
            if at >= self.visible:
                if self.done:
                    return
                self.visible += self.random.randrange(1, 4)
                self.visible = min(self.visible, len(self.log))
            kind, value = self.log[at]
            at += 1
            yield self.line(kind, value)
            if self.random.random() < 0.1:
                yield self.line("BOOKMARK", {"metadata": {"resourceVersion": str(at)}})

    def maybe_break(self) -> None:
        dice = self.random.random()
        if dice < 0.2:
            self.breaks += 1
            raise TransportError("broken", sent=True)
        if dice < 0.23:
            self.oldest = self.visible

    @staticmethod
    def line(kind: str, value: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "object": value}).encode()


class Lines:
    code = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - the stream contract's shape

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[bytes]:
        return self._lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            await asyncio.sleep(0)
            yield line

    def close(self) -> None:
        pass


class AsyncLines(Lines):
    async def close(self) -> None:  # type: ignore[override]
        pass


class FakeClient:
    def __init__(self, server: FaultyServer) -> None:
        self.server = server

    def run(self, call: Call[Any]) -> Any:
        return call.decode(self.server.list())

    def _stream(self, request: Request) -> Any:
        return Lines(self.server.lines(request))


class AsyncFakeClient(FakeClient):
    async def run(self, call: Call[Any]) -> Any:
        return call.decode(self.server.list())

    async def _stream(self, request: Request) -> Any:
        return AsyncLines(self.server.lines(request))


class Witness:
    """Checks the laws on what a handler hears: no change twice, no version back, kinds that fit the state."""

    def __init__(self) -> None:
        self.state: dict[Key, Any] = {}

    def hear(self, change: Change[dict[str, Any]]) -> None:
        key, known = key_of(change.object), self.state.get(key_of(change.object))
        if change.kind == "ADDED":
            assert known is None
            self.state[key] = change.object
        elif change.kind == "MODIFIED":
            assert known is not None
            assert change.old is known
            assert int(resource_version_of(change.object)) > int(resource_version_of(known))
            self.state[key] = change.object
        else:
            assert known is not None
            del self.state[key]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_thousand_breaks_lose_and_double_nothing(seed: int, streaming: bool) -> None:
    server = FaultyServer(seed, 150)
    options = ReflectorOptions(streaming=streaming, first_wait=0.0, longest_wait=0.0)
    reflector = Reflector(FakeClient(server), TARGET, UNSTRUCTURED, options=options)  # type: ignore[arg-type]
    witness = Witness()
    for changes in reflector:
        for change in changes:
            witness.hear(change)
        if server.done and reflector.mirror.version == str(len(server.log)):
            break
    assert witness.state == server.final == reflector.mirror.items
    assert server.breaks > 5  # 80 runs of these: well over a thousand in all


@pytest.mark.parametrize("seed", range(10))
def test_the_async_reflector_keeps_the_same_laws(seed: int) -> None:
    server = FaultyServer(seed, 150)
    witness = Witness()

    async def follow() -> None:
        reflector = AsyncReflector(AsyncFakeClient(server), TARGET, UNSTRUCTURED, options=QUICK)  # type: ignore[arg-type]
        async for changes in reflector:
            for change in changes:
                witness.hear(change)
            if server.done and reflector.mirror.version == str(len(server.log)):
                break

    asyncio.run(follow())
    assert witness.state == server.final


def test_what_no_waiting_mends_is_raised() -> None:
    class Refusing(FakeClient):
        def run(self, call: Call[Any]) -> Any:
            raise Forbidden(403, "Forbidden", "no")

    reflector = Reflector(Refusing(FaultyServer(0, 1)), TARGET, UNSTRUCTURED)  # type: ignore[arg-type]
    with pytest.raises(Forbidden):
        next(iter(reflector))
    informer = Informer(Reflector(Refusing(FaultyServer(0, 1)), TARGET, UNSTRUCTURED))  # type: ignore[arg-type]
    informer.start()
    with pytest.raises(Forbidden):
        informer.wait_until_synced(60)
    with pytest.raises(Forbidden):
        informer.stop()


STORIES: list[tuple[str, list[Event[Any]], list[tuple[str, str]]]] = [
    ("an event seen already is dropped", [Event("MODIFIED", obj("a", 1), "1")], []),
    ("a bookmark moves the version alone", [Event("BOOKMARK", None, "9")], []),
    ("a change is told with what was there", [Event("MODIFIED", obj("a", 2), "2")], [("MODIFIED", "a")]),
    (
        "a new uid is another object",
        [Event("MODIFIED", obj("a", 2, "v"), "2")],
        [("DELETED", "a"), ("ADDED", "a")],
    ),
    ("deleting the unknown is nothing", [Event("DELETED", obj("b", 2), "2")], []),
]


@pytest.mark.parametrize(("events", "wanted"), [s[1:] for s in STORIES], ids=[s[0] for s in STORIES])
def test_mirror_stories(events: list[Event[Any]], wanted: list[tuple[str, str]]) -> None:
    mirror: Mirror[dict[str, Any]] = Mirror()
    mirror.replace([obj("a", 1)], "1")
    told = [change for event in events for change in mirror.apply(event)]
    assert [(c.kind, c.object["metadata"]["name"]) for c in told] == wanted
    assert mirror.version == events[-1].resource_version


def test_an_informer_feeds_several_handlers_and_indexes() -> None:
    server = FaultyServer(3, 60)
    reflector = Reflector(FakeClient(server), TARGET, UNSTRUCTURED, ListOptions(), QUICK)  # type: ignore[arg-type]
    witnesses = [Witness(), Witness()]
    informer = Informer(reflector, indexers={"name": lambda o: [o["metadata"]["name"]]})
    failures: list[BaseException] = []

    def watched(witness: Witness) -> Any:
        def handle(change: Change[dict[str, Any]]) -> None:
            try:
                witness.hear(change)
            except AssertionError as error:
                failures.append(error)
                raise

        return handle

    for witness in witnesses:
        informer.add_handler(watched(witness))
    with informer:
        informer.wait_until_synced(60)
        for _ in range(500):
            if all(w.state == server.final for w in witnesses):
                break
            informer._reflector._stopped.wait(0.01)
        late = Witness()
        informer.add_handler(late.hear)
        for name in {key[1] for key in server.final}:
            assert [o["metadata"]["name"] for o in informer.store.by_index("name", name)] == [name]
        with pytest.raises(KeyError):
            informer.store.by_index("nothing", "x")
        for _ in range(500):
            if late.state == server.final:
                break
            informer._reflector._stopped.wait(0.01)
    assert not failures
    assert [w.state for w in (*witnesses, late)] == [server.final] * 3


def test_an_async_informer_is_iterated_for_its_changes() -> None:
    server = FaultyServer(4, 60)
    witness, heard = Witness(), Witness()

    async def hear(change: Change[dict[str, Any]]) -> None:
        heard.hear(change)

    async def follow() -> None:
        reflector = AsyncReflector(AsyncFakeClient(server), TARGET, UNSTRUCTURED, options=QUICK)  # type: ignore[arg-type]
        async with AsyncInformer(reflector) as informer:
            informer.add_handler(hear)
            await informer.wait_until_synced(60)
            async with asyncio.timeout(60):
                async for change in informer.changes():
                    witness.hear(change)
                    if witness.state == server.final and server.done:
                        break
            await asyncio.sleep(0.05)

    asyncio.run(follow())
    assert witness.state == heard.state == server.final


def test_resync_tells_of_every_object_again() -> None:
    server = FaultyServer(5, 3)
    server.visible = 3
    told: list[Change[Any]] = []
    reflector = Reflector(FakeClient(server), TARGET, UNSTRUCTURED, options=QUICK)  # type: ignore[arg-type]
    informer = Informer(reflector)
    informer.add_handler(told.append, resync_seconds=0.01)
    with informer:
        informer.wait_until_synced(60)
        for _ in range(300):
            if any(c.kind == "MODIFIED" and c.old is c.object for c in told):
                break
            informer._reflector._stopped.wait(0.01)
    assert any(c.kind == "MODIFIED" and c.old is c.object for c in told)


def test_an_expired_version_lists_again() -> None:
    error = ApiError(410, "Expired", "m")
    assert not isinstance(
        error, Gone
    )  # the base class alone does not relist: error_of_status makes the right one
    mirror: Mirror[dict[str, Any]] = Mirror()
    mirror.replace([obj("a", 1), obj("b", 1)], "1")
    changes = mirror.replace([obj("b", 5), obj("c", 5)], "5")
    assert [(c.kind, c.object["metadata"]["name"]) for c in changes] == [
        ("DELETED", "a"),
        ("MODIFIED", "b"),
        ("ADDED", "c"),
    ]


def test_a_mirror_and_its_store_hold_one_key_for_an_object() -> None:
    mirror, store = Mirror[dict[str, Any]](), Store[dict[str, Any]]()
    first = mirror.replace([obj("a", 1), obj("b", 1)], "1")
    assert (len(first), first[1].object, first[:1]) == (2, obj("b", 1), [Change("ADDED", obj("a", 1))])
    changes = [*first, *mirror.replace([obj("b", 2), obj("c", 2, "v")], "2")]
    assert [(change.kind, change.key[1]) for change in changes] == [
        *(("ADDED", "a"), ("ADDED", "b")),
        *(("DELETED", "a"), ("MODIFIED", "b"), ("ADDED", "c")),
    ]
    for change in changes:
        store.take(change)
    held = {id(key) for key in store._items}
    assert len(held) == 2 and held <= {id(change.key) for change in changes}
    assert {id(key) for key in mirror.items} & held
    assert Change("ADDED", obj("d", 1)).key == ("ns", "d")


def test_the_index_of_namespaces_is_made_when_it_is_asked_for() -> None:
    store = Store[dict[str, Any]]({"uid": lambda found: [found["metadata"]["uid"]]})
    store.take(Change("ADDED", obj("a", 1)))
    assert [*store.by_index("namespace", "ns")] == [*store.by_index("uid", "u")] == [obj("a", 1)]
    store.take(Change("ADDED", obj("b", 1)))
    store.take(Change("DELETED", obj("a", 1)))
    assert [*store.by_index("namespace", "ns")] == [*store.by_index("uid", "u")] == [obj("b", 1)]
    with pytest.raises(KeyError):
        store.by_index("none", "ns")
