"""Several servers over one etcd: each serves what the others were given, and clients may go from one to another."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.server.assembly.api import build_api
from apimachinery.server.catalog.options import ApiOptions, parse_controllers
from apimachinery.server.controllers import leadership
from apimachinery.server.controllers.expiry import EventExpiry
from apimachinery.server.process import Server, ServerOptions
from apimachinery.server.write import allocation_ranges as ranges
from apimachinery.storage.etcd import health, messages
from apimachinery.storage.etcd.driver import EtcdStorage
from apimachinery.storage.etcd.leases import Leases
from apimachinery.storage.url import StorageOptions, open_storage

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gears.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gear", "plural": "gears"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
MAPS = "/api/v1/namespaces/default/configmaps"


class Reached:
    """A running server, and how it is asked."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        async with self._session.request(
            method, self.server.url + path, json=body, headers=headers
        ) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
        async with self._session.get(self.server.url + path, params={"watch": "1"}) as answer:

            async def event() -> Any:
                return json.loads(await asyncio.wait_for(answer.content.readline(), 60))

            yield event


Story = Callable[..., Awaitable[None]]


@pytest.fixture
def controllers() -> str:
    """Which controllers the servers run."""
    return "all"


@pytest.fixture
def tell(etcd_url: str, controllers: str) -> Callable[[Story], None]:
    async def run(story: Story) -> None:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            reached = []
            for read_only in (False, False, True)[: len(inspect.signature(story).parameters)]:
                options = StorageOptions(read_only=read_only)
                server = Server(
                    ServerOptions(storage=etcd_url, storage_options=options, shutdown_seconds=0.1),
                    OPEN_TO_LOOPBACK,
                    lambda backend: build_api(
                        backend, ApiOptions(controllers=parse_controllers(controllers))
                    ),
                )
                await server.start()
                stack.push_async_callback(server.stop)
                reached.append(Reached(server, session))
            await story(*reached)

    return lambda story: asyncio.run(run(story))


def config_map(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_each_reads_and_changes_what_the_other_was_given_at_once(tell):
    async def story(one: Reached, two: Reached) -> None:
        for number in range(20):
            writer, reader = (one, two) if number % 2 else (two, one)
            code, made = await writer.ask("POST", MAPS, config_map(f"m{number}"))
            assert code == 201
            code, read = await reader.ask("GET", f"{MAPS}/m{number}")
            assert (code, read) == (200, made)
            read["data"] = {"a": "b"}
            code, changed = await reader.ask("PUT", f"{MAPS}/m{number}", read)
            assert code == 200
            code, found = await writer.ask("GET", MAPS)
            assert changed in [{**item, "kind": "ConfigMap", "apiVersion": "v1"} for item in found["items"]]
            code, _ = await writer.ask("PUT", f"{MAPS}/m{number}", made)
            assert code == 409
            assert (await writer.ask("DELETE", f"{MAPS}/m{number}"))[0] == 200
            assert (await reader.ask("GET", f"{MAPS}/m{number}"))[0] == 404

    tell(story)


def test_a_port_of_nodes_is_given_once_though_both_are_asked_at_the_same_time(tell):
    def service(name: str, port: int) -> Any:
        spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}
        return {"metadata": {"name": name}, "spec": spec}

    async def story(one: Reached, two: Reached) -> None:
        path = "/api/v1/namespaces/default/services"
        for number in range(12):
            port = 30000 + number
            answers = await asyncio.gather(
                one.ask("POST", path, service(f"a{number}", port)),
                two.ask("POST", path, service(f"b{number}", port)),
            )
            assert sorted(code for code, _ in answers) == [201, 422], answers
            refused = next(answer for code, answer in answers if code != 201)
            assert refused["details"]["causes"] == [
                {
                    "reason": "FieldValueInvalid",
                    "message": f"Invalid value: {port}: provided port is already allocated",
                    "field": "spec.ports[0].nodePort",
                }
            ]
            made = next(answer["metadata"]["name"] for code, answer in answers if code == 201)
            # Free again at once, at either.
            assert (await one.ask("DELETE", f"{path}/{made}"))[0] == 200
            assert (await two.ask("POST", path, service(f"c{number}", port)))[0] == 201

    tell(story)


