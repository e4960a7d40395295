"""The private server for tests: what it promises to people who test controllers."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer, StartError

pytest_plugins = ["pytester"]

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 1, default: 2}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-a-crd}
"""
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


@pytest.fixture(scope="module")
def server():
    with ApiServer() as running:
        yield running


def gone(server: ApiServer, path: str, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            server.request("GET", path)
        except ApiError as refusal:
            return refusal.code == 404
        time.sleep(0.02)
    return False


def test_objects_are_written_refused_and_found(server):
    with server.namespace() as namespace:
        path = CONFIG_MAPS.format(namespace)
        made = server.request("POST", path, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        assert made["metadata"]["namespace"] == namespace
        with pytest.raises(ApiError) as refusal:
            server.request("POST", path, {"metadata": {"name": "a"}})
        assert (refusal.value.code, refusal.value.reason) == (409, "AlreadyExists")
        with pytest.raises(ApiError) as refusal:
            server.request("POST", path, {"metadata": {"name": "Not A Name"}})
        assert refusal.value.causes[0].field == "metadata.name"


def test_a_namespace_ends_with_what_is_in_it(server):
    with server.namespace("mine-") as namespace:
        assert namespace.startswith("mine-")
        server.request("POST", CONFIG_MAPS.format(namespace), {"metadata": {"name": "a"}})
    assert gone(server, f"/api/v1/namespaces/{namespace}")
    assert gone(server, CONFIG_MAPS.format(namespace) + "/a")


def test_garbage_is_collected_by_owner_references(server):
    with server.namespace() as namespace:
        path = CONFIG_MAPS.format(namespace)
        owner = server.request("POST", path, {"metadata": {"name": "owner"}})
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        server.request("POST", path, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        server.request("DELETE", f"{path}/owner")
        assert gone(server, f"{path}/owned")


def test_crds_of_a_folder_are_served_before_it_is_ready(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "widget.yaml").write_text(CRD)
    with ApiServer(crds=[tmp_path]) as server, server.namespace() as namespace:
        path = f"/apis/example.com/v1/namespaces/{namespace}/widgets"
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
        assert server.request("POST", path, widget)["spec"] == {"size": 2}
        with pytest.raises(ApiError) as refusal:
            server.request("POST", path, {**widget, "metadata": {"name": "x"}, "spec": {"size": 0}})
        assert refusal.value.causes[0].field == "spec.size"


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "does not exist"), ("a: b", "holds no CustomResourceDefinition"), ("a: [", "is not YAML")],
)
def test_crds_that_cannot_be_read(tmp_path, content, fault):
    path = tmp_path / "crds.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StartError, match=fault):
        ApiServer(crds=[path]).start()


def test_the_kubeconfig_reaches_it_and_goes_with_it():
    with ApiServer() as server:
        path = server.kubeconfig
        shown = json.loads(path.read_text())
        assert shown["clusters"][0]["cluster"]["server"] == server.url
    assert not path.exists()
    with pytest.raises(StartError, match="does not run"):
        assert server.url


def test_over_tls_with_a_token():
    with ApiServer(tls=True) as server:
        assert server.url.startswith("https://")
        assert server.request("GET", "/api/v1/namespaces/default")["metadata"]["name"] == "default"
        shown = json.loads(server.kubeconfig.read_text())
        assert shown["users"][0]["user"]["token"]
        assert shown["clusters"][0]["cluster"]["certificate-authority-data"]


