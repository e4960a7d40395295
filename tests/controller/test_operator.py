"""Controllers on a real server: what they do, and what they do when things go wrong."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.controller.forms import until

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.errors import Conflict, NotFound
from apimachinery.client.objects import create_or_update, retry_on_conflict, wait_for
from apimachinery.client.partial import PartialObjectMetadata
from apimachinery.controller import async_controller, async_operator
from apimachinery.controller.caches import SharedInformers
from apimachinery.controller.controller import (
    Context,
    Controller,
    Refused,
    Request,
    Watch,
    generation_changed,
)
from apimachinery.controller.election import Election, Elector, LostLeadership
from apimachinery.controller.event_series import EventSeries, Occurrence
from apimachinery.controller.kinds import UnknownResourceError, resource_of
from apimachinery.controller.lister import Lister
from apimachinery.controller.operator import Operator
from apimachinery.controller.requests import MapContext
from apimachinery.queue.clock import FakeClock
from apimachinery.queue.prometheus import PrometheusObserver
from apimachinery.queue.running import Flag
from apimachinery.typed.object import Object
from kubernetes_api.core_v1 import ConfigMap, Secret
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer, FaultProxy


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


@pytest.fixture
def client(server: ApiServer, namespace: str) -> Iterator[Client]:
    with Client(Config.load(server.kubeconfig).with_namespace(namespace)) as made:
        yield made


class Maps:
    """ConfigMaps of a namespace, plainly."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server, self._path = server, f"/api/v1/namespaces/{namespace}"

    def put(self, name: str, kind: str = "configmaps", **data: str) -> Any:
        labels = {"kind": data.pop("label", "source")}
        body = {"metadata": {"name": name, "labels": labels}, "data": data}
        return self._server.request("POST", f"{self._path}/{kind}", body)

    def get(self, name: str) -> Any:
        try:
            return self._server.request("GET", f"{self._path}/configmaps/{name}")
        except Exception:
            return None

    def patch(self, name: str, **data: str) -> None:
        path = f"{self._path}/configmaps/{name}"
        self._server.request("PATCH", path, {"data": data}, "application/merge-patch+json")

    def delete(self, name: str) -> None:
        self._server.request("DELETE", f"{self._path}/configmaps/{name}")

    def events(self) -> list[Any]:
        return list(self._server.request("GET", f"{self._path}/events")["items"])


@pytest.fixture
def maps(server: ApiServer, namespace: str) -> Maps:
    return Maps(server, namespace)


def copier() -> Controller[ConfigMap]:
    """Each source has a copy that belongs to it."""
    controller = Controller(
        for_=ConfigMap,
        owns=[ConfigMap],
        label_selector="kind=source",
        name="copier",
        finalizer="example.com/copier",
    )

    @controller.reconciler
    def reconcile(context: Context[ConfigMap], source: ConfigMap) -> None:
        name = f"{context.request.name}-copy"
        context.apply(ConfigMap(metadata=ObjectMeta(name=name), data=source.data))
        context.event("Normal", "Copied", f"to {name}")

    @controller.finalizer
    def let_go(context: Context[ConfigMap], source: ConfigMap) -> None:
        context.event("Normal", "LetGo", "good bye")

    return controller


def test_what_is_wanted_is_made_and_kept_so(client: Client, maps: Maps, namespace: str) -> None:
    observer = PrometheusObserver()
    operator = Operator(
        client,
        [copier()],
        namespace=namespace,
        observer=observer,
        metrics=observer.exposition,
        probes_port=0,
    )
    with operator:
        maps.put("a", text="1")
        until(lambda: maps.get("a-copy"))
        assert maps.get("a")["metadata"]["finalizers"] == ["example.com/copier"]
        (owner,) = maps.get("a-copy")["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ConfigMap", "a", True)
        maps.patch("a", text="2")
        until(lambda: maps.get("a-copy")["data"] == {"text": "2"})
        maps.delete("a-copy")  # somebody takes it away
        until(lambda: maps.get("a-copy"))
        maps.patch("a-copy", text="drift")
        until(lambda: maps.get("a-copy")["data"] == {"text": "2"})
        maps.delete("a")
        until(lambda: maps.get("a") is None)
        until(lambda: maps.get("a-copy") is None)
        assert {event["reason"] for event in maps.events()} == {"Copied", "LetGo"}
        assert operator.probes is not None
        url = f"http://127.0.0.1:{operator.probes.port}"
        assert urllib.request.urlopen(f"{url}/readyz", timeout=60).read() == b"ok\n"
        metrics = urllib.request.urlopen(f"{url}/metrics", timeout=60).read().decode()
        assert 'controller_runtime_reconcile_total{controller="copier",result="success"}' in metrics
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{url}/nothing", timeout=60)


