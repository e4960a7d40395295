"""componentstatuses, held against what kube-apiserver 1.36 answers."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from apimachinery.http.tls import ensure_certificate
from apimachinery.meta.errors import ApiError
from apimachinery.server.read import components
from kubewright.testing import ApiServer

PATH = "/api/v1/componentstatuses"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[int]:
    """The port of a scheduler that is well."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*ensure_certificate(tmp_path, "127.0.0.1"))
    listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                assert connection.recv(4096).startswith(b"GET /healthz ")
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")

    thread = threading.Thread(target=answer)
    thread.start()
    port = listener.getsockname()[1]
    yield port
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, scheduler: int) -> Iterator[ApiServer]:
    with socket.socket() as closed:
        # Bound, but nobody listens: nobody else can either.
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setitem(components.PORTS, "scheduler", scheduler)
        monkeypatch.setitem(components.PORTS, "controller-manager", closed.getsockname()[1])
        with ApiServer(controllers="none") as running:
            yield running


def test_components_are_asked_how_they_are(server: ApiServer) -> None:
    answer = server.request("GET", PATH)
    assert answer["metadata"] == {}
    assert [each["metadata"] for each in answer["items"]] == [
        {"name": "scheduler"},
        {"name": "controller-manager"},
        {"name": "etcd-0"},
    ]
    states = [
        (each["type"], each["status"], each["message"])
        for (each,) in (i["conditions"] for i in answer["items"])
    ]
    port = components.PORTS["controller-manager"]
    refused = (
        f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )
    assert states == [("Healthy", "True", "ok"), ("Healthy", "False", refused), ("Healthy", "True", "ok")]


def test_one_is_read_and_selected_by_its_name(server: ApiServer) -> None:
    one = {"type": "Healthy", "status": "True", "message": "ok"}
    shown = {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": "etcd-0"},
        "conditions": [one],
    }
    assert server.request("GET", f"{PATH}/etcd-0") == shown
    (item,) = server.request("GET", f"{PATH}?fieldSelector=metadata.name%3Detcd-0")["items"]
    assert item["metadata"] == {"name": "etcd-0"}
    assert server.request("GET", f"{PATH}?labelSelector=a%3Db")["items"] == []
    assert len(server.request("GET", f"{PATH}?limit=1")["items"]) == 3


def test_what_is_not_there(server: ApiServer) -> None:
    with pytest.raises(ApiError, match='componentstatus "nope" not found'):
        server.request("GET", f"{PATH}/nope")
    with pytest.raises(
        ApiError, match='watch is not supported on resources of kind "componentstatuses"'
    ) as refused:
        server.request("GET", f"{PATH}?watch=1")
    assert refused.value.code == 405
    with pytest.raises(ApiError, match="the server does not allow this method"):
        server.request("DELETE", f"{PATH}/etcd-0")
