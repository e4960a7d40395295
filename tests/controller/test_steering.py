"""What users steer: what caches hold, what they read, when an apply is sent, and what else work comes from."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller.forms import FORMS, Awaited, Copy, Form, controller, drive, until

from apimachinery.client.config import Config
from apimachinery.client.informer import Store
from apimachinery.client.partial import PartialObjectMetadata
from apimachinery.client.reflector import Change
from apimachinery.client.transport import Request as Sent
from apimachinery.controller.cached import Cached, choose, metadata_of
from apimachinery.controller.kinds import resource_of
from apimachinery.controller.lister import Lister, OwnWrites
from apimachinery.controller.requests import MapContext, Request, Watch
from apimachinery.controller.sources import Channel, Every
from apimachinery.controller.unchanged import applied_already
from apimachinery.controller.written import WrittenObjects
from apimachinery.queue.backlog import Backlog
from apimachinery.queue.clock import FakeClock
from kubernetes_api.core_v1 import ConfigMap, Pod, PodStatus, Secret
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer, FaultProxy

both = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


class Spied:
    """The requests that came by a proxy."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._seen: list[Any] = []
        proxy.inject("forbidden", when=self._note)

    def _note(self, request: Any) -> bool:
        self._seen.append(request)
        return False

    def targets(self, method: str, part: str) -> list[str]:
        return [each.target for each in self._seen if each.method == method and part in each.target]


@pytest.fixture
def proxy(server: ApiServer) -> Iterator[FaultProxy]:
    with FaultProxy(lambda: server.port) as running:
        yield running


def put(server: ApiServer, namespace: str, name: str, plural: str = "configmaps", **labels: str) -> None:
    data = {"text": name} if plural == "configmaps" else {"text": "eA=="}
    body = {"metadata": {"name": name, "labels": labels}, "data": data}
    server.request("POST", f"/api/v1/namespaces/{namespace}/{plural}", body)


def name_of(obj: Any) -> str:
    return str(obj.metadata.name)


@both
def test_a_cache_holds_what_its_options_say(form: Form, server: ApiServer, proxy: FaultProxy) -> None:
    spied, seen, secrets = Spied(proxy), dict[str, Any](), list[Any]()

    def strip(obj: ConfigMap) -> ConfigMap:
        obj.data = None
        return obj

    def name_users(context: MapContext, secret: PartialObjectMetadata) -> list[Request]:
        secrets.append(secret)
        return context.indexed(ConfigMap, "secret", name_of(secret))

    def secret_of(obj: ConfigMap) -> list[str]:
        return [(obj.metadata.annotations or {}).get("secret", "")] if obj.metadata else []

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        seen[str(context.request)] = obj.data
        assert context.lister(ConfigMap).list("kind=source")

    with server.namespace() as one, server.namespace() as two, server.namespace() as three:
        main = Cached(
            ConfigMap,
            namespaces=[one, two],
            label_selector="kind=source",
            field_selector="metadata.name!=not-me",
            transform=strip,
            indexes={"secret": secret_of},
        )
        secret_metadata = metadata_of(Secret, namespaces=[one])
        made = controller(form, reconcile, main, watches=[Watch(secret_metadata, name_users)])
        put(server, one, "a", kind="source")
        put(server, one, "not-me", kind="source")
        put(server, one, "other")
        put(server, three, "c", kind="source")
        with Copy(form, Config(server=proxy.url), [made], "") as copy:
            put(server, two, "b", kind="source")
            until(lambda: {*seen} == {f"{one}/a", f"{two}/b"})
            path = f"/api/v1/namespaces/{one}/configmaps/a"
            patch = {"metadata": {"annotations": {"secret": "key"}}}
            seen.clear()
            server.request("PATCH", path, patch, "application/merge-patch+json")
            until(lambda: seen)
            lister = copy.operator.controllers[0].view(ConfigMap).lister()
            until(lambda: lister.by_index("secret", "key"))
            seen.clear()
            put(server, one, "key", "secrets")
            put(server, two, "key", "secrets")
            until(lambda: seen)
        assert seen == {f"{one}/a": None}
        (secret,) = secrets
        assert isinstance(secret, PartialObjectMetadata)
        assert not spied.targets("GET", f"namespaces/{three}")
        assert all("labelSelector=kind" in target for target in spied.targets("GET", "configmaps"))


