"""What method and path of a request ask for, read once; both readings next to each other.

    /api/v1/namespaces/NS/pods/NAME/log                 core group
    /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB named groups
    /apis/GROUP/VERSION/watch/…                         the old prefix of watches

Authorization reads a path (``PathScope``) before anything is known of what is served, for everybody, and routing
(``Route``) after it, for those who may. kube-apiserver has a reader for each, and they differ:

- a namespace itself is of the scope of itself, so that a role within it can allow its owner; routing has its name;
- ``namespaces/NS/status`` is a subresource for authorization in every group; for routing only in the core one, as a
  custom resource may be called ``status``;
- ``proxy/`` before a resource is a verb for authorization, and nothing to routing, which has no such paths any more;
- routing refuses paths that begin with two slashes, and notes empty segments, which name no built-in resource;
- authorization takes every path with too few segments, or of another root, for a path and no resource.

The floor: whoever reads paths is above this file, ``access`` too, which knows nothing of the server. It sees no query,
no headers and no body, and tells no more than ``_PARTS`` segments apart, since it works for who may not.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from apimachinery.meta.errors import ApiError, bad_request
from apimachinery.meta.printing import go_quote

METHOD_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
"""The verb of a method on an object; on a collection ``get`` is a list or a watch, ``delete`` a deletecollection."""
NAMESPACE_SUBRESOURCES = frozenset({"finalize", "status"})
STREAMED = frozenset({"attach", "exec", "portforward"})
FORWARDED = STREAMED | {"log", "proxy"}
"""Subresources of the core group whose requests a cluster hands on to a node or a pod."""
_PARTS = 9
"""What is told apart: apis, GROUP, VERSION, watch, namespaces, NS, RESOURCE, NAME, SUBRESOURCE; then the rest."""
_PREFIX_VERBS = frozenset({"proxy", "watch"})


class PathScope(NamedTuple):
    """A resource as authorization sees it; what a path lacks is empty. Lists are a ``get`` without a name here."""

    verb: str
    namespace: str
    group: str
    version: str
    resource: str
    subresource: str
    name: str


class Area(Enum):
    """What answers a path."""

    RESOURCE = "resource"
    API_VERSIONS = "/api"
    GROUPS = "/apis"
    GROUP = "/apis/GROUP"
    RESOURCES = "/apis/GROUP/VERSION"
    OPENAPI_V2 = "/openapi/v2"
    OPENAPI_V3 = "/openapi/v3"
    VERSION = "/version"
    INDEX = "/"
    UNCLEAR = "/api/VERSION/watch"
    NOTHING = "nothing"


class Route(msgspec.Struct, frozen=True, gc=False):
    """What answers a path. What it lacks is empty; ``rest`` follows a subresource or an OpenAPI root, ``hollow`` means
    that resource, name or subresource is an empty segment.
    """

    area: Area
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    watch: bool = False
    hollow: bool = False


_FIXED = {
    "": Route(Area.INDEX),
    "api": Route(Area.API_VERSIONS),
    "apis": Route(Area.GROUPS),
    "version": Route(Area.VERSION),
}
_NOTHING = Route(Area.NOTHING)


class Head(Protocol):
    """A request, or its head alone; keeps what was read."""

    method: str
    path: str
    asked: Any


class AskedPath:
    """A method and a percent-decoded path, read for authorization; each reading is made when it is first asked for.

    ``attributes`` is where authorization keeps what it made of the scope for the user who asks.
    """

    __slots__ = ("_method", "_parts", "_path", "_route", "_scope", "attributes")

    def __init__(self, method: str, path: str) -> None:
        self._method, self._path = method, path
        self._parts = path.strip("/").split("/", _PARTS)
        self._route: Route | None = None
        self._scope: PathScope | bool | None = False  # until it is read
        self.attributes: Any = None

    @property
    def route(self) -> Route:
        """Routing's reading."""
        if self._route is None:
            self._route = _route(self._path, self._parts)
        return self._route

    @property
    def scope(self) -> PathScope | None:
        """Authorization's reading; None for a path that is no resource's."""
        if isinstance(self._scope, bool):
            self._scope = _scope(self._method, self._parts)
        return self._scope


def asked_of(request: Head) -> AskedPath:
    """What a request asks for."""
    asked: AskedPath | None = request.asked
    if asked is None:
        asked = request.asked = AskedPath(request.method, request.path)
    return asked


def route_of(request: Head) -> Route:
    """What answers a request. Routing reads last, so it keeps nothing: a watch would hold it as long as it lasts."""
    asked: AskedPath | None = request.asked
    if asked is not None:
        return asked.route
    path = request.path
    return _route(path, path.strip("/").split("/", _PARTS))


def _scope(method: str, parts: list[str]) -> PathScope | None:
    root = parts[0]
    least = 4 if root == "apis" else 3
    if len(parts) < least or root not in ("api", "apis"):
        return None
    group, version = parts[1] if root == "apis" else "", parts[least - 2]
    parts = parts[least - 1 :]
    verb = METHOD_VERBS.get(method, "")
    if parts[0] in _PREFIX_VERBS:
        if len(parts) < 2:
            return (
                None  # kube-apiserver answers 500 here, before it knows who asks; there is no such resource
            )
        verb, parts = parts[0], parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource = [*parts, "", ""][:3]
    return PathScope(verb, namespace, group, version, resource, subresource if verb != "proxy" else "", name)


def _route(path: str, parts: list[str]) -> Route:
    root, count = parts[0], len(parts)
    if path.startswith("//"):
        return _NOTHING
    if root == "api" and count > 1:
        return _of_version("", parts[1], parts[2:])
    if root == "apis" and count > 1:
        if count == 2:
            return Route(Area.GROUP, group=parts[1])
        return _of_version(parts[1], parts[2], parts[3:]) if parts[1] else _NOTHING
    if root == "openapi":
        return _openapi(path)
    if path == "/index.html":
        return _FIXED[""]
    return _FIXED.get(root, _NOTHING) if count == 1 else _NOTHING


def _openapi(path: str) -> Route:
    """Only discovery and versions are found with a slash at the end too."""
    root, rest = path[:11].strip("/"), path[11:]
    if root == "openapi/v2":
        return _NOTHING if rest else Route(Area.OPENAPI_V2)
    if root != "openapi/v3":
        return _NOTHING
    named = rest.startswith("/") and not rest.endswith("/")
    return Route(
        Area.OPENAPI_V3, rest=rest[1:] if named or not rest else "/"
    )  # no group-version has an empty name


def _of_version(group: str, version: str, parts: list[str]) -> Route:
    if not parts:
        return Route(Area.RESOURCES, group=group, version=version)
    watch = parts[0] == "watch"
    if len(parts) == 1 and parts[0] in _PREFIX_VERBS:
        return Route(Area.UNCLEAR)
    if watch:
        parts = parts[1:]
    namespace = ""
    if (
        parts[0] == "namespaces"
        and len(parts) > 2
        and not (group == "" and len(parts) == 3 and parts[2] in NAMESPACE_SUBRESOURCES)
    ):
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource = [*parts, "", ""][:3]
    rest = "/".join(parts[3:])
    return Route(
        Area.RESOURCE, group, version, namespace, resource, name, subresource, rest, watch, "" in parts[:3]
    )


def path_name_fault(name: str) -> ApiError | None:
    """400 for a name in a path that no object can have, as it would be another path."""
    if name in (".", ".."):
        fault = f"may not be '{name}'"
    elif "%" in name:
        fault = "may not contain '%'"
    else:
        return None
    return bad_request(f"Name parameter invalid: {go_quote(name)}: {fault}")
