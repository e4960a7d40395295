"""The way of a request through the API: the file to read after ``app``.

    path → route → resource → verb (``verbs``) → (options, body) → write or read → form of the answer

What a path cannot be is answered before anything is read. Failures are raised as ``ApiError`` and encoded here in the
form the client asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apimachinery.access.control import Access
from apimachinery.access.issuer import MEDIA_TYPES as ISSUED_TYPES
from apimachinery.access.issuer import issuer_document, issuer_path
from apimachinery.http.governor import Crowded
from apimachinery.http.messages import (
    Counts,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.steps import LIGHT, LONG, compute
from apimachinery.http.workers import TooCostly
from apimachinery.meta.asked import Area, Route, path_name_fault, route_of
from apimachinery.meta.errors import ApiError, bad_request, method_not_allowed, no_such_resource
from apimachinery.server.aggregation.aggregator import Aggregator
from apimachinery.server.answer.failures import failure, read_only, storage_failure, unclear, warned
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.describe.discovery import NOT_FOUND, Discovery
from apimachinery.server.describe.openapi import OpenApi
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.request.codecs import CBOR, JSON, MEDIA_TYPES, PROTOBUF_TYPE, Codecs, Protobuf
from apimachinery.server.request.negotiation import check_routed
from apimachinery.server.request.routers import ROUTERS
from apimachinery.server.request.timeouts import check_timeout
from apimachinery.server.verbs import WRITTEN_AHEAD, Verbs, needs_newest
from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import (
    StorageBusy,
    StorageClosed,
    StorageFull,
    StorageUnreachable,
    UnreadableRecord,
    ValueTooLarge,
)
from apimachinery.storage.watch_cache import WatchCache

ACCEPT_CHARACTERS = 2048
"""What of an Accept header is read, ten times what clients send: forms named after that are not wanted much."""
Answer = Response | StreamResponse | UpgradeResponse

LONG_CALLS = frozenset({"exec", "attach", "portforward", "proxy"})
"""Subresources that hand the connection over: counted as CONNECT, as kube-apiserver counts them."""


_REFUSALS = (
    StorageClosed,
    StorageFull,
    StorageBusy,
    StorageUnreachable,
    StorageFileError,
    UnreadableRecord,
    ValueTooLarge,
)
_TOO_MANY = ApiError(429, "TooManyRequests", "Too many requests, please try again later.", retry_after=1)
_TIMEOUT = ApiError(504, "Timeout", "Timeout: request did not complete within the allotted timeout")


@dataclass(frozen=True, slots=True)
class Descriptions:
    """What the server says of itself."""

    discovery: Discovery
    openapi: OpenApi


_READING = frozenset(("get", "list", "watch"))


class Handlers:
    """Answers requests for resources, discovery and descriptions."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        verbs: Verbs,
        descriptions: Descriptions,
        codecs: Codecs,
        access: Access,
        counts: RequestMetrics,
        *,
        aggregator: Aggregator | None = None,
        catch_up_definitions: Callable[[], Awaitable[None]] | None = None,
        caught_up: bool = False,
    ) -> None:
        """``catch_up_definitions`` waits for definitions that other servers over the same storage were given;
        ``caught_up`` says that whoever calls has waited for what they were given before."""
        self._counts = counts
        self._catalog = catalog
        self._cache, self._verbs = cache, verbs
        self._alone = caught_up or (not self._cache.shared and self._cache.storage.writable)
        self._discovery, self._openapi = descriptions.discovery, descriptions.openapi
        self._codecs = codecs
        # What finds the way of a request, and discovery, do not speak CBOR when they refuse.
        self._without_cbor = tuple(codec for codec in codecs if codec is not CBOR)
        self._cold = next((codec for codec in codecs if isinstance(codec, Protobuf)), None)
        self._access = access
        self._catch_up_definitions = catch_up_definitions
        self._aggregator = aggregator

    async def handle(self, request: Request) -> Answer:
        """Answers a request; a failure is an answer too."""
        if len(request.headers.get("accept", "")) > ACCEPT_CHARACTERS:
            request.headers["accept"] = request.headers["accept"][:ACCEPT_CHARACTERS].rpartition(",")[0]
        try:
            if self._cold is not None and _speaks_protobuf(request):
                # All who come while it loads wait for it.
                if self._cold.is_cold:
                    await _warm(self._cold)
                self._cold = None
            answer = await self._answer(request)
        except ApiError as error:
            # A fault for each of many items is a long answer.
            answer = await compute(LONG if request.large else LIGHT, failure, request, self._codecs, error)
        except Crowded:
            answer = failure(request, self._codecs, _TOO_MANY)
        except TooCostly:
            answer = failure(request, self._codecs, _TIMEOUT)
        except RecursionError:
            answer = failure(request, self._codecs, bad_request("exceeded max depth"))
        except _REFUSALS as refusal:
            answer = failure(request, self._codecs, storage_failure(refusal))
        if request.warnings:
            answer.headers = (*answer.headers, *warned(request.warnings))
        return answer

    async def _answer(self, request: Request) -> Answer:
        if request.query_string:
            check_timeout(request)
        route = route_of(request)
        if self._aggregator is not None and (remote := self._aggregator.find(route)) is not None:
            return await self._aggregator.answer(request, remote)
        match route.area:
            case Area.RESOURCE:
                return await self._resource(request, route)
            case Area.NOTHING:
                try:
                    return self._issued(request)
                except ApiError as error:
                    return failure(request, self._without_cbor, error)
            case Area.UNCLEAR:
                return unclear(request)
            case Area.OPENAPI_V2 | Area.OPENAPI_V3 | Area.VERSION | Area.INDEX:
                if route.area is Area.VERSION:
                    if request.method != "GET":
                        return failure(request, self._without_cbor, method_not_allowed())
                    check_routed(request.headers.get("accept", ""), (JSON.media_type,))
                return await self._openapi.answer(request, route)
        return await self._describe(request, route)

    def _issued(self, request: Request) -> Answer:
        """What verifies tokens of service accounts, for a path that is no other."""
        path = issuer_path(request, self._access)
        if request.path.startswith("/version/"):
            raise no_such_resource()
        if not path:
            return NOT_FOUND
        if request.path.rstrip("/") != path:
            raise no_such_resource()
        if request.method != "GET":
            raise method_not_allowed()
        check_routed(request.headers.get("accept", ""), ISSUED_TYPES[path])
        return issuer_document(path, self._access)

    def takes_upgrade(self, request: Request) -> bool:
        """Whether an offer of another protocol than websockets may be accepted."""
        if self._aggregator is not None and self._aggregator.takes_upgrade(request):
            return True
        return self._verbs.takes_upgrade(request, route_of(request))

    async def _describe(self, request: Request, route: Route) -> Answer:
        """Discovery."""
        routed = self._is_routed(route)
        of_version = routed and route.area is Area.RESOURCES
        spoken = MEDIA_TYPES if of_version else tuple(codec.media_type for codec in self._without_cbor)
        try:
            if routed:
                if request.method != "GET":
                    raise method_not_allowed()
                check_routed(request.headers.get("accept", ""), spoken)
            codecs = self._codecs if of_version else self._without_cbor
            return await self._discovery.answer(request, route, codecs)
        except ApiError as error:
            return failure(request, self._without_cbor, error)

    def _is_routed(self, route: Route) -> bool:
        """Whether a path of discovery is of the router that knows methods: /apis and the groups take any."""
        if route.area is Area.API_VERSIONS:
            return True
        group = self._catalog.groups.get(route.group)
        return route.area is Area.RESOURCES and group is not None and group.has_builtin(route.version)

    async def _resource(self, request: Request, route: Route) -> Answer:
        served = self._catalog.find(route.group, route.version, route.resource)
        if served is None and self._catch_up_definitions is not None:
            await self._catch_up_definitions()  # another server may have been given its CRD
            served = self._catalog.find(route.group, route.version, route.resource)
        if served is None:
            return self._missing(request, route)
        router = ROUTERS[served.family]
        try:
            verb = router.verb(request, route, served, self._codecs)
        except ApiError as error:
            if router.refuses_in_cbor(error):
                raise
            return failure(request, self._without_cbor, error)
        if not verb:
            return NOT_FOUND
        if request.query_string and request.has_long_query:
            await compute(LONG, lambda: request.query)
        shown = verb
        if verb == "patch" and request.headers.get("content-type", "").startswith("application/apply-patch"):
            shown = "apply"
        place = (shown, route.subresource, not route.name, not route.namespace)
        counted = served.counted.get(place)
        if counted is None:
            if served.heavy:
                await _warm(served)
            counted = served.counted[place] = self._counted(shown, route, served)
        request.counted = counted
        if served.warnings:
            self._note_deprecated(request, route, served)
        if (fault := path_name_fault(route.name)) is not None:
            return await self._not_there(fault, verb, request, route, served)
        if self._alone:
            return await self._verbs.act(verb, request, route, served)
        return await self._among_others(verb, request, route, served)

    async def _not_there(
        self, fault: ApiError, verb: str, request: Request, route: Route, served: Served
    ) -> Answer:
        """A request for what cannot be there: its name is refused where storage is asked, after options and body."""
        if verb in ("list", "watch"):
            raise fault
        try:
            return await self._verbs.act(verb, request, route, served)
        except ApiError as error:
            raise fault if error.reason == "NotFound" else error from None

    def _missing(self, request: Request, route: Route) -> Answer:
        """The answer of a group that has no such resource, or of no group."""
        group = self._catalog.groups.get(route.group)
        error = None if group is None else ROUTERS[group.family].missing()
        return NOT_FOUND if error is None else failure(request, self._without_cbor, error)

    def _counted(self, verb: str, route: Route, served: Served) -> Counts:
        """What a verb on a path of a resource is counted under."""
        scope = "cluster"
        if route.name or verb == "create":
            scope = "resource"
        elif route.namespace:
            scope = "namespace"
        if route.subresource in LONG_CALLS:
            verb = "connect"
        return self._counts.resource(served.named, verb, route.subresource, scope)

    def _note_deprecated(self, request: Request, route: Route, served: Served) -> None:
        group, version, resource = served.named
        removed = served.resource.removed_in
        self._counts.deprecated(group, version, resource, route.subresource, removed)
        request.annotations["k8s.io/deprecated"] = "true"
        if removed:
            request.annotations["k8s.io/removed-release"] = removed

    async def _among_others(self, verb: str, request: Request, route: Route, served: Served) -> Answer:
        if verb not in _READING and not self._cache.storage.writable and served.prefix:
            raise read_only()
        # Other servers write too: what is read must not be older than what they answered before this request came.
        # A write of one object is held by storage against what it read. A create reads nothing of its own; what it
        # is refused for may be news that is still on the way.
        if verb in WRITTEN_AHEAD and route.subresource in ("", "status") and not self._cache.hides:
            return await self._verbs.write_ahead(verb, request, route, served)
        if verb != "create":
            if needs_newest(verb, request, self._cache.revision):
                await self._cache.catch_up()
            return await self._verbs.act(verb, request, route, served)
        seen = self._cache.revision
        try:
            return await self._verbs.act(verb, request, route, served)
        except ApiError:
            await self._cache.catch_up()
            if self._cache.revision == seen:
                raise
            return await self._verbs.act(verb, request, route, served)


async def _warm(first_used: Served | Protobuf) -> None:
    """Loads what the first use needs, which would hold the loop."""
    await compute(LONG, first_used.warm)


def _speaks_protobuf(request: Request) -> bool:
    """Whether a request may be read or answered in protobuf."""
    headers = request.headers
    return PROTOBUF_TYPE in headers.get("accept", "") or PROTOBUF_TYPE in headers.get("content-type", "")
