"""The client libraries people use: the official one, lightkube, kr8s; and an operator on kopf."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from types import SimpleNamespace

import pytest

WIDGETS = ("e2e.example.com", "v1", "widgets")


@pytest.fixture
def official(server, monkeypatch):
    kubernetes = pytest.importorskip("kubernetes")
    # Some builds of urllib3 call a str body text/plain, which servers refuse; bytes they leave alone.
    dumps = lambda body: json.dumps(body).encode()  # noqa: E731
    monkeypatch.setattr(kubernetes.client.rest, "json", SimpleNamespace(dumps=dumps, loads=json.loads))
    api = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    yield kubernetes.client, api
    api.close()


def test_the_official_client_writes_lists_pages_and_patches(official, namespace):
    client, api = official
    core = client.CoreV1Api(api)
    for name in ("a", "b", "c"):
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name, labels={"n": name}), data={"k": name}
        )
        core.create_namespaced_config_map(namespace, body)
    page = core.list_namespaced_config_map(namespace, limit=2)
    assert [item.metadata.name for item in page.items] == ["a", "b"]
    rest = core.list_namespaced_config_map(namespace, limit=2, _continue=page.metadata._continue)
    assert [item.metadata.name for item in rest.items] == ["c"]
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "new"}})
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "new"}
    with pytest.raises(client.ApiException) as refusal:
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": "a"}))
    assert refusal.value.status == 409
    core.delete_namespaced_config_map("b", namespace)
    assert [item.metadata.name for item in core.list_namespaced_config_map(namespace).items] == ["a", "c"]


def test_the_official_client_watches(official, namespace):
    from kubernetes import watch

    client, api = official
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": "a"}))
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_config_map, namespace, timeout_seconds=5):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
        elif len(seen) == 2:
            core.delete_namespaced_config_map("a", namespace)
        else:
            watcher.stop()
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_the_official_client_and_custom_objects(official, namespace):
    client, api = official
    custom = client.CustomObjectsApi(api)
    body = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
    assert custom.create_namespaced_custom_object(WIDGETS[0], "v1", namespace, "widgets", body)["spec"] == {
        "size": 1
    }
    custom.patch_namespaced_custom_object_status(
        WIDGETS[0], "v1", namespace, "widgets", "w", {"status": {"ok": True}}
    )
    shown = custom.get_namespaced_custom_object(WIDGETS[0], "v1", namespace, "widgets", "w")
    assert shown["status"] == {"ok": True}


def test_lightkube(server, namespace):
    lightkube = pytest.importorskip("lightkube")
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    config = lightkube.KubeConfig.from_file(str(server.kubeconfig))
    client = lightkube.Client(config=config, namespace=namespace, field_manager="test", trust_env=False)
    client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "v"}))
    assert client.get(ConfigMap, "a").data == {"k": "v"}
    client.patch(ConfigMap, "a", {"data": {"k": None, "l": "w"}}, patch_type=PatchType.MERGE)
    assert [item.data for item in client.list(ConfigMap)] == [{"l": "w"}]
    applied = ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="b"), data={"x": "y"})
    assert client.apply(applied).data == {"x": "y"}
    client.delete(ConfigMap, "a")
    assert [item.metadata.name for item in client.list(ConfigMap)] == ["b"]
    assert list(client.list(Deployment)) == []
    watch = client.watch(ConfigMap, server_timeout=60)
    kind, found = next(watch)
    assert (kind, found.metadata.name) == ("ADDED", "b")


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")
def test_kr8s(server, namespace):
    kr8s = pytest.importorskip("kr8s")
    from kr8s.objects import ConfigMap, new_class

    api = kr8s.api(kubeconfig=str(server.kubeconfig), namespace=namespace)
    made = ConfigMap({"metadata": {"name": "a", "namespace": namespace}, "data": {"k": "v"}}, api=api)
    made.create()
    made.patch({"data": {"k": "w"}})
    made.refresh()
    assert made.raw["data"] == {"k": "w"}
    assert [item.name for item in api.get("configmaps", namespace=namespace)] == ["a"]
    widget_class = new_class(kind="Widget", version="e2e.example.com/v1", namespaced=True, plural="widgets")
    widget = widget_class({"metadata": {"name": "w", "namespace": namespace}, "spec": {"size": 2}}, api=api)
    widget.create()
    assert widget.raw["spec"]["size"] == 2
    made.delete()
    assert not made.exists()


def test_a_kopf_operator(server, namespace, monkeypatch):
    kopf = pytest.importorskip("kopf")
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    logging.getLogger("kopf").setLevel(logging.WARNING)
    registry = kopf.OperatorRegistry()
    deleted = threading.Event()

    @kopf.on.login(registry=registry)
    def login(**context):
        return kopf.login_with_kubeconfig(**context)

    @kopf.on.create(*WIDGETS, registry=registry, id="create")
    def create(spec, name, **_):
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"size": str(spec["size"])},
        }
        kopf.adopt(made)
        server.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", made)
        return {"made": name}

    @kopf.on.delete(*WIDGETS, registry=registry)
    def delete(**_):
        deleted.set()

    ready, stop = threading.Event(), threading.Event()

    def run() -> None:
        asyncio.run(
            kopf.operator(
                registry=registry, namespaces=[namespace], ready_flag=ready, stop_flag=stop, standalone=True
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        base = f"/apis/e2e.example.com/v1/namespaces/{namespace}/widgets"
        widget = {
            "apiVersion": "e2e.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"size": 3},
        }
        server.request("POST", base, widget)
        path = f"/api/v1/namespaces/{namespace}/configmaps/w"
        assert until(lambda: found(server, path))["data"] == {"size": "3"}
        assert until(lambda: server.request("GET", f"{base}/w").get("status", {}).get("create")) == {
            "made": "w"
        }
        server.request("DELETE", f"{base}/w")
        assert deleted.wait(60)
        assert until(lambda: found(server, f"{base}/w") is None)
        assert until(lambda: found(server, path) is None), "the owned ConfigMap is collected"
    finally:
        stop.set()
        thread.join(60)


def found(server, path):
    from apimachinery.meta.errors import ApiError

    try:
        return server.request("GET", path)
    except ApiError:
        return None


def until(probe, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := probe():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")