def test_a_class_names_the_cache_that_was_declared() -> None:
    part, rest, meta = (
        Cached(Secret, label_selector="a"),
        Cached(Secret, label_selector="b"),
        metadata_of(Secret),
    )
    whole = Cached(Secret)
    assert choose(Secret, [meta, part]) is part
    assert choose(Secret, [part, whole]) is whole
    assert choose(Secret, [meta]) == Cached(Secret)
    assert choose(rest, [part]) is rest
    with pytest.raises(ValueError, match=r"Secret is cached in several selections: name one by its Cached"):
        choose(Secret, [part, rest])
    with pytest.raises(ValueError, match="Secret has two label selectors"):
        assert Watch(part, lambda context, obj: [], label_selector="c").cached


@both
def test_a_reader_waits_for_a_cache_that_begins_now(form: Form, server: ApiServer, namespace: str) -> None:
    seen: list[object] = []

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        lister = await context.synced_lister(Secret)
        seen.append(lister.get("key", namespace=namespace) is not None)

    put(server, namespace, "key", "secrets")
    put(server, namespace, "a")
    made = controller(form, reconcile, ConfigMap)
    with Copy(form, Config(server=server.url), [made], namespace):
        until(lambda: seen)
    assert seen[0] is True


@both
def test_an_operator_reads_what_it_wrote(form: Form, server: ApiServer, namespace: str) -> None:
    seen: list[object] = []
    api = f"/api/v1/namespaces/{namespace}/secrets"

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        if seen:
            return
        label = {"mine": "1"}
        await context.apply(Secret(metadata=ObjectMeta(name="made", labels=label), string_data={"a": "b"}))
        mine = context.lister(Secret, own_writes=True)
        seen.append([name_of(each) for each in mine.list("mine=1")])
        seen.append(mine.get("made", namespace=namespace) is not None)
        verbs = Awaitable(context.api(Secret))
        await verbs.delete("made", namespace=namespace)
        await verbs.delete("old", namespace=namespace)
        seen.append([name_of(each) for each in mine.list()])

    class Awaitable:
        def __init__(self, verbs: Any) -> None:
            self._verbs = verbs

        async def delete(self, name: str, **options: Any) -> None:
            answer = self._verbs.delete(name, **options)
            if form == "asyncio":
                await answer

    server.request("POST", api, {"metadata": {"name": "old"}})
    made = controller(form, reconcile, ConfigMap, owns=[Secret])
    with Copy(form, Config(server=server.url), [made], namespace) as copy:
        until(lambda: copy.operator.working.is_set)
        put(server, namespace, "a")
        until(lambda: len(seen) == 3)
    assert seen == [["made"], True, []]


def test_own_writes_give_way_to_what_the_cache_has() -> None:
    resource, store = resource_of(ConfigMap), Store[ConfigMap]()
    written = WrittenObjects()
    written.follow(resource)
    own = OwnWrites[ConfigMap](written, resource, Cached(ConfigMap, label_selector="x=1"), ConfigMap)
    lister = Lister([store], resource=resource, own_writes=own)

    def wrote(version: str, **labels: str) -> ConfigMap:
        obj = ConfigMap(
            metadata=ObjectMeta(name="a", namespace="n", resource_version=version, labels=labels, uid="u")
        )
        written.note(Sent("PUT", "/api/v1/namespaces/n/configmaps/a"), b"", obj)
        return obj

    store.version = "9"
    first = wrote("10", x="1")
    assert lister.list() == [first]
    assert wrote("11", x="2") not in lister.list()  # not of the selection any more
    second = wrote("12", x="1")
    wrote("11", x="1")  # answers may come in another order
    assert lister.get("a", namespace="n") is second
    store.take(Change("ADDED", first))
    store.version = "10"
    assert lister.list() == [second]
    newest = wrote("15", x="1")
    store.take(Change("MODIFIED", newest))
    store.version = "20"
    assert lister.get("a", namespace="n") is newest
    assert written.of(resource) == {}
    written.note(Sent("DELETE", "/api/v1/namespaces/n/configmaps/a"), b'{"details":{"uid":"u"}}', None)
    assert lister.list() == []
    store.take(Change("DELETED", newest))
    again = ConfigMap(metadata=ObjectMeta(name="a", namespace="n", resource_version="22", uid="v"))
    store.take(Change("ADDED", again))
    assert lister.list() == [again]
    written.note(Sent("PUT", "/api/v1/namespaces/n/configmaps/a?dryRun=All"), b"", wrote("x"))
    assert written.of(resource) == {}