def test_whoever_draws_a_port_that_another_server_has_just_given_is_told_to_ask_again(tell, monkeypatch):
    monkeypatch.setattr(ranges.secrets, "randbelow", lambda size: 0)  # type: ignore[attr-defined]

    def service(name: str) -> Any:
        return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}

    async def story(one: Reached, two: Reached) -> None:
        path = "/api/v1/namespaces/default/services"
        clashes = 0
        for number in range(12):
            asked = [(one, f"a{number}"), (two, f"b{number}")]
            answers = await asyncio.gather(*(each.ask("POST", path, service(name)) for each, name in asked))
            for (each, name), (code, answer) in zip(asked, answers, strict=True):
                if code == 201:
                    continue
                clashes += 1
                assert (code, answer["details"]["retryAfterSeconds"]) == (500, 1)
                while code == 500:
                    await asyncio.sleep(0.05)
                    code, answer = await each.ask("POST", path, service(name))
                assert code == 201
        assert clashes

    tell(story)


def test_the_addresses_of_all_servers_are_published_until_they_stop(etcd_url):
    path = "/api/v1/namespaces/default/endpoints/kubernetes"
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"

    def server(address: str) -> Server:
        options = ApiOptions(controllers=frozenset(), advertised=address)
        return Server(
            ServerOptions(storage=etcd_url, shutdown_seconds=0.1),
            OPEN_TO_LOOPBACK,
            lambda backend: build_api(backend, options),
        )

    async def story() -> None:
        async with aiohttp.ClientSession() as session:
            one, two = server("192.0.2.1"), server("192.0.2.2")
            await one.start()
            reached = Reached(one, session)

            async def published(*wanted: str) -> bool:
                for _ in range(200):
                    subsets = (await reached.ask("GET", path))[1].get("subsets") or [{}]
                    ends = (await reached.ask("GET", slices))[1].get("endpoints") or []
                    found = [each["ip"] for each in subsets[0].get("addresses", ())]
                    if found == [*wanted] == [each["addresses"][0] for each in ends]:
                        return True
                    await asyncio.sleep(0.05)
                return False

            assert await published("192.0.2.1")
            await two.start()
            assert await published("192.0.2.1", "192.0.2.2")
            await two.stop()
            assert await published("192.0.2.1")
            await one.stop()

    asyncio.run(story())


def test_watches_and_pages_go_on_at_the_other(tell):
    async def story(one: Reached, two: Reached) -> None:
        for name in "abcd":
            await one.ask("POST", MAPS, config_map(name))
        _, first = await one.ask("GET", f"{MAPS}?limit=2")
        await one.ask("DELETE", f"{MAPS}/d")
        _, rest = await two.ask("GET", f"{MAPS}?limit=500&continue={first['metadata']['continue']}")
        names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
        assert [name for name in names if len(name) == 1] == list("abcd")
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        async with two.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}") as event:
            gone = await event()
            assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "d")
            _, made = await one.ask("POST", MAPS, config_map("e"))
            seen = await event()
            assert seen["type"] == "ADDED"
            assert seen["object"] == {**made, "kind": "ConfigMap", "apiVersion": "v1"}

    tell(story)


def test_a_definition_that_one_was_given_is_served_by_the_other(tell):
    async def story(one: Reached, two: Reached) -> None:
        assert (await one.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD))[
            0
        ] == 201
        while (await one.ask("GET", "/apis/example.com/v1/gears"))[0] != 200:
            await asyncio.sleep(0.01)
        gear = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "teeth": 3}
        code, made = await two.ask("POST", "/apis/example.com/v1/gears", gear)
        assert (code, made["teeth"]) == (201, 3)
        assert (await one.ask("GET", "/apis/example.com/v1/gears/g")) == (200, made)

    tell(story)


