"""Which verb a method means on a path. Built-in resources and custom ones answer wrong methods differently, as
kube-apiserver routes the first one by one and hands all paths of the second to one handler.
"""

from __future__ import annotations

from apimachinery.http.messages import Request
from apimachinery.meta.errors import (
    bad_request,
    method_not_allowed,
    no_such_resource,
    not_found,
    verb_not_supported,
)
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.routes import Route

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_CUSTOM_VERBS = {**_VERBS, "HEAD": "get"}


def misplaced(route: Route, served: Served, method: str = "GET") -> bool:
    """Whether a path has a namespace too many or too few; lists and watches may span all namespaces."""
    if route.namespace:
        return not served.namespaced
    across = route.watch or method in ("GET", "HEAD")
    return served.namespaced and (bool(route.name) or not across)


def check_patch_type(request: Request, served: Served) -> str:
    """The media type of a patch. Raises ApiError 415 for one that the resource does not take."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in served.family.patch_types:
        raise served.family.unsupported_patch()
    return media_type


def builtin_verb(request: Request, route: Route, served: Served) -> str:
    """The verb of a path of a built-in resource. Raises ApiError 404, 405."""
    if route.hollow or misplaced(route, served):
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
        verb = _VERBS.get(method, "")
        if verb == "create" and route.name and not route.subresource:
            raise method_not_allowed()
        if verb in ("get", "update", "patch", "delete") and not route.name:
            raise method_not_allowed()
    else:
        verb = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}.get(method, "")
        if verb == "create" and served.namespaced and not route.namespace:
            raise method_not_allowed()
        if verb == "deletecollection" and served.namespaced and not route.namespace:
            raise method_not_allowed()
    if verb not in allowed:
        raise method_not_allowed()
    return verb


def custom_verb(request: Request, route: Route, served: Served) -> str:
    """The verb of a path of a custom resource, whose handler takes all methods. Raises ApiError 400, 404, 405."""
    if route.watch:
        return "watch"  # whatever the method is
    verb = _CUSTOM_VERBS.get(request.method)
    if route.subresource:
        # What follows a subresource is not looked at.
        if route.subresource not in served.subresources:
            raise not_found(served.plural, served.group, route.name)
        if verb not in ("get", "update", "patch"):
            raise verb_not_supported(verb or "", served.plural, served.group)
        return verb
    if verb is None:
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