def test_sqlite_is_found_again(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    with ApiServer(storage=url) as server:
        server.request("POST", CONFIG_MAPS.format("default"), {"metadata": {"name": "kept"}})
    with ApiServer(storage=url) as server:
        assert server.request("GET", CONFIG_MAPS.format("default") + "/kept")["metadata"]["name"] == "kept"


def test_twenty_side_by_side_leave_nothing_behind():
    with ApiServer():  # what is loaded once per process is loaded now
        pass
    threads, files = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    def use(number: int) -> int:
        with ApiServer() as server:
            server.request("POST", CONFIG_MAPS.format("default"), {"metadata": {"name": f"n{number}"}})
            names = [
                item["metadata"]["name"]
                for item in server.request("GET", CONFIG_MAPS.format("default"))["items"]
            ]
            assert names == [f"n{number}"]
            return server.port

    with ThreadPoolExecutor(20) as pool:
        ports = list(pool.map(use, range(20)))
    assert len(set(ports)) == 20
    gc.collect()
    # Others of this process may have opened a thing or two meanwhile; 20 servers would leave more.
    assert threading.active_count() < threads + 10
    assert len(list(Path("/proc/self/fd").iterdir())) < files + 10
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_second_start_is_refused(server):
    with pytest.raises(StartError, match="runs already"):
        server.start()


def test_the_plugin_s_fixtures(pytester: pytest.Pytester, tmp_path):
    crds = tmp_path / "crds"
    crds.mkdir()
    (crds / "widget.yaml").write_text(CRD)
    pytester.makeini(f"[pytest]\nkubewright_crds = {crds}\n")
    pytester.makepyfile(
        """
        import os
        import pytest

        NAMES = []

        def test_session(kubewright_server, kubewright_namespace):
            NAMES.append(kubewright_namespace)
            path = f"/apis/example.com/v1/namespaces/{kubewright_namespace}/widgets"
            assert kubewright_server.request("GET", path)["items"] == []

        def test_another_namespace_on_the_same_server(kubewright_server, kubewright_namespace):
            assert kubewright_namespace not in NAMES
            kubewright_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "stays"}})

        def test_private(kubewright_private_server):
            shown = kubewright_private_server.request("GET", "/api/v1/namespaces")
            assert "stays" not in [item["metadata"]["name"] for item in shown["items"]]

        def test_kubeconfig(kubewright_kubeconfig):
            assert os.environ["KUBECONFIG"] == str(kubewright_kubeconfig)

        def test_factory(kubewright_server_factory):
            assert kubewright_server_factory(controllers="none").url
        """
    )
    environment = os.environ.get("PYTHONPATH", "")
    root = Path(__file__).resolve().parents[2]
    pytester._monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(root / "generator"), str(root / "generated"), environment])
    )
    # An installed kubewright brings its plugin by itself; a bare checkout names it.
    installed = any(point.name == "kubewright" for point in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "kubewright.testing.plugin")
    result = pytester.runpytest_subprocess(*plugin, "-q", "-W", "error")
    result.assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("version", "code"), [("abc", 201), ("-4", 201), ("0", 201), ("", 201), ("00", 201), ("12", 500)]
)
def test_a_create_that_names_a_version(server, version, code):
    with server.namespace() as namespace:
        body = {"metadata": {"name": "a", "resourceVersion": version}}
        if code == 201:
            made = server.request("POST", CONFIG_MAPS.format(namespace), body)
            assert made["metadata"]["resourceVersion"].isdigit()
            assert made["metadata"]["resourceVersion"] != version
        else:
            with pytest.raises(ApiError, match="resourceVersion should not be set"):
                server.request("POST", CONFIG_MAPS.format(namespace), body)


def test_base64_may_have_line_breaks(server):
    with server.namespace() as namespace:
        body = {"metadata": {"name": "a"}, "data": {"k": "aGVs\r\nbG8=\n"}}
        path = f"/api/v1/namespaces/{namespace}/secrets"
        assert server.request("POST", path, body)["data"] == {"k": "aGVsbG8="}
        for text, at in (("aGVs\nb!8=", 6), ("aGVs bG8=", 4)):
            with pytest.raises(ApiError, match=f"illegal base64 data at input byte {at}$"):
                server.request("PUT", f"{path}/a", {"metadata": {"name": "a"}, "data": {"k": text}})


def test_its_plain_kubeconfig_is_one_that_the_javascript_client_takes(server):
    cluster = json.loads(server.kubeconfig_text)["clusters"][0]["cluster"]
    assert cluster == {"server": server.url, "insecure-skip-tls-verify": True}