def test_events_are_ended_by_etcd_and_by_no_server(tell, etcd_url, monkeypatch):
    running: list[EventExpiry] = []
    lasting: list[int] = []
    lease = Leases.lease

    async def granted(leases: Leases, ttl: int) -> int:
        lasting.append(ttl)
        return await lease(leases, ttl)

    monkeypatch.setattr(EventExpiry, "start", running.append)
    monkeypatch.setattr(Leases, "lease", granted)
    core, newer = (f"/{api}/namespaces/default/events" for api in ("api/v1", "apis/events.k8s.io/v1"))

    async def story(one: Reached, two: Reached) -> None:
        old = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "R"}
        assert (await one.ask("POST", core, {**old, "lastTimestamp": "2020-01-01T00:00:00Z"}))[0] == 201
        code, read = await two.ask("GET", f"{core}/e")
        assert code == 200
        assert (await two.ask("PUT", f"{core}/e", {**read, "count": 2}))[0] == 200
        note = {
            "metadata": {"name": "n"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
            "action": "A",
            "reason": "R",
            "type": "Normal",
            "regarding": {"namespace": "default"},
        }
        assert (await two.ask("POST", newer, note))[0] == 201
        assert (await one.ask("POST", MAPS, config_map("m")))[0] == 201
        storage = await open_storage(etcd_url)
        assert isinstance(storage, EtcdStorage)
        place = storage._keys.to_etcd("/core/events/default/e")
        answer = await storage._connection.read(messages.RANGE, messages.RangeRequest(key=place))
        await storage.close()
        assert answer.kvs[0].lease and answer.kvs[0].version == 2
        assert lasting == [3600] * 3 and not running

    tell(story)


def test_controllers_run_on_one_and_are_handed_over(tell, monkeypatch):
    monkeypatch.setattr(leadership, "RETRY_SECONDS", 0.05)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

    async def holder(asked: Reached) -> tuple[str, list[str]]:
        while True:
            _, found = await asked.ask("GET", leases)
            specs = {item["metadata"]["name"]: item["spec"] for item in found["items"]}
            names = [name for name in specs if name.startswith("apiserver-")]
            if specs.get(leadership.NAME, {}).get("holderIdentity") and names:
                return specs[leadership.NAME]["holderIdentity"], names
            await asyncio.sleep(0.02)

    async def story(one: Reached, two: Reached) -> None:
        first, _ = await holder(two)
        _, names = await holder(two)
        while len(names) < 2:
            _, names = await holder(two)
        assert first.partition("_")[0] in names
        await one.server.stop()
        second, names = await holder(two)
        while second == first:
            await asyncio.sleep(0.02)
            second, names = await holder(two)
        assert names == [second.partition("_")[0]]
        # The namespace controller runs now here.
        assert (await two.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}))[0] == 201
        assert (await two.ask("DELETE", "/api/v1/namespaces/x"))[0] == 200
        while (await two.ask("GET", "/api/v1/namespaces/x"))[0] != 404:
            await asyncio.sleep(0.05)

    tell(story)


def test_a_read_only_server_shows_what_the_others_write_and_takes_nothing(tell):
    async def story(one: Reached, two: Reached, reader: Reached) -> None:
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await one.ask("POST", crds, CRD))[0] == 201
        while (await reader.ask("GET", "/apis/example.com/v1/gears"))[0] != 200:
            await asyncio.sleep(0.01)
        _, made = await two.ask("POST", MAPS, config_map("a"))
        assert await reader.ask("GET", f"{MAPS}/a") == (200, made)
        for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/a"), ("DELETE", f"{MAPS}/a"), ("DELETE", MAPS)):
            code, answer = await reader.ask(method, path, made if method != "DELETE" else None)
            assert (code, answer["reason"]) == (403, "Forbidden"), (method, path)
            assert "read-only" in answer["message"]
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        code, answer = await reader.ask(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review
        )
        assert (code, answer["status"]["allowed"]) == (201, True)
        _, leases = await one.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        assert (
            len([item for item in leases["items"] if item["metadata"]["name"].startswith("apiserver-")]) <= 2
        )

    tell(story)


@pytest.fixture
def storages(monkeypatch: pytest.MonkeyPatch) -> list[EtcdStorage]:
    """The storages of the servers, which without controllers ask etcd for its newest revision for requests alone."""
    opened: list[EtcdStorage] = []
    open_etcd = EtcdStorage.open

    async def noted(*arguments: Any) -> EtcdStorage:
        opened.append(await open_etcd(*arguments))
        return opened[-1]

    monkeypatch.setattr(EtcdStorage, "open", noted)
    monkeypatch.setattr(health, "PROBE_SECONDS", 600)
    return opened


NO_CONTROLLERS = pytest.mark.parametrize("controllers", ["none"])


class Delayed:
    """Keeps events from a storage until it asks etcd for its newest revision, or writes ``m``; counts both."""

    def __init__(self, storage: EtcdStorage) -> None:
        assert storage._follower is not None
        self._storage, self._follower, self._connection = storage, storage._follower, storage._connection
        self._held: list[Any] = []
        self.reads = self.writes = 0

    def __enter__(self) -> Delayed:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(self._follower, "_take", self._held.extend)
        self._patch.setattr(self._follower, "_progress", lambda revision: None)
        self._patch.setattr(self._connection, "read", partial(self._read, self._connection.read))
        self._patch.setattr(self._connection, "write", partial(self._write, self._connection.write))
        return self

    def __exit__(self, *fault: object) -> None:
        self._patch.undo()
        self._release()

    async def _read(self, read: Any, method: Any, request: Any) -> Any:
        answer = await read(method, request)
        if request.key == self._storage._keys.barrier:
            self.reads += 1
            self._release()
        return answer

    async def _write(self, write: Any, request: Any) -> Any:
        answer = await write(request)
        if [each.key for each in request.compare] == [
            self._storage._keys.to_etcd("/core/configmaps/default/m")
        ]:
            self.writes += 1
            self._release()
        return answer

    def _release(self) -> None:
        self._follower._take, self._follower._progress = self._storage._take, self._storage._freshness.advance
        # A stream that was opened again meanwhile has brought some of them twice.
        held = {(each.kv.mod_revision, each.kv.key): each for each in self._held}
        self._held.clear()
        if held:
            self._storage._take([held[place] for place in sorted(held)])


