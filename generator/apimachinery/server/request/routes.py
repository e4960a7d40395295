"""What a path asks for: discovery, OpenAPI, or a resource, its namespace, name and subresource.

    /api/v1/namespaces/NS/pods/NAME/log                 core group
    /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB named groups
    /apis/GROUP/VERSION/watch/…                         the old prefix of watches

``namespaces`` is itself a resource of the core group: ``/api/v1/namespaces/NS/status`` is a subresource of the
namespace NS, not a resource ``status`` within it. That is decided by the names of its subresources.
A route says only what a path looks like; whether there is such a resource is the catalog's to say. A path with an
empty segment (``//``) names no built-in resource; the handler of custom ones reads it as an empty name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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


@dataclass(slots=True)
class Route:
    """One path, read. What it lacks is empty; ``rest`` is what follows a subresource or an OpenAPI root.

    Nobody changes one; it is not frozen because that makes each take four times as long to build.
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


NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_FIXED = {
    "": Route(Area.INDEX),
    "api": Route(Area.API_VERSIONS),
    "apis": Route(Area.GROUPS),
    "version": Route(Area.VERSION),
    "openapi/v2": Route(Area.OPENAPI_V2),
    "openapi/v3": Route(Area.OPENAPI_V3),
}
_NOTHING = Route(Area.NOTHING)


def read_path(path: str) -> Route:
    """The route of a percent-decoded path."""
    text = path.strip("/")
    if path.startswith("//"):
        return _NOTHING
    if path == "/index.html":
        return _FIXED[""]
    if (fixed := _FIXED.get(text)) is not None:
        # Only discovery and versions are found with a slash at the end too.
        if path.endswith("/") and text.startswith("openapi"):
            return _NOTHING if text == "openapi/v2" else Route(Area.OPENAPI_V3, rest="/")
        return fixed
    parts = text.split("/")
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis":
        if len(parts) == 2:
            return Route(Area.GROUP, group=parts[1])
        group, version, rest = parts[1], parts[2], parts[3:]
        if not group:
            return _NOTHING
    elif text.startswith("openapi/v3/") and not path.endswith("/"):
        return Route(Area.OPENAPI_V3, rest=text.removeprefix("openapi/v3/"))
    elif text.startswith("openapi/v3"):
        return Route(Area.OPENAPI_V3, rest="/")  # no group-version
    else:
        return _NOTHING
    if not rest:
        return Route(Area.RESOURCES, group=group, version=version)
    return _resource(group, version, rest)


def _resource(group: str, version: str, parts: list[str]) -> Route:
    if len(parts) == 1 and parts[0] in ("watch", "proxy"):
        return Route(Area.UNCLEAR)
    watch = parts[0] == "watch" and len(parts) > 1
    if watch:
        parts = parts[1:]
    namespace = ""
    if (
        parts[0] == "namespaces"
        and len(parts) > 2
        and not (group == "" and len(parts) == 3 and parts[2] in NAMESPACE_SUBRESOURCES)
    ):
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource, *rest = [*parts, "", ""][: max(3, len(parts))]
    return Route(
        Area.RESOURCE,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        rest="/".join(rest),
        watch=watch,
        # What follows a proxy is not of this server.
        hollow="" in (parts[:3] if subresource == "proxy" else parts),
    )
