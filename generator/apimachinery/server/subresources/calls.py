"""Resources and subresources that are calls rather than objects: reviews, tokens, finalize, what nodes answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from apimachinery.access.authentication import unauthorized
from apimachinery.access.authorization import Attributes
from apimachinery.access.control import Access
from apimachinery.access.reviews import (
    access_review,
    rules_review,
    subject_of,
    token_review,
)
from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.steps import HEAVY, Wait
from apimachinery.http.workers import MANY_RECORDS
from apimachinery.kinds.gates import enabled
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import STREAMED, Route
from apimachinery.meta.clock import now
from apimachinery.meta.errors import (
    ApiError,
    bad_request,
    forbidden,
    method_not_allowed,
    not_found,
)
from apimachinery.meta.field_errors import invalid
from apimachinery.server.admission.interface import Operation
from apimachinery.server.answer.views import called_form
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import read_sent
from apimachinery.server.request.codecs import Codecs, whole
from apimachinery.server.request.log_options import check_log_options, container_of
from apimachinery.server.request.negotiation import negotiate
from apimachinery.server.request.options import WriteOptions, read_write_options
from apimachinery.server.request.target import WriteTarget, match_namespace, metadata_of
from apimachinery.server.subresources.connections import CONNECTIONS, connection_options
from apimachinery.server.subresources.proxied import Meant, read_name
from apimachinery.server.write import creating
from apimachinery.server.write.effects import Steps
from apimachinery.server.write.rules import check_object
from apimachinery.server.write.writes import Writer
from apimachinery.wire.json import decode

if TYPE_CHECKING:
    from apimachinery.server.subresources.pods import PodCalls
    from apimachinery.server.subresources.proxy import AddressProxy
    from apimachinery.server.subresources.tokens import TokenRequests


class NodeAnswers(Protocol):
    """Somebody who answers for nodes."""

    async def answer(
        self, request: Request, route: Route, pod: Json
    ) -> Response | StreamResponse | UpgradeResponse:
        """Answers a subresource of a pod. Raises ApiError."""


class VirtualResources:
    """Answers calls."""

    def __init__(
        self,
        writer: Writer,
        codecs: Codecs,
        is_kind: IsKind,
        access: Access,
        *,
        tokens: TokenRequests | None = None,
        pods: PodCalls | None = None,
        node: NodeAnswers | None = None,
        proxy: AddressProxy | None = None,
        proxy_to_services: AddressProxy | None = None,
        has_node: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """``has_node`` says whether there is a Node of a name."""
        self._writer = writer
        self._access = access
        self._tokens = tokens
        self._codecs = codecs
        self._is_kind = is_kind
        self._node = node
        self._has_node = has_node
        self._pods = pods
        self._proxy = proxy
        self._proxy_to_services = proxy_to_services

    def takes_upgrade(self, request: Request, subresource: str) -> bool:
        """Whether an offer of another protocol than websockets may be accepted."""
        if subresource in STREAMED:
            return self._node is not None and request.headers.get("upgrade", "").lower() == "spdy/3.1"
        return self._proxy is not None and subresource == "proxy"

    def answer(self, request: Request, route: Route, served: Served) -> Steps[Response]:
        """Answers a call. Raises ApiError 405 for one that is not served."""
        if route.subresource == "token" and served.kind == "ServiceAccount" and self._tokens is not None:
            return (yield from self._tokens.answer(request, route))
        if self._pods is not None and request.method == "POST" and self._pods.answers(route, served):
            return (yield from self._pods.answer(request, route, served))
        if route.subresource:
            raise method_not_allowed()
        form = negotiate(request.headers.get("accept", ""), self._codecs, tables=False)
        options = read_write_options(request, "CreateOptions")
        obj, _ = read_sent(request, self._codecs, served, self._is_kind, options.validation, request.warnings)
        if route.namespace:
            match_namespace(metadata_of(obj), route.namespace)
        # What refuses metadata shows it as it would be stored.
        sent = metadata_of(obj)
        target = WriteTarget.asked(request, served, route.namespace, "", options)
        obj["metadata"] = creating.own(target, {**obj, "metadata": {**sent}}, owned=False)["metadata"]
        faults = check_object(served, obj, None, [], request.warnings)
        obj["metadata"] = sent
        if faults:
            # kube-apiserver names neither kind nor object here.
            raise invalid("", served.group, "", faults)
        status = yield from self._status(request, served, obj)
        if len(status.get("resourceRules", ())) > MANY_RECORDS:
            yield HEAVY
        obj = served.ownership("").update(None, obj, options.manager, now=now())
        obj = {"kind": served.kind, "apiVersion": served.api_version, **obj, "status": status}
        obj = called_form(obj, form, served)
        return Response(201, whole(form.codec, obj), form.codec.media_type)

    async def forward(
        self, request: Request, route: Route, served: Served
    ) -> Response | StreamResponse | UpgradeResponse:
        """What a real cluster would ask a node for: the simulated one answers where it runs, and else nobody can.

        Raises ApiError 400, 404, 503. The log of a pod that no node has is empty.
        """
        resource, name = served.plural, route.name
        if route.subresource in CONNECTIONS and request.query.get("dryRun"):
            raise bad_request("dryRun is not supported")
        meant = Meant("", name, "")
        if route.subresource == "proxy":
            meant = read_name(served.resource.singular, name)
            name = meant.name
        target = WriteTarget.asked(request, served, route.namespace, name, WriteOptions(), route.subresource)
        if route.subresource == "log":
            check_log_options(request.query, name)
        if route.subresource in CONNECTIONS:
            options = connection_options(request, route)
            await self._writer.admitted(Operation("CONNECT", target, options, None, name))
            await self._may_connect(request, target)
        record = self._writer.current(target)
        if record is None:
            raise not_found(resource, served.group, name)
        proxy = self._proxy_to_services if resource == "services" else self._proxy
        if route.subresource == "proxy" and proxy is not None:
            return await proxy.answer(request, route, served, meant, decode(record.value))
        if resource == "pods":
            return await self._of_pod(request, route, decode(record.value))
        if resource == "nodes":
            _check_addresses(decode(record.value))
        raise self._unreachable(resource, route)

    async def _of_pod(
        self, request: Request, route: Route, pod: Json
    ) -> Response | StreamResponse | UpgradeResponse:
        node = pod.get("spec", {}).get("nodeName")
        if node and self._node is not None:
            return await self._node.answer(request, route, pod)
        if route.subresource == "proxy":
            raise bad_request("address not allowed")
        if route.subresource != "portforward":
            container_of(pod, request.first("container"))
        if not node and route.subresource == "log":
            return Response(204, b"", "")
        if not node:
            raise bad_request(f"pod {route.name} does not have a host assigned")
        if not self._has_node(node):
            # The kubelet's client names the wrong resource.
            raise not_found("pods", "", node)
        raise self._unreachable("pods", route)

    def _unreachable(self, resource: str, route: Route) -> ApiError:
        said = f"{resource}/{route.subresource}: this server has no way to a node"
        return ApiError(503, "ServiceUnavailable", said)

    async def _may_connect(self, request: Request, target: WriteTarget) -> None:
        """Demands the right to create of whoever connects to a container by GET, as websockets must: roles give get
        away to those who only look. A proxy's methods are rights of their own. Raises ApiError 403."""
        served, user = target.served, request.user
        if request.method != "GET" or target.subresource == "proxy" or user is None:
            return
        if not enabled("AuthorizePodWebsocketUpgradeCreatePermission", served.release):
            return
        asked = Attributes(
            user, "create", target.namespace, "", "v1", served.plural, target.subresource, target.name
        )
        verdict = await self._access.ask_besides(asked)
        if not verdict.allowed:
            raise forbidden(served.plural, served.group, target.name, verdict.reason)

    def _status(self, request: Request, served: Served, obj: Json) -> Steps[Json]:
        """The answer to a review. Raises ApiError 400, 405."""
        user = request.user
        if user is None:
            raise unauthorized()
        spec = obj.get("spec") or {}
        status: Json
        match served.kind:
            case "SelfSubjectAccessReview":
                status = yield Wait(partial(access_review, self._access, spec, user))
            case "LocalSubjectAccessReview" | "SubjectAccessReview":
                status = yield Wait(partial(access_review, self._access, spec, subject_of(spec)))
            case "SelfSubjectRulesReview":
                yield HEAVY
                status = rules_review(self._access, spec, user)
                obj["spec"] = {}
            case "SelfSubjectReview":
                obj["metadata"] = {"creationTimestamp": now()}
                status = {"userInfo": user.info()}
            case "TokenReview":
                status = yield Wait(partial(token_review, self._access, spec))
            case _:
                raise method_not_allowed()
        return status


_REACHED_BY = {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}


def _check_addresses(node: Json) -> None:
    """Raises ApiError 500 where a node has no address of a type that a server uses."""
    known = (node.get("status") or {}).get("addresses") or ()
    if not any(each.get("type") in _REACHED_BY for each in known):
        shown = " ".join(f"{{{each.get('type', '')} {each.get('address', '')}}}" for each in known)
        raise ApiError(
            500, "", f"no preferred addresses found; known addresses: [{shown}]", has_details=False
        )
