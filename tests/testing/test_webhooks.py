"""Webhooks that tests register: functions, asked over TLS at a URL or behind a Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

CM = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(controllers="none") as server:
        yield server


def create(server: ApiServer, name: str) -> Any:
    return server.request("POST", CM, {"metadata": {"name": name}, "data": {"a": "1"}})


def test_a_function_may_change_what_is_created(server: ApiServer) -> None:
    def add(request: dict[str, Any]) -> dict[str, Any]:
        return {**request["object"], "data": {"b": "2"}}

    webhook = server.register_webhook("mutating", add, resources=["configmaps"], operations=["CREATE"])
    assert create(server, "changed")["data"] == {"b": "2"}
    assert [request["operation"] for request in webhook.requests] == ["CREATE"]
    webhook.remove()
    assert create(server, "unchanged")["data"] == {"a": "1"}


@pytest.mark.parametrize("service", [None, ("default", "judge")])
def test_a_function_may_refuse(server: ApiServer, service: tuple[str, str] | None) -> None:
    webhook = server.register_webhook(
        "validating",
        lambda request: "not today" if request["name"] == "refused" else None,
        resources=["configmaps"],
        service=service,
    )
    try:
        with pytest.raises(ApiError, match="denied the request: not today"):
            create(server, "refused")
        create(server, f"allowed-{service is None}".lower())
        assert len(webhook.requests) == 2
    finally:
        webhook.remove()


def test_a_function_that_fails_is_a_webhook_that_fails(server: ApiServer) -> None:
    def broken(request: dict[str, Any]) -> bool:
        raise RuntimeError("secret")

    webhook = server.register_webhook("validating", broken, resources=["configmaps"])
    try:
        with pytest.raises(ApiError, match="failed calling webhook") as refused:
            create(server, "x")
        assert refused.value.code == 500 and "secret" not in str(refused.value)
    finally:
        webhook.remove()
    ignored = server.register_webhook("validating", broken, resources=["configmaps"], failurePolicy="Ignore")
    create(server, "ignored")
    ignored.remove()
