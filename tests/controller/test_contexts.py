"""What a reconcile function relies on: its status is written, its caches are whole, no hook ends its worker."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from tests.controller.forms import FORMS, Copy, Form, controller

import kubernetes_api.async_client
import kubernetes_api.client
from apimachinery.client.config import Config
from apimachinery.client.errors import TransportError
from apimachinery.client.informer import Store
from apimachinery.controller.controller import Context, Controller
from apimachinery.controller.lister import CacheNotSynced, Lister
from apimachinery.controller.operator import Operator
from apimachinery.controller.requests import Request, generation_changed
from apimachinery.queue.backlog import ExponentialBackoff
from apimachinery.queue.observing import GuardedObserver, Observer, Outcome
from apimachinery.queue.work_queue import WorkQueue
from kubernetes_api.core_v1 import ConfigMap, Namespace, Secret
from kubewright.testing import ApiServer, FaultProxy
from website_api.example_v1 import Website, WebsiteStatus

both = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(crds=["examples/operator/crds"]) as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


class Sites:
    """Websites of a namespace, plainly."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._path = f"/apis/example.kubewright.dev/v1/namespaces/{namespace}/websites"

    def put(self, name: str, **status: object) -> None:
        body = {"apiVersion": "example.kubewright.dev/v1", "kind": "Website", "metadata": {"name": name}}
        self._server.request("POST", self._path, {**body, "spec": {"image": "i"}})
        if status:
            self.patch(f"{name}/status", status=status)

    def patch(self, name: str, **body: object) -> None:
        self._server.request("PATCH", f"{self._path}/{name}", body, "application/merge-patch+json")

    def address(self, name: str) -> str:
        return str((self._server.request("GET", f"{self._path}/{name}").get("status") or {}).get("address"))


@pytest.fixture
def sites(server: ApiServer, namespace: str) -> Sites:
    return Sites(server, namespace)


@contextmanager
def running(form: Form, url: str, namespace: str, made: Any, **options: Any) -> Iterator[Copy]:
    with Copy(form, Config(server=url), [made], namespace, **options) as copy:
        yield copy
    assert copy.error is None


@both
def test_the_last_status_stays(form: Form, server: ApiServer, sites: Sites, namespace: str) -> None:
    calls: list[str] = []

    async def reconcile(context: Any, site: Website) -> None:
        calls.append(site.metadata.resource_version or "")
        for address in ("working", "ready"):
            site.status = WebsiteStatus(address=address)
            await context.write_status(site)

    sites.put("a", address="ready")
    with running(form, server.url, namespace, controller(form, reconcile, Website, when=generation_changed)):
        until(lambda: calls)
        until(lambda: sites.address("a") == "ready" and calls)
    assert sites.address("a") == "ready"
    assert len(calls) == 1  # no write met a conflict


