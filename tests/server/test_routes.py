"""Paths and what they ask for, as tables: for routing, for authorization, and where the two differ."""

import itertools

import pytest

from apimachinery.access.attributes import attributes_of
from apimachinery.http.messages import Request, User
from apimachinery.meta.asked import Area, AskedPath, PathScope, Route, asked_of, route_of
from apimachinery.server.request.timeouts import lasts

RESOURCE = Area.RESOURCE
ANN = User("ann")
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
    assert AskedPath("GET", path).route == CASES[path]


DIFFERENCES = {
    "/api/v1/namespaces/n": (
        Route(RESOURCE, "", "v1", "", "namespaces", "n"),
        PathScope("get", "n", "", "v1", "namespaces", "", "n"),
    ),
    "/apis/g.io/v1/namespaces/n/status": (
        Route(RESOURCE, "g.io", "v1", "n", "status"),
        PathScope("get", "n", "g.io", "v1", "namespaces", "status", "n"),
    ),
    "/api/v1/proxy/pods/p": (
        Route(RESOURCE, "", "v1", "", "proxy", "pods", "p"),
        PathScope("proxy", "", "", "v1", "pods", "", "p"),
    ),
    "//api/v1/pods": (Route(Area.NOTHING), PathScope("get", "", "", "v1", "pods", "", "")),
    "/apis//v1/pods": (Route(Area.NOTHING), PathScope("get", "", "", "v1", "pods", "", "")),
    "/api/v1/watch": (Route(Area.UNCLEAR), None),
    "/api/v1": (Route(Area.RESOURCES, "", "v1"), None),
}


@pytest.mark.parametrize("path", DIFFERENCES)
def test_where_routing_and_authorization_read_otherwise(path: str) -> None:
    asked = AskedPath("GET", path)
    assert (asked.route, asked.scope) == DIFFERENCES[path]


ODD = ("", "api", "watch", "proxy", "namespaces", "status", "p")


def test_elsewhere_both_readings_are_of_the_same_resource() -> None:
    for parts in itertools.product(ODD, repeat=5):
        for root in ("/api/v1/", "/apis/g.io/v1/"):
            path = root + "/".join(parts)
            asked = AskedPath("GET", path)
            route, scope = asked.route, asked.scope
            if scope is None or scope.verb == "proxy" or scope.resource == "namespaces":
                continue
            assert route.area is RESOURCE, path
            same = (
                route.namespace,
                route.group,
                route.version,
                route.resource,
                route.subresource,
                route.name,
            )
            assert same == scope[1:], path
            assert route.watch == (scope.verb == "watch"), path


def test_what_follows_a_subresource_is_no_more_than_the_rest() -> None:
    asked = AskedPath("GET", "/api/v1/namespaces/n/pods/p/proxy/a//b/" + "c/" * 10_000 + "d")
    assert asked.route.rest == "a//b/" + "c/" * 10_000 + "d"
    assert not asked.route.hollow
    assert asked.scope == PathScope("get", "n", "", "v1", "pods", "proxy", "p")


def test_a_request_is_read_once() -> None:
    request = Request("GET", "/api/v1/pods")
    asked = asked_of(request)
    assert asked_of(request) is asked
    assert route_of(request) is asked.route
    assert attributes_of(request, ANN) is attributes_of(request, ANN)
    assert attributes_of(request, User("bob")).user.name == "bob"  # as whom she acts


@pytest.mark.parametrize(
    ("target", "outlives"),
    [
        ("/api/v1/pods?watch=1", True),
        ("/api/v1/pods?watch=0", False),
        ("/api/v1/watch/pods?", True),
        ("/api/v1/namespaces/n/pods/p/log?", True),
        ("/api/v1/namespaces/n/pods/p/proxy/a/b?", True),
        ("/api/v1/proxy/pods/p?", True),
        # These are no watches, nor logs, whatever their words are.
        ("/api/v1/namespaces/n/configmaps/x?watch=1", False),
        ("/api/v1/namespaces/n/pods/p/other/log?", False),
        ("/apis?watch=1", False),
        ("/apis/watch/log?", False),
    ],
)
def test_which_requests_have_no_timeout(target: str, outlives: bool) -> None:
    path, _, query = target.partition("?")
    assert lasts(Request("GET", path, query)) is outlives