@both
def test_what_is_so_already_is_not_applied(
    form: Form, server: ApiServer, namespace: str, proxy: FaultProxy
) -> None:
    spied, calls, wanted = Spied(proxy), list[str](), {"text": "1"}

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        child = ConfigMap(metadata=ObjectMeta(name="made", labels={"a": "b"}), data=dict(wanted))
        given = await context.apply(child)
        assert given.data == wanted and given.metadata.resource_version
        calls.append(context.request.name)

    put(server, namespace, "a", kind="source")
    path = f"/api/v1/namespaces/{namespace}/configmaps/made"

    def patches() -> int:
        return len(spied.targets("PATCH", "configmaps/made"))

    def again(copy: Copy) -> None:
        before = len(calls)
        copy.operator.controllers[0].queue.add(Request(namespace, "a"))
        until(lambda: len(calls) > before)

    made = controller(form, reconcile, ConfigMap, label_selector="kind=source", owns=[ConfigMap], name="me")
    with Copy(form, Config(server=proxy.url), [made], namespace) as copy:
        until(lambda: calls)
        again(copy)
        assert patches() == 1
        wanted["text"] = "2"
        again(copy)
        assert patches() == 2
        wanted["text"] = "1"  # before the cache hears of it: its own write counts
        again(copy)
        assert patches() == 3
        server.request("PATCH", path, {"data": {"text": "drift"}}, "application/merge-patch+json")
        until(lambda: patches() == 4)
        until(lambda: server.request("GET", path)["data"] == wanted)
        server.request("DELETE", path)
        until(lambda: patches() == 5)
    with Copy(form, Config(server=proxy.url), [made], namespace):  # another copy compares as well
        before = len(calls)
        until(lambda: len(calls) > before)
        assert patches() == 5


