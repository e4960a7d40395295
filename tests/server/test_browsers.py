"""What browsers are told: the headers and preflights that kube-apiserver 1.36 gives, and origins that it refuses."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any

import pytest

from apimachinery.access.control import AccessOptions
from apimachinery.http.browsers import BrowserRuleError, BrowserRules
from apimachinery.server.catalog.options import OptionError
from kubewright.tools.serve.https import origin_test

ORIGINS = (r"//example\.com(:|$)", r"^https://a\.b$")
PATH = "/api/v1/namespaces/default/configmaps/x"
ALLOWED = {
    "access-control-allow-credentials": "true",
    "access-control-allow-headers": "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, "
    "X-Requested-With, If-Modified-Since",
    "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
    "access-control-expose-headers": "Date",
}


@pytest.mark.parametrize(
    ("method", "path", "origin", "status", "allowed"),
    [
        ("GET", PATH, "https://example.com", 404, True),
        ("GET", "/version", "http://example.com:8080", 404, True),
        ("GET", "/fail", "https://a.b", 500, True),
        ("GET", PATH, "https://example.com.evil.org", 404, False),
        ("GET", PATH, "https://a.b:1", 404, False),
        ("GET", PATH, "", 404, False),
        ("OPTIONS", PATH, "https://example.com", 204, True),
        ("OPTIONS", "/nothing", "https://a.b", 204, True),
        ("OPTIONS", "/nothing", "https://evil.com", 404, False),
    ],
)
def test_origins(
    serve: Callable[..., Any], method: str, path: str, origin: str, status: int, allowed: bool
) -> None:
    server = serve(
        access=AccessOptions(modes=("AlwaysAllow",)),
        browsers=BrowserRules([origin_test(each) for each in ORIGINS], ("max-age=60", "includeSubDomains")),
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, headers={"Origin": origin} if origin else {})
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    assert answer.status == status
    assert headers["strict-transport-security"] == "max-age=60; includeSubDomains"
    shown = {name: value for name, value in headers.items() if name.startswith("access-control-")}
    assert shown == ({**ALLOWED, "access-control-allow-origin": origin} if allowed else {})


@pytest.mark.parametrize("origin", ["example.com", "^a", "a$", "//a"])
def test_an_origin_without_ends_is_refused(origin: str) -> None:
    with pytest.raises(OptionError, match="does not pin the start and the end of the host"):
        origin_test(origin)


def test_an_origin_that_is_no_expression_is_refused() -> None:
    with pytest.raises(OptionError, match="missing closing"):
        origin_test("//a(")


@pytest.mark.parametrize("directive", ["nope", "max-age=x", "max-age=1\r\nX: y"])
def test_other_directives_are_refused(directive: str) -> None:
    with pytest.raises(BrowserRuleError, match="is none of max-age=SECONDS"):
        BrowserRules(transport=[directive])
