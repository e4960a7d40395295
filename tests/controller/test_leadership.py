"""Of several copies one works: whatever becomes of its way to the server, nobody works beyond the deadline."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.awaited import Api
from tests.client.test_wire import MAPS
from tests.client.wires import ScriptedServer, answer
from tests.controller.forms import FORMS, Copy, Form, Use, controller, drive, until

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import TooManyRequests, TransportError
from apimachinery.client.resource import DynamicResource
from apimachinery.client.throttle import Limits
from apimachinery.controller.election import Election, Elector, LostLeadership
from apimachinery.meta.errors import ApiError
from apimachinery.queue.clock import FakeClock, SystemClock
from kubernetes_api.core_v1 import ConfigMap
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer, FaultProxy
from kubewright.testing.faults import Fault

both = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


@pytest.fixture
def proxy(server: ApiServer) -> Iterator[FaultProxy]:
    with FaultProxy(lambda: server.port) as running:
        yield running


@pytest.fixture
def client_to() -> Iterator[Callable[..., Client]]:
    with contextlib.ExitStack() as stack:

        def connect(server: ScriptedServer, **options: Any) -> Client:
            return stack.enter_context(Client(Config(server=f"http://127.0.0.1:{server.port}"), **options))

        yield connect


class Writer:
    """A controller that writes again and again, with what it did and saw."""

    def __init__(self, form: Form, name: str) -> None:
        self.name = name
        self.calls = 0
        self.controller = controller(form, self._reconcile, ConfigMap, label_selector="kind=source")

    async def _reconcile(self, context: Any, obj: ConfigMap) -> float:
        self.calls += 1
        made = ConfigMap(metadata=ObjectMeta(name="made"), data={"by": self.name})
        await context.apply(made, owned=False)
        return 0.001


def put(server: ApiServer, namespace: str) -> None:
    body = {"metadata": {"name": "source", "labels": {"kind": "source"}}}
    server.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


def holder(server: ApiServer, namespace: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/lock"
    return str(server.request("GET", path)["spec"].get("holderIdentity"))


def copy_of(
    form: Form, use: Use, server: str, namespace: str, writer: Writer, clock: FakeClock, **options: Any
) -> Copy:
    election = {"name": "lock", "namespace": namespace, "identity": writer.name}
    config = Config(server=server)
    return Copy(form, config, [writer.controller], namespace, use, election, clock, options=options)


@both
@pytest.mark.parametrize("use", ["run", "with"])
@pytest.mark.parametrize("fault", ["half-open", "too-many", "internal-error"])
def test_a_leader_that_cannot_renew_stops_at_its_deadline(
    form: Form, use: Use, fault: Fault, server: ApiServer, namespace: str, proxy: FaultProxy
) -> None:
    clock = FakeClock()
    one, two = Writer(form, "one"), Writer(form, "two")
    put(server, namespace)
    first = copy_of(form, use, proxy.url, namespace, one, clock, grace_seconds=0.2)
    second = copy_of(form, use, server.url, namespace, two, clock)
    with first:
        until(lambda: one.calls > 3)
        proxy.inject(fault)
        clock.advance(3)
        until(lambda: any("leases" in request.target for _, request in proxy.log))
        assert first.operator.leading
        clock.advance(7)
        assert not first.operator.leading  # at once, whatever its tries wait for
        with pytest.raises(LostLeadership, match="one does not hold lease lock"):
            first.operator.elector.fence()
        until(lambda: first.operator.controllers[0].queue.backlog.stopped)
        with second:
            until(lambda: second.operator.elector._seen)
            assert not second.operator.leading
            clock.advance(16)  # the lease has been unchanged for its 15 s
            until(lambda: second.operator.leading)
            calls = one.calls
            proxy.calm()  # its way is open again: it must not use it
            until(lambda: two.calls > 3)
            assert one.calls <= calls
            assert holder(server, namespace) == "two"
            first.leave()
            first.join()
            assert isinstance(first.error, LostLeadership)


@both
def test_work_under_way_cannot_write_after_a_loss(
    form: Form, server: ApiServer, namespace: str, proxy: FaultProxy
) -> None:
    clock, began, go = FakeClock(), threading.Event(), threading.Event()
    seen: list[object] = []

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        seen.append(context.leading)
        began.set()
        if form == "asyncio":
            await asyncio.sleep(3600)  # cancelled by the loss
        go.wait(60)
        seen.append(context.leading)
        try:
            await context.apply(ConfigMap(metadata=ObjectMeta(name="made")), owned=False)
        except LostLeadership as error:
            seen.append(error)
            raise

    writer = Writer(form, "one")
    writer.controller = controller(form, reconcile, ConfigMap, label_selector="kind=source")
    put(server, namespace)
    with copy_of(form, "with", proxy.url, namespace, writer, clock) as copy:
        assert began.wait(60)
        proxy.inject("forbidden", when=lambda request: "leases" in request.target)
        clock.advance(10)
        until(lambda: copy.operator.controllers[0].queue.backlog.stopped)
        go.set()
        until(lambda: copy.operator.controllers[0].ended)
    made = f"/api/v1/namespaces/{namespace}/configmaps/made"
    with pytest.raises(ApiError, match="not found"):
        server.request("GET", made)
    if form == "threads":
        assert seen[:2] == [True, False]
        assert isinstance(seen[2], LostLeadership)
    else:
        assert seen == [True]


@both
def test_a_fence_stops_writes_and_bounds_those_that_it_lets_pass(form: Form) -> None:
    left = [5.0]

    def fence() -> float:
        if not left[0]:
            raise LostLeadership("no more")
        return left[0]

    body = b'{"metadata":{"name":"a"}}'
    busy = answer(429, b"", Retry_After="20")

    async def story(made: Any) -> None:
        free = Api((AsyncDynamicResource if form == "asyncio" else DynamicResource)(made, MAPS))
        fenced = made._fenced(fence).within(30)
        api = Api((AsyncDynamicResource if form == "asyncio" else DynamicResource)(fenced, MAPS))
        assert fenced._timed(Request("PUT", "/"), None).timeout == 5.0
        assert fenced._timed(Request("GET", "/"), None).timeout == 60.0
        with pytest.raises(TooManyRequests):  # not after 20 s, when it would have lost the lease
            await api.create({"metadata": {"name": "a"}})
        left[0] = 0.0
        with pytest.raises(LostLeadership):
            await api.create({"metadata": {"name": "a"}})
        with pytest.raises(LostLeadership):
            await Api(fenced)._dial()
        await api.get("a")
        await free.create({"metadata": {"name": "a"}})

    with ScriptedServer([busy, answer(200, body), answer(201, body)]) as server:
        config = Config(server=f"http://127.0.0.1:{server.port}")
        if form == "asyncio":

            async def run() -> None:
                async with AsyncClient(config) as client:
                    await story(client)

            asyncio.run(run())
        else:
            with Client(config) as client:
                drive(story(client))
        assert [request.split()[0] for request in server.requests] == [b"POST", b"GET", b"POST"]


def test_a_try_honours_no_retry_after(client_to: Callable[..., Client]) -> None:
    with ScriptedServer([answer(429, b"", Retry_After="20")] * 2) as server:
        elector = Elector(client_to(server), Election(name="lock"))
        assert not elector._try()
        assert not elector._try()
        elector.close()
    assert len(server.requests) == 2


def test_a_lease_of_nonsense_ends_no_candidate(client_to: Callable[..., Client]) -> None:
    nonsense = b'{"spec":{"holderIdentity":"x","leaseDurationSeconds":"long"}}'
    with ScriptedServer([answer(200, nonsense), answer(200, b"[]"), answer(200, b'{"spec":[1]}')]) as server:
        elector = Elector(client_to(server), Election(name="lock"))
        assert not any([elector._try(), elector._try(), elector._try()])
        elector.close()


def test_other_calls_hold_up_no_renewal(client_to: Callable[..., Client]) -> None:
    lease = b'{"metadata":{"name":"lock"},"spec":{}}'
    with ScriptedServer([answer(404, b""), answer(201, lease)]) as server:
        client = client_to(server, limits=Limits(qps=0.001, burst=2))
        client._bucket.reserve()
        client._bucket.reserve()
        elector = Elector(client, Election(name="lock"))
        assert elector._try()
        elector.close()
        with pytest.raises(TransportError, match="own limit holds it up") as refused:
            DynamicResource(client, MAPS).within(5).get("a")
        assert not refused.value.sent


def test_a_lease_says_no_less_than_its_holder_counts_on(client_to: Callable[..., Client]) -> None:
    with ScriptedServer([answer(404, b""), answer(201, b"{}")]) as server:
        elector = Elector(
            client_to(server), Election(name="lock", lease_seconds=1.9, renew_seconds=1.5, retry_seconds=1)
        )
        assert elector._try()
        elector.close()
    assert json.loads(server.requests[1].partition(b"\r\n\r\n")[2])["spec"]["leaseDurationSeconds"] == 2


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no clock that counts sleep")
def test_the_clock_counts_while_the_machine_sleeps() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = SystemClock().now()
    assert before <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)


@both
def test_an_operator_gives_the_lease_back_when_its_work_has_ended(
    form: Form, server: ApiServer, namespace: str
) -> None:
    clock, writer = FakeClock(), Writer(form, "one")
    put(server, namespace)
    with copy_of(form, "run", server.url, namespace, writer, clock) as copy:
        until(lambda: writer.calls)
    assert copy.error is None
    assert holder(server, namespace) == ""


def test_an_operator_does_not_give_the_lease_back_while_it_works(server: ApiServer, namespace: str) -> None:
    clock, began, go = FakeClock(), threading.Event(), threading.Event()

    async def reconcile(context: Any, obj: ConfigMap) -> None:
        began.set()
        go.wait(60)

    writer = Writer("threads", "one")
    writer.controller = controller("threads", reconcile, ConfigMap, label_selector="kind=source")
    put(server, namespace)
    with copy_of("threads", "run", server.url, namespace, writer, clock, grace_seconds=0.01):
        assert began.wait(60)
    assert holder(server, namespace) == "one"
    go.set()


@both
def test_an_operator_runs_once(form: Form, server: ApiServer, namespace: str) -> None:
    writer = Writer(form, "one")
    with copy_of(form, "with", server.url, namespace, writer, FakeClock()) as copy:
        until(lambda: copy.operator.leading)
        with pytest.raises(RuntimeError, match="an operator runs once"):
            copy.operator.start()