WRITES = [
    ("PUT", "", "application/json", {**config_map("m"), "data": {"a": "2"}}),
    ("PATCH", "", "application/merge-patch+json", {"data": {"a": "3"}}),
    (
        "PATCH",
        "?fieldManager=x&force=true",
        "application/apply-patch+yaml",
        {**config_map("m"), "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "4"}},
    ),
    ("DELETE", "", "application/json", None),
]


@NO_CONTROLLERS
def test_a_write_asks_etcd_once(tell, storages):
    async def story(one: Reached) -> None:
        assert (await one.ask("POST", MAPS, config_map("m")))[0] == 201
        with Delayed(storages[0]) as asked:
            for number, (method, query, kind, body) in enumerate(WRITES, 1):
                headers = {"Content-Type": kind}
                code, shown = await one.ask(method, f"{MAPS}/m{query}", body, **headers)
                assert (code, asked.reads, asked.writes) == (200, 0, number), shown

    tell(story)


@NO_CONTROLLERS
@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_changes_nothing_a_server_has_seen_is_written_over_what_another_was_given(
    tell, storages, number
):
    method, query, kind, body = WRITES[number]

    async def story(one: Reached, two: Reached) -> None:
        assert (await one.ask("POST", MAPS, config_map("m")))[0] == 201
        headers = {"Content-Type": kind}
        code, seen = await two.ask(method, f"{MAPS}/m{query}", body, **headers)
        assert code == 200
        with Delayed(storages[1]) as delayed:
            other = {**config_map("m"), "data": {"a": "other"}}
            code, changed = await one.ask("PUT", f"{MAPS}/m", other)
            assert code == 200
            code, shown = await two.ask(method, f"{MAPS}/m{query}", body, **headers)
            assert (code, shown["data"]) == (200, seen["data"])
            assert int(shown["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
            assert (delayed.reads, delayed.writes) == (1, 1)
        assert (await one.ask("GET", f"{MAPS}/m"))[1] == shown

    tell(story)


@NO_CONTROLLERS
def test_a_write_is_refused_or_made_for_what_another_server_was_given(tell, storages):
    async def story(one: Reached, two: Reached) -> None:
        body = {**config_map("m"), "data": {"a": "2"}}
        with Delayed(storages[1]) as delayed:
            assert (await one.ask("POST", MAPS, config_map("m")))[0] == 201
            code, old = await two.ask("PUT", f"{MAPS}/m", body)  # it has not seen that there is one
            assert (code, delayed.reads, delayed.writes) == (200, 1, 1)
        with Delayed(storages[1]) as delayed:
            assert (await one.ask("PUT", f"{MAPS}/m", {**body, "data": {"a": "3"}}))[0] == 200
            code, shown = await two.ask(
                "PUT", f"{MAPS}/m", {**old, "data": {"a": "4"}}
            )  # of a version that it has
            assert (code, shown["reason"], delayed.reads, delayed.writes) == (409, "Conflict", 0, 1)
        with Delayed(storages[1]) as delayed:
            assert (await one.ask("DELETE", f"{MAPS}/m"))[0] == 200
            code, shown = await two.ask("DELETE", f"{MAPS}/m")  # that it still has
            assert (code, shown["reason"], delayed.reads, delayed.writes) == (404, "NotFound", 0, 1)

    tell(story)


@NO_CONTROLLERS
def test_a_dry_run_sees_what_another_server_was_given(tell, storages):
    async def story(one: Reached, two: Reached) -> None:
        code, _ = await one.ask("POST", MAPS, {**config_map("m"), "data": {"a": "1"}})
        assert code == 201 and (await two.ask("GET", f"{MAPS}/m"))[0] == 200
        with Delayed(storages[1]):
            assert (await one.ask("PUT", f"{MAPS}/m", {**config_map("m"), "data": {"b": "2"}}))[0] == 200
            headers = {"Content-Type": "application/merge-patch+json"}
            code, shown = await two.ask("PATCH", f"{MAPS}/m?dryRun=All", {"data": {"c": "3"}}, **headers)
            assert (code, shown["data"]) == (200, {"b": "2", "c": "3"})

    tell(story)
