"""Who gets indented JSON; outcomes of kube-apiserver 1.36."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Iterator

import pytest

from kubewright.testing import ApiServer

PATH = "/api/v1/namespaces/default"
CASES = [
    ("?pretty=true", "x/1", "", True),
    ("", "x/1", "", False),
    ("", "curl/8", "", True),
    ("?pretty=1", "x/1", "", True),
    ("?pretty=0", "x/1", "", False),
    ("?pretty=false", "curl/8", "", False),
    ("", "Mozilla/5.0 (X11)", "", True),
    ("", "Mozilla/5", "", False),
    ("", "Wget/1", "", True),
    ("", "x/1", "application/json;pretty=1", True),
    ("?pretty=x", "curl/8", "", False),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(controllers="none") as found:
        yield found


def ask(server: ApiServer, path: str, agent: str, accept: str = "", method: str = "GET") -> bytes:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc, timeout=60)
    connection.request(method, path, headers={"User-Agent": agent, **({"Accept": accept} if accept else {})})
    data = connection.getresponse().read()
    connection.close()
    return data


@pytest.mark.parametrize(("query", "agent", "accept", "pretty"), CASES)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/pods", "/api/v1/namespaces/none", "/apis/apps"])
def test_who_gets_it(server: ApiServer, path: str, query: str, agent: str, accept: str, pretty: bool) -> None:
    assert ask(server, path + query, agent, accept).startswith(b'{\n  "kind": "' if pretty else b'{"kind":"')


@pytest.mark.parametrize("path", ["/version", "/"])
def test_always(server: ApiServer, path: str) -> None:
    assert ask(server, path, "x/1").startswith(b'{\n  "')


@pytest.mark.parametrize(
    "path", ["/openapi/v3", f"{PATH}/configmaps?watch=1&timeoutSeconds=1&resourceVersion=0", "/healthz"]
)
def test_never(server: ApiServer, path: str) -> None:
    assert not ask(server, path, "curl/8").startswith(b"{\n")