def test_the_same_in_tasks(server: ApiServer, maps: Maps, namespace: str) -> None:
    async def story() -> None:
        controller = async_controller.AsyncController(
            for_=ConfigMap, owns=[ConfigMap], label_selector="kind=source"
        )

        @controller.reconciler
        async def reconcile(context: async_controller.AsyncContext[ConfigMap], source: ConfigMap) -> None:
            name = f"{context.request.name}-copy"
            await context.apply(ConfigMap(metadata=ObjectMeta(name=name), data=source.data))
            assert [owned.metadata.name for owned in context.owned(ConfigMap) if owned.metadata] in (
                [],
                [name],
            )

        async with (
            AsyncClient(Config.load(server.kubeconfig)) as client,
            asyncio.timeout(60),
            async_operator.AsyncOperator(client, [controller], namespace=namespace) as operator,
        ):
            await operator.working.wait()
            await asyncio.to_thread(maps.put, "a", text="1")
            while not await asyncio.to_thread(maps.get, "a-copy"):
                await asyncio.sleep(0.01)
            assert await operator.wait_until_idle(5)

    asyncio.run(story())


def test_errors_are_tried_again_and_refusals_are_not(client: Client, maps: Maps, namespace: str) -> None:
    calls: list[str] = []

    def reconcile(context: Context[ConfigMap], source: ConfigMap) -> float | None:
        name = context.request.name
        calls.append(name)
        if name == "hopeless":
            raise Refused("no such colour")
        if calls.count(name) < 3:
            raise Conflict(409, "Conflict", "changed") if name == "busy" else ValueError("not yet")
        return 0.01 if calls.count(name) == 3 else None

    controller = Controller(for_=ConfigMap, reconcile=reconcile, label_selector="kind=source")
    with Operator(client, [controller], namespace=namespace) as operator:
        for name in ("hopeless", "busy", "slow"):
            maps.put(name)
        until(lambda: calls.count("busy") == calls.count("slow") == 4)
        assert operator.wait_until_idle(5)
    assert sorted(calls) == ["busy"] * 4 + ["hopeless"] + ["slow"] * 4


def test_other_kinds_lead_to_the_objects_that_they_matter_to(
    client: Client, maps: Maps, namespace: str
) -> None:
    calls: list[str] = []

    def users(context: MapContext, secret: Secret) -> list[Request]:
        return [Request(namespace, "user")] if secret.metadata and secret.metadata.name == "key" else []

    def reconcile(context: Context[ConfigMap], source: ConfigMap) -> None:
        calls.append(
            ",".join(sorted(s.metadata.name or "" for s in context.lister(Secret).list() if s.metadata))
        )

    controller = Controller(
        for_=ConfigMap, reconcile=reconcile, watches=[Watch(Secret, users)], label_selector="kind=source"
    )
    with Operator(client, [controller], namespace=namespace):
        maps.put("user")
        until(lambda: calls == [""])
        maps.put("other", "secrets")
        maps.put("key", "secrets")
        until(lambda: calls[-1:] == ["key,other"])
    assert len(calls) == 2


def test_an_operator_starts_before_its_definition(server: ApiServer) -> None:
    from website_api.example_v1 import Website

    seen: list[str] = []

    def reconcile(context: Context[Website], site: Website) -> None:
        seen.append(context.request.name)

    controller = Controller(for_=Website, reconcile=reconcile)
    with ApiServer() as private, private.client() as client, Operator(client, [controller]) as operator:
        until(lambda: operator.informers.troubles)
        assert "websites: " in operator.informers.troubles[0]
        private.create_crds("examples/operator/crds")
        path = "/apis/example.kubewright.dev/v1/namespaces/default/websites"
        body = {
            "apiVersion": "example.kubewright.dev/v1",
            "kind": "Website",
            "metadata": {"name": "w"},
            "spec": {"image": "i"},
        }
        private.request("POST", path, body)
        until(lambda: seen == ["w"], 40)


