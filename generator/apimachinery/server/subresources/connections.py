"""Connections to what runs: the options of exec, attach, port-forward and proxy as objects, which admission sees."""

from __future__ import annotations

from apimachinery.http.messages import Request
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import Route
from apimachinery.meta.errors import bad_request
from apimachinery.server.write.versions import unsigned_fault

CONNECTIONS = frozenset({"attach", "exec", "portforward", "proxy"})
_KINDS = {"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
_PROXIES = {"nodes": "NodeProxyOptions", "pods": "PodProxyOptions", "services": "ServiceProxyOptions"}
LAST_PORT = (1 << 16) - 1
_STREAMS = ("stdin", "stdout", "stderr", "tty")


def connection_options(request: Request, route: Route) -> Json:
    """The options object of a CONNECT request. Raises ApiError 400."""
    kind = _KINDS.get(route.subresource) or _PROXIES.get(route.resource, "")
    options: Json = {"kind": kind, "apiVersion": "v1"}
    if route.subresource in ("attach", "exec"):
        for name in _STREAMS:
            if request.first(name).lower() in ("1", "true"):
                options[name] = True
        if container := request.first("container"):
            options["container"] = container
        if command := request.query.get("command"):
            options["command"] = list(command)
    elif route.subresource == "portforward":
        for text in request.query.get("ports", ()):
            if fault := unsigned_fault(text, LAST_PORT):
                raise bad_request(f"cannot convert to []int32: {fault}")
        # All but the last five digits are zeros, of which there may be more than Python converts.
        if ports := [int(text[-5:]) for text in request.query.get("ports", ())]:
            options["ports"] = ports
    else:
        if path := route.rest.strip("/"):
            options["path"] = f"/{path}"
    return options
