"""Paths and what they ask for, as a table."""

import pytest

from apimachinery.server.request.routes import Area, Route, read_path

RESOURCE = Area.RESOURCE
CASES = {
    "/": Route(Area.INDEX),
    "/api": Route(Area.API_VERSIONS),
    "/api/": Route(Area.API_VERSIONS),
    "/apis": Route(Area.GROUPS),
    "/apis/apps": Route(Area.GROUP, "apps"),
    "/apis/apps/": Route(Area.GROUP, "apps"),
    "/apis/apps/v1": Route(Area.RESOURCES, "apps", "v1"),
    "/api/v1/": Route(Area.RESOURCES, "", "v1"),
    "/version": Route(Area.VERSION),
    "/openapi/v2": Route(Area.OPENAPI_V2),
    "/openapi/v3": Route(Area.OPENAPI_V3),
    "/openapi/v3/apis/apps/v1": Route(Area.OPENAPI_V3, rest="apis/apps/v1"),
    "/api/v1/pods": Route(RESOURCE, "", "v1", resource="pods"),
    "/api/v1/namespaces": Route(RESOURCE, "", "v1", resource="namespaces"),
    "/api/v1/namespaces/n": Route(RESOURCE, "", "v1", resource="namespaces", name="n"),
    "/api/v1/namespaces/n/status": Route(RESOURCE, "", "v1", "", "namespaces", "n", "status"),
    "/api/v1/namespaces/n/finalize": Route(RESOURCE, "", "v1", "", "namespaces", "n", "finalize"),
    "/api/v1/namespaces/n/pods": Route(RESOURCE, "", "v1", "n", "pods"),
    "/api/v1/namespaces/n/pods/p": Route(RESOURCE, "", "v1", "n", "pods", "p"),
    "/api/v1/namespaces/n/pods/p/log": Route(RESOURCE, "", "v1", "n", "pods", "p", "log"),
    "/api/v1/namespaces/n/services/s/proxy/a/b": Route(
        RESOURCE, "", "v1", "n", "services", "s", "proxy", "a/b"
    ),
    "/apis/g.io/v1/namespaces/n/status": Route(RESOURCE, "g.io", "v1", "n", "status"),
    "/apis/g.io/v1/watch/ws": Route(RESOURCE, "g.io", "v1", resource="ws", watch=True),
    "/api/v1/watch/namespaces/n": Route(RESOURCE, "", "v1", resource="namespaces", name="n", watch=True),
    "/apis/g.io/v1/watch/namespaces/n/ws/w": Route(RESOURCE, "g.io", "v1", "n", "ws", "w", watch=True),
    "/api/v1//pods": Route(RESOURCE, "", "v1", resource="", name="pods", hollow=True),
    "//api/v1/pods": Route(Area.NOTHING),
    "/openapi/v2/": Route(Area.NOTHING),
    "/nosuch": Route(Area.NOTHING),
    "/apis//v1": Route(Area.NOTHING),
}


@pytest.mark.parametrize("path", CASES)
def test_path(path: str) -> None:
    assert read_path(path) == CASES[path]