def test_stop_waits_for_what_is_under_way(client: Client, maps: Maps, namespace: str) -> None:
    began, ended = threading.Event(), threading.Event()

    def reconcile(context: Context[ConfigMap], source: ConfigMap) -> None:
        began.set()
        time.sleep(0.3)
        ended.set()

    controller = Controller(for_=ConfigMap, reconcile=reconcile, label_selector="kind=source")
    operator = Operator(client, [controller], namespace=namespace)
    thread = threading.Thread(target=operator.run, kwargs={"signals": False})
    thread.start()
    maps.put("a")
    assert began.wait(60)
    operator.stop()
    thread.join(60)
    assert ended.is_set()


def test_an_operator_says_what_it_lacks(client: Client) -> None:
    with pytest.raises(ValueError, match="configmap-controller has no reconcile function"):
        Operator(client, [Controller(for_=ConfigMap)])
    with pytest.raises(ValueError, match="needs both a finalizer's name and its function"):
        Operator(client, [Controller(for_=ConfigMap, reconcile=lambda c, o: None, finalizer="a/b")])


# ------------------------------------------------------------------ election


def test_of_two_copies_one_leads_and_the_other_takes_over(client: Client, namespace: str) -> None:
    timing = {"lease_seconds": 3600, "renew_seconds": 1800, "retry_seconds": 0.1}
    elections = [Election(name="lock", namespace=namespace, identity=name, **timing) for name in "ab"]  # type: ignore[arg-type]
    operators = [Operator(client, [copier()], namespace=namespace, election=e) for e in elections]
    first, second = operators
    first.start()
    assert first.working.wait(60)
    second.start()
    until(lambda: second.elector is not None and second.elector._seen, 60)
    assert not second.working.is_set
    first.close()  # gives the lease back, else the other would wait for an hour
    assert second.working.wait(60)
    second.close()


def test_a_leader_that_cannot_renew_stops(server: ApiServer, namespace: str) -> None:
    timing = {"lease_seconds": 0.6, "renew_seconds": 0.4, "retry_seconds": 0.05}
    with FaultProxy(lambda: server.port) as proxy, Client(Config(server=proxy.url)) as client:
        election = Election(name="lock", namespace=namespace, **timing)  # type: ignore[arg-type]
        operator = Operator(client, [copier()], namespace=namespace, election=election)
        failures: list[Exception] = []

        def run() -> None:
            try:
                operator.run(signals=False)
            except LostLeadership as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert operator.working.wait(60)
        proxy.inject("forbidden")
        thread.join(60)
        assert not thread.is_alive()
        assert failures


def test_a_lease_is_taken_when_it_was_seen_unchanged_for_its_time(client: Client, namespace: str) -> None:
    clock = FakeClock()
    one = Elector(client, Election(name="lock", namespace=namespace, identity="one"), clock=clock)
    two = Elector(client, Election(name="lock", namespace=namespace, identity="two"), clock=clock)
    assert one.acquire(Flag())
    assert not two._try()
    clock.advance(10)
    assert one._try()  # renewed
    clock.advance(10)
    assert not two._try()  # seen renewed only now
    clock.advance(14)
    assert not two._try()
    clock.advance(2)
    assert two._try()
    assert not one._try()
    one.close()
    two.close()
    with pytest.raises(ValueError, match="lease_seconds > renew_seconds > retry_seconds"):
        Election(name="x", lease_seconds=5)


# ------------------------------------------------------------------ parts


def test_informers_are_shared_and_listed_by_labels(client: Client, maps: Maps, namespace: str) -> None:
    shared = SharedInformers(client, namespace=namespace)
    informer = shared.informer(ConfigMap)
    assert shared.informer(ConfigMap) is informer
    assert shared.informer(ConfigMap, label_selector="kind=other") is not informer
    metadata = shared.metadata_informer(ConfigMap)
    informer.store.add_index("text", lambda obj: [(obj.data or {}).get("text", "")])
    maps.put("a", text="x")
    maps.put("b", text="x", label="other")
    shared.start()
    shared.wait_until_synced(60)
    lister: Lister[ConfigMap] = shared.lister(ConfigMap)
    assert lister.get("a", namespace=namespace) is not None
    assert len(lister.list("kind in (source, other)")) == 2
    assert [obj.metadata.name for obj in lister.list({"kind": "other"}) if obj.metadata] == ["b"]
    assert [obj.metadata.name for obj in lister.by_index("text", "x") if obj.metadata] == ["a", "b"]
    assert lister.namespaced("elsewhere").list() == []
    (partial, _) = metadata.store.list()
    assert isinstance(partial, PartialObjectMetadata)
    assert partial.metadata.labels
    with pytest.raises(ValueError, match="shared with another transform"):
        shared.informer(ConfigMap, transform=lambda obj: obj)
    assert shared.healthy
    shared.stop()


