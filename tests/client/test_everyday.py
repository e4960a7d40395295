"""Everyday things with objects of any kind: waiting, files, logs, ports; in both forms of the client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.awaited import Api
from tests.client.test_wire import MAPS
from tests.controller.forms import FORMS, Form, drive, until

from apimachinery.client import BadRequest, Config, DynamicResource, NotFound
from apimachinery.client.awaiting import parse_test
from apimachinery.client.connection import Client as Plain
from kubernetes_api.async_client import AsyncClient
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import ConfigMap, Pod
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer

both = pytest.mark.parametrize("form", FORMS)
CRD = Path("examples/operator/crds")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(node=True) as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


def tell(form: Form, config: Config, story: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """What a story gives: its clients' methods are awaited."""

    async def run() -> Any:
        async with AsyncClient(config) as client, asyncio.timeout(120):
            return await story(client)

    if form == "asyncio":
        return asyncio.run(run())
    with Client(config) as client:
        return drive(story(Groups(client)))


class Groups(Api):
    """A client whose groups and resources are awaited as well."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._api, name)
        return super().__getattr__(name) if callable(found) else Groups(found)


def to(server: ApiServer, namespace: str) -> Config:
    return Config(server=server.url, namespace=namespace)


def a_pod(server: ApiServer, namespace: str, name: str, **annotations: str) -> None:
    notes = {f"node.kubewright.dev/{key}": value for key, value in annotations.items()}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {"metadata": {"name": name, "annotations": notes}, "spec": spec}
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


@both
def test_waiting_for_what_an_object_becomes(form: Form, server: ApiServer, namespace: str) -> None:
    async def story(client: Any) -> None:
        pod = Pod(metadata=ObjectMeta(name="web", namespace=namespace))
        ready = await client.wait(pod, "condition=Ready")
        assert ready.status.phase == "Running"
        assert (await client.wait(pod, "jsonpath={.status.phase}=Running")).metadata.uid == ready.metadata.uid
        assert (await client.wait(pod, lambda found: found.status.pod_ip)).status.pod_ip
        json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": namespace}}
        assert (await client.wait(json, "create"))["status"]["phase"] == "Running"
        with pytest.raises(
            TimeoutError, match=rf"Pod web: not as expected within 0.2 s; last seen: Pod {namespace}/web"
        ):
            await client.wait(ready, "condition=Ready=False", timeout=0.2)
        await client.core_v1.pods.delete("web", grace_period_seconds=0)
        assert await client.wait(ready, "delete") is ready
        with pytest.raises(BadRequest, match='"Ready" is none of condition=TYPE'):
            await client.wait(ready, "Ready")

    a_pod(server, namespace, "web")
    tell(form, to(server, namespace), story)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("condition=Ready", False),  # of an older generation
        ("condition=available=unknown", True),
        ("condition=Other", False),
        ("jsonpath={.status.phase}", True),
        ("jsonpath='{.status.phase}'=Up", True),
        ("jsonpath=.status.phase=Up", True),
        ("jsonpath={.status.phase}=", False),
        ("jsonpath={.status.nothing}", False),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', True),
        ("jsonpath={.spec.paused}=true", True),
        ("create", True),
        ("delete", False),
    ],
)
def test_what_to_wait_for_is_written_as_for_kubectl(text: str, holds: bool) -> None:
    conditions = [
        {"type": "Ready", "status": "True", "observedGeneration": 1},
        {"type": "Available", "status": "Unknown"},
    ]
    status = {"phase": "Up", "conditions": conditions}
    obj = {"kind": "X", "metadata": {"generation": 2}, "spec": {"paused": True}, "status": status}
    assert parse_test(text)(obj) is holds
    assert parse_test(text)(None) is (text == "delete")


@pytest.mark.parametrize("text", ["condition=", "jsonpath={.a[}", "deleted", "=", ""])
def test_what_cannot_be_waited_for(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_test(text)


@both
def test_a_file_of_many_kinds(form: Form, namespace: str, tmp_path: Path) -> None:
    """A definition, and objects of it; twice: nothing changes then."""
    site = {"apiVersion": "example.kubewright.dev/v1", "kind": "Website", "metadata": {"name": "a"}}
    (tmp_path / "1-crd.yaml").write_text(next(CRD.glob("*.yaml")).read_text())
    (tmp_path / "2.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: b}}\n"
        "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n---\n"
    )
    (tmp_path / "3.json").write_text(str({**site, "spec": {"image": "i"}}).replace("'", '"'))
    (tmp_path / "README.md").write_text("not an object")
    (tmp_path / "bad.txt").write_text("a: b\n---\n- c\n")

    async def story(client: Any) -> None:
        first = await client.apply_file(tmp_path, field_manager="me")
        kinds = [obj["kind"] for obj in first]
        assert kinds == ["CustomResourceDefinition", "ConfigMap", "Namespace", "Website"]
        assert first[1]["metadata"]["namespace"] == first[3]["metadata"]["namespace"] == "default"
        mine = ConfigMap(metadata=ObjectMeta(name="m"), data={"a": "b"})
        (again,) = await client.apply_all([mine], field_manager="me", namespace="default")
        assert again["metadata"]["resourceVersion"] == first[1]["metadata"]["resourceVersion"]
        with pytest.raises(BadRequest, match=r"bad.txt: document 2 is no object"):
            await client.apply_file(tmp_path / "bad.txt")
        with pytest.raises(BadRequest, match="has no apiVersion or no kind"):
            await client.apply_all([{"metadata": {"name": "x"}}], field_manager="me")
        with pytest.raises(NotFound, match=r"example\.kubewright\.dev/v1 has no kind Nothing"):
            await client.apply_all([{**site, "kind": "Nothing"}], field_manager="me")
        assert (await client.core_v1.configmaps.get("m")).data == {"a": "b"}

    with ApiServer() as fresh:
        tell(form, to(fresh, "default"), story)


@both
def test_a_log_is_text_and_a_context_manager(form: Form, server: ApiServer, namespace: str) -> None:
    a_pod(server, namespace, "web")

    async def story(client: Any) -> list[str]:
        await client.wait(Pod(metadata=ObjectMeta(name="web", namespace=namespace)), "condition=Ready")
        log = await client.core_v1.pods.follow_log("web")
        if form == "asyncio":
            async with log:
                return [line async for line in log]
        with log:
            return list(log)

    lines = tell(form, to(server, namespace), story)
    with Client(to(server, namespace)) as client:
        assert lines == client.core_v1.pods.read_log("web").splitlines()


def talk(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(data)
        found = b""
        with contextlib.suppress(ConnectionResetError):  # closed before it was read
            while len(found) < len(data) and (more := sock.recv(65536)):
                found += more
        return found


@both
def test_a_port_of_this_machine_leads_to_a_pod(
    form: Form, server: ApiServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    a_pod(server, namespace, "web")
    pod = Pod(metadata=ObjectMeta(name="web", namespace=namespace))

    def use(port: int, forwarder: Any) -> None:
        found: list[bytes] = []
        block = bytes(range(256)) * 1000
        users = [threading.Thread(target=lambda: found.append(talk(port, block))) for _ in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join(60)
        assert found == [block] * 4
        server.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/web?gracePeriodSeconds=0")
        assert talk(port, b"x") == b""
        until(lambda: forwarder.last_error)
        assert isinstance(forwarder.last_error, NotFound)

    async def tasks() -> int:
        async with AsyncClient(to(server, "default")) as client:
            await client.wait(pod, "condition=Ready")
            async with client.core_v1.pods.forward(pod, 8080) as forwarder:
                await asyncio.to_thread(use, forwarder.port, forwarder)
                return forwarder.port

    if form == "asyncio":
        port = asyncio.run(tasks())
    else:
        with Client(to(server, "default")) as client:
            client.wait(pod, "condition=Ready")
            with client.core_v1.pods.forward(pod, 8080, local=0) as forwarder:
                port = forwarder.port
                use(port, forwarder)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)
    assert "forwarding to port 8080 of web: " in caplog.text


def test_a_client_shows_what_is_for_users() -> None:
    shown = {name for name in dir(Plain(Config(server="http://127.0.0.1:1"))) if not name.startswith("_")}
    settings = {"config", "timeout", "retry", "field_manager", "limits"}
    hooks = {"on_unreadable", "unreadable_count", "on_warning"}
    assert shown == settings | hooks | {"api", "wait", "apply_all", "apply_file", "within", "run", "close"}


def test_a_library_logs_only_where_a_program_wants_it() -> None:
    """Without any configuration nothing is written, not even to stderr."""
    program = (
        "from apimachinery.client import Client, Config\n"
        "client = Client(Config(server='http://127.0.0.1:1'))\n"
        "client._warn('299 - \"careful\"')\n"
        "import apimachinery.controller.operator as o; o._log.error('lost')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == done.stdout == ""
    assert logging.getLogger("kubewright.client").handlers


def test_kinds_of_run_time_are_waited_for(server: ApiServer, namespace: str) -> None:
    with Client(to(server, namespace)) as client:
        made = DynamicResource(client, MAPS).create({"metadata": {"name": "a"}, "data": {"k": "v"}})
        assert client.wait(made, "jsonpath={.data.k}=v")["data"] == {"k": "v"}
        assert client.api(ConfigMap).get("a").data == {"k": "v"}
