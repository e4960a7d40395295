"""The operator on a server for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import secret_copies

from apimachinery.controller import Operator
from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer


def until(read: Callable[[], Any], seconds: float = 60) -> Any:
    ends = time.monotonic() + seconds
    while True:
        try:
            if found := read():
                return found
        except ApiError as error:
            assert error.code == 404
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_it_has_forty_lines() -> None:
    text = Path(secret_copies.__file__).read_text().partition("\nSOURCE")[2].partition("if __name__")[0]
    assert sum(1 for line in text.splitlines() if line.strip()) <= 40


def test_a_secret_is_copied_and_the_copy_is_kept() -> None:
    with ApiServer() as server, server.client() as client, server.namespace() as home:
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        ingress = {
            "metadata": {"name": "web", "annotations": {secret_copies.SOURCE: "default/cert"}},
            "spec": {"defaultBackend": backend},
        }
        copy, source = f"/api/v1/namespaces/{home}/secrets/cert", "/api/v1/namespaces/default/secrets"
        with Operator(client, [secret_copies.copies]):
            server.request("POST", f"/apis/networking.k8s.io/v1/namespaces/{home}/ingresses", ingress)
            events = f"/api/v1/namespaces/{home}/events"
            until(
                lambda: [
                    each for each in server.request("GET", events)["items"] if each["reason"] == "Missing"
                ]
            )
            server.request("POST", source, {"metadata": {"name": "cert"}, "data": {"key": "YQ=="}})
            assert until(lambda: server.request("GET", copy))["data"] == {"key": "YQ=="}
            merge = "application/merge-patch+json"
            server.request("PATCH", f"{source}/cert", {"data": {"key": "Yg=="}}, merge)
            until(lambda: server.request("GET", copy)["data"] == {"key": "Yg=="})
            server.request("PATCH", copy, {"data": {"key": "eA=="}}, merge)  # a mistake, somebody's
            until(lambda: server.request("GET", copy)["data"] == {"key": "Yg=="})