def test_a_transform_keeps_less(client: Client, maps: Maps, namespace: str) -> None:
    def strip(obj: ConfigMap) -> ConfigMap:
        obj.data = None
        return obj

    shared = SharedInformers(client, namespace=namespace)
    informer = shared.informer(ConfigMap, transform=strip)
    maps.put("a", text="x")
    shared.start()
    shared.wait_until_synced(60)
    maps.put("b", text="x")
    until(lambda: len(informer.store) == 2)
    assert [obj.data for obj in informer.store] == [None, None]
    shared.stop()


def test_a_class_of_no_resource() -> None:
    class Nothing(Object, kw_only=True):
        API_VERSION = "x/v1"
        KIND = "Nothing"

    with pytest.raises(UnknownResourceError, match=r"no resource of x/v1 Nothing is known"):
        resource_of(Nothing)
    assert resource_of(ConfigMap).plural == "configmaps"


def test_create_or_update_writes_what_is_needed(client: Client, maps: Maps, namespace: str) -> None:
    def want(value: str) -> Callable[[ConfigMap], None]:
        def change(obj: ConfigMap) -> None:
            obj.data = {"k": value}

        return change

    named = ConfigMap(metadata=ObjectMeta(name="m"))
    first = create_or_update(client, named, want("1"))
    again = create_or_update(client, named, want("1"))
    assert first.metadata and again.metadata
    assert again.metadata.resource_version == first.metadata.resource_version
    assert create_or_update(client, named, want("2")).data == {"k": "2"}


def test_conflicts_are_tried_again_so_often() -> None:
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise Conflict(409, "Conflict", "no")

    retry_on_conflict(fail)
    assert len(tries) == 3
    with pytest.raises(NotFound):
        retry_on_conflict(lambda: (_ for _ in ()).throw(NotFound(404, "NotFound", "x")))


def test_waiting_for_a_condition(client: Client, maps: Maps, namespace: str) -> None:
    threading.Timer(0.2, lambda: maps.put("w", text="1")).start()
    threading.Timer(0.4, lambda: maps.patch("w", text="2")).start()
    found = wait_for(
        client, ConfigMap, "w", lambda obj: obj is not None and obj.data == {"text": "2"}, timeout=60
    )
    assert found is not None
    threading.Timer(0.2, lambda: maps.delete("w")).start()
    assert wait_for(client, ConfigMap, "w", lambda obj: obj is None, timeout=60) is None
    with pytest.raises(
        TimeoutError, match=r"ConfigMap w: not as expected within 0\.2 s; last seen: no such object"
    ):
        wait_for(client, ConfigMap, "w", lambda obj: obj is not None, timeout=0.2)


def test_events_are_counted_combined_and_limited(client: Client, maps: Maps, namespace: str) -> None:
    from apimachinery.controller.recorder import Recorder

    obj = ConfigMap(metadata=ObjectMeta(name="m", namespace=namespace, uid="u"))
    recorder = Recorder(client, "tester")
    for _ in range(3):
        recorder.event(obj, "Normal", "Same", "one thing")
    (event,) = maps.events()
    assert (event["count"], event["reason"], event["source"]) == (3, "Same", {"component": "tester"})
    clock = FakeClock()
    series = EventSeries(clock)
    taken = [series.take(Occurrence("u", "Warning", "Failed", f"number {n}")) for n in range(30)]
    messages = [found.message for found in taken if found is not None]
    assert len(messages) == 25  # the rest is spam
    combined = taken[10]
    assert combined is not None
    assert combined.message.startswith("(combined from similar events): number 24")
    assert combined.count == 15
    assert taken[25] is None
    clock.advance(300)
    assert series.take(Occurrence("u", "Warning", "Failed", "later")) is not None


def test_which_changes_are_of_the_spec() -> None:
    from apimachinery.client.reflector import Change

    def at(generation: int, **labels: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name="a", generation=generation, labels=labels or None))

    assert generation_changed(Change("ADDED", at(1)))
    assert generation_changed(Change("MODIFIED", at(2), at(1)))
    assert generation_changed(Change("MODIFIED", at(1, a="b"), at(1)))
    assert not generation_changed(Change("MODIFIED", at(1), at(1)))
