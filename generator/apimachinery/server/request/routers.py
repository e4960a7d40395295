"""Which verb a method means on a path, and how a path or method that means nothing is refused.

kube-apiserver routes built-in resources one by one, with the media types of each, while one handler takes all paths
and methods of custom resources. Hence the two routers, one a family: they refuse differently, and in another order.
"""

from __future__ import annotations

from collections.abc import Mapping

from apimachinery.http.messages import Request
from apimachinery.meta.asked import FORWARDED, METHOD_VERBS, Route
from apimachinery.meta.errors import (
    ApiError,
    bad_request,
    internal,
    method_not_allowed,
    no_such_resource,
    not_found,
    verb_not_supported,
)
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import JSON, MEDIA_TYPES, Codecs
from apimachinery.server.request.negotiation import check_routed, negotiate

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class BuiltInRouter:
    """Routes each path of a resource by itself."""

    def verb(self, request: Request, route: Route, served: Served, codecs: Codecs) -> str:
        """The verb of a request. Adds the resource's warnings last, so a refusal has none.

        Raises ApiError 404, 405, 406, 415.
        """
        verb = _builtin_verb(request, route, served)
        if verb == "patch" and route.subresource != "proxy":
            check_patch_type(request, served)
        if (accept := request.headers.get("accept", "")) and accept != JSON.media_type:
            if route.subresource == "log":
                check_routed(accept, ("text/plain", *MEDIA_TYPES))
                negotiate(accept, codecs, tables=False)
            elif route.subresource not in FORWARDED:
                check_routed(accept, watch=verb in ("list", "watch"))
        request.warnings.extend(served.warnings)
        return verb

    def missing(self) -> ApiError | None:
        """The refusal of a resource or version that a group lacks: the group's own router answers with a Status."""
        return no_such_resource()

    def refuses_in_cbor(self, error: ApiError) -> bool:
        """Whether a refusal of ``verb`` may be in CBOR: never, as the router that finds the way does not know it."""
        return False


class CustomRouter:
    """Takes all paths and methods of custom resources."""

    def verb(self, request: Request, route: Route, served: Served, codecs: Codecs) -> str:
        """The verb, empty for a path that nobody knows. Adds warnings first, so a refusal has them too.

        Raises ApiError 400, 404, 405, 415, and 500 where nobody can convert.
        """
        if _misplaced(route, served, request.method):
            return ""
        if served.unresolved:
            raise internal("error resolving resource")
        request.warnings.extend(served.warnings)
        return _custom_verb(request, route, served)

    def missing(self) -> ApiError | None:
        """None: a path that no definition has is nobody's, and "page not found" as text."""
        return None

    def refuses_in_cbor(self, error: ApiError) -> bool:
        """What the resource's handler refuses; 404 and 405 are those of the server around it."""
        return error.code not in (404, 405)


ROUTERS: Mapping[Family, BuiltInRouter | CustomRouter] = {BUILT_IN: BuiltInRouter(), CUSTOM: CustomRouter()}


def check_patch_type(request: Request, served: Served) -> str:
    """The media type of a patch. Raises ApiError 415 for one that the resource does not take."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in served.family.patch_types:
        raise served.family.unsupported_patch()
    return media_type


def _misplaced(route: Route, served: Served, method: str = "GET") -> bool:
    """Whether a path has a namespace too many or too few; lists and watches may span all namespaces."""
    if route.namespace:
        return not served.namespaced
    across = route.watch or method in ("GET", "HEAD")
    return served.namespaced and (bool(route.name) or not across)


def _builtin_verb(request: Request, route: Route, served: Served) -> str:
    """The verb of a path of a built-in resource. Raises ApiError 404, 405."""
    if route.hollow or _misplaced(route, served):
        raise no_such_resource()
    if served.only_created and served.namespaced and not route.namespace:
        raise no_such_resource()
    if route.subresource:
        sub = served.subresources.get(route.subresource)
        if sub is None or (route.rest and route.subresource != "proxy"):
            raise no_such_resource()
        allowed: frozenset[str] | tuple[str, ...] = sub.verbs
    else:
        allowed = served.verbs
    method = request.method
    if route.subresource == "proxy" and method in ("HEAD", "OPTIONS"):
        return "get"
    if served.only_created and route.name and not route.subresource:
        raise no_such_resource()
    if route.watch:
        if method != "GET" or "watch" not in served.verbs:
            raise method_not_allowed()
        return "watch"
    if route.name or not served.listed:
        verb = METHOD_VERBS.get(method, "") if method != "HEAD" else ""
        if verb == "create" and route.name and not route.subresource:
            raise method_not_allowed()
        if verb in ("get", "update", "patch", "delete") and not route.name:
            raise method_not_allowed()
    else:
        verb = _COLLECTION_VERBS.get(method, "")
        if verb == "create" and served.namespaced and not route.namespace:
            raise method_not_allowed()
        if verb == "deletecollection" and served.namespaced and not route.namespace:
            raise method_not_allowed()
    if verb not in allowed:
        raise method_not_allowed()
    return verb


def _custom_verb(request: Request, route: Route, served: Served) -> str:
    """The verb of a path of a custom resource, whose handler takes all methods. Raises ApiError 400, 404, 405."""
    if route.watch:
        return "watch"  # whatever the method is
    verb = METHOD_VERBS.get(request.method)
    if route.subresource:
        # What follows a subresource is not looked at.
        if route.subresource not in served.subresources:
            raise not_found(served.plural, served.group, route.name)
        if verb not in ("get", "update", "patch"):
            raise verb_not_supported(verb or "", served.plural, served.group)
    elif verb is None:
        raise verb_not_supported("", served.plural, served.group)
    if verb == "patch":
        check_patch_type(request, served)
    if not route.name:
        if verb == "get":
            return "list"
        if verb == "delete":
            return "deletecollection"
        if verb in ("update", "patch"):
            raise bad_request("name must be provided")
    return verb