@both
def test_a_status_that_may_have_been_written_is_written_again(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    ended = threading.Event()
    failures: list[Exception] = []

    async def reconcile(context: Any, site: Website) -> None:
        if not failures:
            try:
                site.status = WebsiteStatus(address="working")
                await context.write_status(site)
            except TransportError as error:  # it was written, and nobody knows
                failures.append(error)
        site.status = WebsiteStatus(address="ready")
        await context.write_status(site)
        ended.set()

    sites.put("a", address="ready")
    with FaultProxy(lambda: server.port) as proxy:
        proxy.inject("reset-after", times=1, when=lambda request: request.method == "PUT")
        made = controller(form, reconcile, Website, when=generation_changed)
        with running(form, proxy.url, namespace, made):
            assert ended.wait(60)
    assert failures
    assert sites.address("a") == "ready"


@both
def test_a_stale_cache_hides_no_status(form: Form, server: ApiServer, sites: Sites, namespace: str) -> None:
    """The second look comes before the cache has the status of the first, and no change brings a third."""
    wanted = iter(["new", "old"])
    looks: list[str] = []

    async def reconcile(context: Any, site: Website) -> float | None:
        address = looks[-1] if len(looks) > 1 else next(wanted)
        looks.append(address)
        site.status = WebsiteStatus(address=address)
        await context.write_status(site)
        return 0.001 if len(looks) == 1 else None

    sites.put("a", address="old")
    with FaultProxy(lambda: server.port) as proxy:
        made = controller(form, reconcile, Website, when=generation_changed)
        with running(form, proxy.url, namespace, made) as copy:
            until(lambda: copy.operator.working.is_set and sites.address("a") == "old" and len(looks) > 1)
            until(lambda: copy.operator.controllers[0].queue.backlog.idle)
    assert sites.address("a") == "old"


@both
def test_a_controller_serves_many_operators(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    calls: list[str] = []

    async def reconcile(context: Any, site: Website) -> None:
        calls.append(context.request.name)

    limiter = ExponentialBackoff()
    made = controller(form, reconcile, Website, limiter=limiter)
    for number in range(10):
        sites.put(f"s{number}")
        with running(form, server.url, namespace, made):
            until(lambda number=number: calls.count(f"s{number}") > 0)  # type: ignore[misc]
    assert calls.count("s0") == 10
    with running(form, server.url, namespace, made), running(form, server.url, namespace, made):
        until(lambda: calls.count("s0") == 12)  # two at a time: each has its own queue


def test_a_queue_that_ends_leaves_no_failures_to_the_next() -> None:
    limiter = ExponentialBackoff()
    queue: WorkQueue[str] = WorkQueue(limiter)
    for _ in range(9):
        queue.add_rate_limited("a")
    queue.stop()
    assert limiter.failures("a") == 0


class Raising(Observer):
    """Raises whatever it is told."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    def _fail(self, name: str) -> None:
        self.heard.add(name)
        raise ValueError(f"no room for {name}")

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._fail("reconciling")

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        self._fail("reconciled")

    def queued(self, controller: str, depth: int) -> None:
        self._fail("queued")

    def retried(self, controller: str, failures: int) -> None:
        self._fail("retried")

    def mirror_failed(self, resource: str, error: Exception) -> None:
        self._fail("mirror_failed")

    def leading(self, lease: str, is_leader: bool) -> None:
        self._fail("leading")


@both
def test_an_observer_that_raises_ends_nothing(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    calls: list[str] = []

    async def reconcile(context: Any, site: Website) -> None:
        calls.append(context.request.name)
        if calls == ["a"]:
            raise OSError("not yet")

    observer, made = Raising(), controller(form, reconcile, Website)
    election = {"name": "lock", "namespace": namespace}
    with FaultProxy(lambda: server.port) as proxy:
        proxy.inject("internal-error", times=1, when=lambda request: "websites" in request.target)
        options = {"probes_port": 0}
        with running(
            form, proxy.url, namespace, made, observer=observer, election=election, options=options
        ) as copy:
            sites.put("a")
            until(lambda: len(calls) >= 2)
            sites.put("b")
            until(lambda: "b" in calls)
            until(lambda: copy.operator.observer.failures > 5)
            url = f"http://127.0.0.1:{copy.operator.probes.port}/healthz"
            text = urllib.request.urlopen(url, timeout=30).read().decode()
            assert text.startswith("ok\nRaising failed ")
            assert "times, last: ValueError: no room for " in text
    assert observer.heard == {"reconciling", "reconciled", "queued", "retried", "mirror_failed", "leading"}


def test_the_errors_of_the_body_pass_an_observer_that_raises() -> None:
    guarded = GuardedObserver(Raising())
    with pytest.raises(KeyError), guarded.reconciling("c", "", "n"):
        raise KeyError("body")
    assert guarded.trouble == "Raising failed 1 times, last: ValueError: no room for reconciling"


@both
def test_a_worker_that_has_ended_is_no_good_health(form: Form, server: ApiServer, namespace: str) -> None:
    async def reconcile(context: Any, site: Website) -> None: ...

    made = controller(form, reconcile, Website, name="sites")
    with running(form, server.url, namespace, made, options={"probes_port": 0}) as copy:
        until(lambda: copy.operator.working.is_set)
        assert copy.operator.probes.answer("/healthz") == (200, b"ok\n")
        copy.operator.controllers[0].queue.stop()
        until(lambda: copy.operator.controllers[0].ended)
        assert copy.operator.probes.answer("/healthz") == (500, b"sites-0 has ended\n")


@both
def test_a_cache_that_begins_is_waited_for(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    """A reconcile function that reads a kind which nobody watches never sees it as absent."""
    seen: list[Any] = []
    server.request("POST", f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "key"}})

    async def reconcile(context: Any, site: Website) -> None:
        seen.append(context.lister(Secret).get("key", namespace=namespace))

    sites.put("a")
    with FaultProxy(lambda: server.port) as proxy:
        proxy.inject("unavailable", times=5, when=lambda request: "secrets" in request.target)
        with running(form, proxy.url, namespace, controller(form, reconcile, Website)):
            until(lambda: seen)
    assert None not in seen


def test_a_cache_without_a_first_state_is_not_read() -> None:
    store: Store[ConfigMap] = Store()
    lister = Lister(store, synced=lambda: False)
    for read in (
        lambda: lister.get("a", namespace="x"),
        lister.list,
        lambda: lister.by_index("namespace", "x"),
        lambda: len(lister),
        lambda: lister.namespaced("x").list(),
    ):
        with pytest.raises(CacheNotSynced, match="the cache of objects has no first state yet"):
            read()


@both
def test_a_namespaced_kind_is_not_looked_up_without_a_namespace(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    seen: list[Any] = []

    async def reconcile(context: Any, site: Website) -> None:
        with pytest.raises(ValueError, match=r"websites are namespaced: say which one, get\("):
            context.lister(Website).get("a")
        seen.append(context.lister(Website).namespaced(namespace).get("a"))
        assert context.lister(Namespace).get(namespace) is not None

    sites.put("a")
    with running(form, server.url, "", controller(form, reconcile, Website)):
        until(lambda: seen)

    async def of_one(context: Any, site: Website) -> None:
        seen.append(context.lister(Website).get("a"))  # the operator is of one namespace

    with running(form, server.url, namespace, controller(form, of_one, Website)):
        until(lambda: len(seen) > 1)
    assert None not in seen


@both
def test_an_unreachable_server_is_not_the_fault_of_an_object(
    form: Form, server: ApiServer, sites: Sites, namespace: str
) -> None:
    calls: list[int] = []

    async def reconcile(context: Any, site: Website) -> None:
        calls.append(1)
        if len(calls) < 4:
            raise TransportError("nobody listens", sent=False)

    limiter = ExponentialBackoff(3600)
    sites.put("a")
    with running(form, server.url, namespace, controller(form, reconcile, Website, limiter=limiter)) as copy:
        until(lambda: len(calls) == 4)
        assert limiter.failures(Request(namespace, "a")) == 0
        assert copy.operator.controllers[0].queue.failures(Request(namespace, "a")) == 0


def test_the_client_of_a_context_is_the_typed_one_in_tests_too(
    server: ApiServer, sites: Sites, namespace: str
) -> None:
    names: list[str] = []

    def reconcile(context: Context[Website], site: Website) -> None:
        core = cast("kubernetes_api.client.Client", context.client).core_v1
        names.extend(item.metadata.name for item in core.namespaces.list() if item.metadata.name == namespace)

    sites.put("a")
    plain = Controller(for_=Website, reconcile=reconcile)
    with server.client() as client, Operator(client, [plain], namespace=namespace):
        until(lambda: names)
    assert isinstance(client, kubernetes_api.client.Client)


def test_the_async_client_of_a_server_is_the_typed_one(server: ApiServer) -> None:
    async def story() -> str:
        async with server.async_client() as client:
            assert isinstance(client, kubernetes_api.async_client.AsyncClient)
            return (await client.core_v1.namespaces.get("default")).metadata.name or ""

    assert asyncio.run(story()) == "default"
