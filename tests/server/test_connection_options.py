"""Ports of port-forward: numbers of 16 bits in Go's words, whatever is sent."""

from __future__ import annotations

import pytest

from apimachinery.http.messages import Request
from apimachinery.meta.asked import route_of
from apimachinery.meta.errors import ApiError
from apimachinery.server.subresources.connections import connection_options


def options(ports: str) -> object:
    path = "/api/v1/namespaces/default/pods/x/portforward"
    request = Request("GET", path, query_string=f"ports={ports}")
    return connection_options(request, route_of(request))


@pytest.mark.parametrize(("sent", "port"), [("80", 80), ("0", 0), ("65535", 65535), ("0" * 5000 + "7", 7)])
def test_ports_that_are_read(sent: str, port: int) -> None:
    assert options(sent) == {"kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [port]}


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ("65536", "value out of range"),
        ("9" * 5000, "value out of range"),
        ("-1", "invalid syntax"),
        ("%C2%B2", "invalid syntax"),
        ("", "invalid syntax"),
    ],
)
def test_ports_that_are_refused(sent: str, fault: str) -> None:
    with pytest.raises(ApiError, match=r"cannot convert to \[\]int32: strconv.ParseUint: ") as refused:
        options(sent)
    assert refused.value.code == 400 and refused.value.message.endswith(fault)