def test_an_apply_that_is_left_out_would_change_nothing(server: ApiServer, namespace: str) -> None:
    """The law, over configurations of a Deployment: lists with keys, sets, maps, atomic parts, quantities."""
    chance = random.Random(31)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    left_out = 0

    def some(**members: Any) -> dict[str, Any]:
        return {name: value for name, value in members.items() if chance.random() < 0.8}

    def configuration() -> dict[str, Any]:
        env = [{"name": name, "value": chance.choice("xy")} for name in chance.choice(["A", "B", "AB"])]
        ports = [{"containerPort": port, "protocol": "TCP"} for port in chance.choice([[80], [81, 80]])]
        cpu = chance.choice(["1", "1", "1", "1000m"])
        container = some(env=env, ports=ports, resources={"limits": {"cpu": cpu}})
        names = ["one", "two"] if chance.random() < 0.5 else ["two", "one"]
        containers = [{"name": name, "image": "i:1", **container} for name in names]
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
        spec = some(replicas=chance.choice([1, 2]))
        metadata = {
            "name": "web",
            **some(labels={"a": chance.choice("12")}, finalizers=["example.com/x"]),
            **({"annotations": {}} if chance.random() < 0.1 else {}),
        }
        spec |= {"selector": {"matchLabels": {"app": "web"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    def apply(body: dict[str, Any]) -> Any:
        query = "?fieldManager=me&force=true"
        return server.request("PATCH", path + query, body, "application/apply-patch+yaml")

    live = apply(configuration())
    for _ in range(120):
        wanted = configuration()
        same = applied_already(wanted, live, "me")
        after = apply(wanted)
        if same:
            left_out += 1
            assert after["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"], wanted
        live = after
        again = applied_already(wanted, live, "me")
        rewritten = any(text in str(wanted) for text in ("1000m", "{}", "[]"))  # by the server
        assert again or rewritten, wanted
        left_out += again
    assert left_out > 30


def test_what_was_there_before_waits_for_what_happens_now() -> None:
    backlog: Backlog[str] = Backlog()
    for number in range(30):
        backlog.add(f"old-{number}", low=True)
    backlog.add("old-7")  # it changed
    for name in "abc":
        backlog.add(name)
        backlog.add(name, low=True)
    taken = [backlog.take()[0] for _ in range(9)]
    assert taken == ["old-7", "a", "b", "c", "old-0", "old-1", "old-2", "old-3", "old-4"]
    for number in range(30):
        backlog.add(f"new-{number}")
    order = [str(backlog.take()[0]) for _ in range(30)]
    assert [name for name in order if name.startswith("old")] == [
        "old-5",
        "old-6",
        "old-8",
    ]  # it comes in the end
    left = len(backlog)
    assert all(backlog.take()[0] for _ in range(left))
    assert backlog.take() == (None, None)


@both
def test_the_first_sync_has_time(form: Form, server: ApiServer, namespace: str) -> None:
    order: list[str] = []
    began, go = threading.Event(), threading.Event()

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        order.append(context.request.name)
        began.set()
        while not go.wait(0 if form == "asyncio" else 30):
            await asyncio.sleep(0.01)

    for number in range(5):
        put(server, namespace, f"old-{number}", kind="source")
    made = controller(form, reconcile, ConfigMap, label_selector="kind=source")
    with Copy(form, Config(server=server.url), [made], namespace) as copy:
        assert began.wait(60)
        put(server, namespace, "new", kind="source")
        queue = copy.operator.controllers[0].queue
        until(lambda: len(queue) == 5)
        go.set()
        until(lambda: len(order) == 6)
    assert order[1] == "new"


@both
def test_a_controller_that_needs_no_lease(form: Form, server: ApiServer, namespace: str) -> None:
    calls: list[str] = []

    def counting(name: str, **options: Any) -> Any:
        async def reconcile(context: Any, obj: ConfigMap) -> None:
            child = ConfigMap(metadata=ObjectMeta(name=f"by-{name}"), data={"a": "b"})
            await context.apply(child, owned=False)
            calls.append(name)

        return controller(form, reconcile, ConfigMap, label_selector="kind=source", name=name, **options)

    lease = {
        "metadata": {"name": "lock"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
    }
    server.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", lease)
    put(server, namespace, "a", kind="source")
    controllers = [counting("leader"), counting("all", needs_lease=False)]
    election = {"name": "lock", "namespace": namespace, "identity": "me"}
    with Copy(form, Config(server=server.url), controllers, namespace, "with", election) as copy:
        until(lambda: calls)
        assert not copy.operator.leading
        until(lambda: copy.operator.elector._seen)
    assert {*calls} == {"all"}


@both
def test_work_comes_from_channels_and_timers(form: Form, server: ApiServer, namespace: str) -> None:
    calls: list[str] = []
    clock, channel = FakeClock(), Channel()

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        calls.append(context.request.name)

    def all_of_them(context: MapContext) -> list[Request]:
        return context.indexed(ConfigMap, "namespace", namespace)

    def broken(context: MapContext) -> list[Request]:
        raise ValueError("not now")

    put(server, namespace, "a")
    put(server, namespace, "b")
    sources = [channel, Every(60, all_of_them), Every(60, broken)]
    made = controller(form, reconcile, ConfigMap, sources=sources, when=lambda change: False, clock=clock)
    channel.send(Request(namespace, "a"))
    with Copy(form, Config(server=server.url), [made], namespace, clock=clock):
        until(lambda: calls == ["a"])
        channel.send(Request(namespace, "b"))
        until(lambda: calls == ["a", "b"])
        for round_ in (1, 2):
            clock.advance(61)
            until(lambda round_=round_: calls.count("a") > round_)  # type: ignore[misc]
    channel.send(Request(namespace, "a"))
    assert channel._listeners == []
    with pytest.raises(ValueError, match="cannot ring each 0 seconds"):
        Every(0, all_of_them)


@both
def test_an_operator_of_two_clusters(form: Form, server: ApiServer, namespace: str) -> None:
    seen: list[object] = []

    def same_name(context: MapContext, secret: Secret) -> list[Request]:
        return [Request(namespace, name_of(secret))]

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        there = context.lister(hub_secrets).get(context.request.name, namespace="default")
        seen.append(None if there is None else name_of(there))
        assert context.cluster("hub").config.server == hub.url

    with ApiServer() as hub:
        hub_secrets = Cached(Secret, namespaces=["default"], cluster="hub")
        made = controller(form, reconcile, ConfigMap, watches=[Watch(hub_secrets, same_name)])
        put(server, namespace, "key")
        copy = Copy(
            form, Config(server=server.url), [made], namespace, clusters={"hub": Config(server=hub.url)}
        )
        with copy:
            until(lambda: seen == [None])
            put(hub, "default", "key", "secrets")
            until(lambda: seen[-1] == "key")
        elsewhere = controller(form, reconcile, Cached(ConfigMap, cluster="moon"))
        with Copy(form, Config(server=server.url), [elsewhere], namespace) as refused:
            pass
        assert 'there is no cluster "moon"; known: none' in str(refused.error)


@both
def test_a_controller_works_in_several_clusters(form: Form, server: ApiServer) -> None:
    """Children, status, finalizer, events and caches are where the object is, under equal names; one lease for all."""
    seen: list[tuple[str, str]] = []
    gone: list[str] = []

    async def reconcile(context: Any, pod: Pod) -> None:
        there = context.home or "home"
        made = await context.apply(ConfigMap(metadata=ObjectMeta(name="child"), data={"at": there}))
        held = context.lister(ConfigMap, own_writes=True).get("child", namespace="default")
        seen.append((there, held.data["at"]))
        pod.status = PodStatus(message=made.data["at"])
        await context.write_status(pod)
        await context.event("Normal", "Made", there)

    async def finalize(context: Any, pod: Pod) -> None:
        gone.append(context.home)

    spec = {"containers": [{"name": "c", "image": "i"}]}
    pods, children = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps/child"
    with ApiServer() as one, ApiServer() as west:
        named = {"owns": [ConfigMap], "finalizer": "example.com/x"}
        made = controller(form, reconcile, Pod, **named)
        if form == "asyncio":
            made.finalizer(finalize)
        else:
            made.finalizer(lambda context, pod: drive(finalize(Awaited(context), pod)))
        others = {"west": Config(server=west.url)}
        lease = {"name": "several", "namespace": "default", "retry_seconds": 0.1}
        both = [made, made.at("west")]
        with Copy(form, Config(server=one.url), both, "", clusters=others, election=lease) as copy:
            for each in (one, west):
                each.request("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
            for each, there in ((one, "home"), (west, "west")):
                until(lambda: each.request("GET", f"{pods}/p")["status"].get("message") == there)  # noqa: B023
                found = each.request("GET", children)
                assert found["data"] == {"at": there}
                assert found["metadata"]["ownerReferences"][0]["name"] == "p"
                until(lambda: each.request("GET", "/api/v1/namespaces/default/events")["items"])  # noqa: B023
                each.request("DELETE", children)  # an event on a child is work on its owner, in its cluster
                until(lambda: restored(each, children, found["metadata"]["uid"]))  # noqa: B023
            assert {where for where, _ in seen} == {"home", "west"} and all(a == b for a, b in seen)
            assert {each.title for each in copy.operator.controllers} == {
                "pod-controller",
                "pod-controller@west",
            }
            west.request("DELETE", f"{pods}/p?gracePeriodSeconds=0")
            until(lambda: gone)
            until(lambda: not west.request("GET", pods)["items"])
            assert set(gone) == {"west"}  # a cache that is behind may ask twice
            assert one.request("GET", pods)["items"]
        for each, leases in ((one, 1), (west, 0)):
            assert (
                len(each.request("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases")["items"])
                == leases
            )


def restored(server: ApiServer, path: str, before: str) -> bool:
    found = server.request("GET", path.rpartition("/")[0])["items"]
    return any(each["metadata"]["name"] == "child" and each["metadata"]["uid"] != before for each in found)
