"""The way of a request through the API: the file to read after ``app``.

    path → route → resource → verb → (options, body) → write or read → form of the answer

What a path cannot be is answered before anything is read. Failures are raised as ``ApiError`` and encoded here in the
form the client asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from apimachinery.meta.errors import (
    ApiError,
    bad_request,
    method_not_allowed,
    no_such_resource,
    not_found,
)
from apimachinery.server.access.control import Access
from apimachinery.server.access.issuer import MEDIA_TYPES as ISSUED_TYPES
from apimachinery.server.access.issuer import issuer_document, issuer_path
from apimachinery.server.aggregation.aggregator import Aggregator
from apimachinery.server.answer.view import View
from apimachinery.server.answer.views import asked_view, view_of
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.describe.discovery import NOT_FOUND, Discovery
from apimachinery.server.describe.openapi import OpenApi
from apimachinery.server.http.messages import (
    LARGE_BYTES,
    Counts,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.server.http.workers import ASKING, apart, apart_if
from apimachinery.server.operate.api_metrics import ApiMetrics
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.read.listing import (
    JoinedBodies,
    list_page,
    list_records,
    needs_newest,
    read_record,
    show_page,
)
from apimachinery.server.read.selection import read_selectors, selection_of
from apimachinery.server.read.watch import Watches
from apimachinery.server.request.bodies import bring_into_form, note_object, note_patch, read_body
from apimachinery.server.request.codecs import CBOR, JSON, MEDIA_TYPES, Codec, Codecs, whole
from apimachinery.server.request.delete_bodies import read_delete_body
from apimachinery.server.request.list_options import check_list_options, read_list_options
from apimachinery.server.request.negotiation import (
    PLAIN,
    check_routed,
    check_streamed,
    for_error,
    negotiate,
)
from apimachinery.server.request.options import WriteOptions, read_delete_options, read_write_options
from apimachinery.server.request.routes import Area, Route, read_path
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    check_path_name,
    match_name,
    match_namespace,
    metadata_of,
)
from apimachinery.server.request.timeouts import check_timeout
from apimachinery.server.request.verbs import builtin_verb, check_patch_type, custom_verb, misplaced
from apimachinery.server.subresources.calls import FORWARDED, VirtualResources
from apimachinery.server.subresources.scale import Scales
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.patch import patch
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import (
    StorageBusy,
    StorageClosed,
    StorageError,
    StorageFull,
    StorageUnreachable,
    ValueTooLarge,
)
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import DecodeFault, encode

if TYPE_CHECKING:
    from apimachinery.server.subresources.tokens import TokenRequests

WARNING_CHARACTERS = 4096
ACCEPT_CHARACTERS = 8192
"""What of an Accept header is read: forms named after that are not wanted much."""
WARNING_CUT = 256
Answer = Response | StreamResponse | UpgradeResponse


LONG_CALLS = frozenset({"exec", "attach", "portforward", "proxy"})
"""Subresources that hand the connection over: counted as CONNECT, as kube-apiserver counts them."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What gets, lists and watches are made of."""

    cache: WatchCache
    watches: Watches
    bodies: JoinedBodies


@dataclass(frozen=True, slots=True)
class Writes:
    """What changes objects."""

    writer: Writer
    deleter: Deleter


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
        reads: Reads,
        writes: Writes,
        descriptions: Descriptions,
        codecs: Codecs,
        is_kind: IsKind,
        access: Access,
        tokens: TokenRequests | None,
        counts: RequestMetrics,
        figures: ApiMetrics,
    ) -> None:
        self._figures = figures
        self._counts = counts
        self._catalog = catalog
        self._cache, self._watches, self._bodies = reads.cache, reads.watches, reads.bodies
        self._writer, self._deleter = writes.writer, writes.deleter
        self._alone = not self._cache.shared and self._cache.storage.writable
        self._discovery, self._openapi = descriptions.discovery, descriptions.openapi
        self._codecs = codecs
        # What finds the way of a request, and discovery, do not speak CBOR when they refuse.
        self._without_cbor = tuple(codec for codec in codecs if codec is not CBOR)
        self._is_kind = is_kind
        self._access = access
        self._scales = Scales(writes.writer, codecs, is_kind)
        self.catch_up_definitions: Callable[[], Awaitable[None]] | None = None
        self.aggregator: Aggregator | None = None
        self.virtual = VirtualResources(writes.writer, codecs, is_kind, access, tokens)

    async def handle(self, request: Request) -> Answer:
        """Answers a request; a failure is an answer too."""
        if len(request.headers.get("accept", "")) > ACCEPT_CHARACTERS:
            request.headers["accept"] = request.headers["accept"][:ACCEPT_CHARACTERS].rpartition(",")[0]
        try:
            answer = await self._answer(request)
        except ApiError as error:
            # A fault for each of many items is a long answer.
            answer = await apart_if(request.large, failure, request, self._codecs, error)
        except RecursionError:
            answer = failure(request, self._codecs, bad_request("exceeded max depth"))
        except (StorageClosed, StorageFull, StorageBusy, StorageUnreachable, ValueTooLarge) as refusal:
            answer = failure(request, self._codecs, _storage_failure(refusal))
        if request.warnings:
            answer.headers = (*answer.headers, *warned(request.warnings))
        return answer

    async def _answer(self, request: Request) -> Answer:
        if request.query_string and "timeout=" in request.query_string:
            check_timeout(request)
        route = read_path(request.path)
        if self.aggregator is not None and (remote := self.aggregator.find(route)) is not None:
            return await self.aggregator.answer(request, remote)
        match route.area:
            case Area.RESOURCE:
                return await self._resource(request, route)
            case Area.NOTHING:
                try:
                    return self._issued(request)
                except ApiError as error:
                    return failure(request, self._without_cbor, error)
            case Area.UNCLEAR:
                return _unclear(request)
            case Area.OPENAPI_V2 | Area.OPENAPI_V3 | Area.VERSION | Area.INDEX:
                if route.area is Area.VERSION:
                    if request.method != "GET":
                        raise method_not_allowed()
                    check_routed(request.headers.get("accept", ""), (JSON.media_type,))
                return self._openapi.answer(request, route)
        return self._describe(request, route)

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
        if self.aggregator is not None and self.aggregator.takes_upgrade(request):
            return True
        return self.virtual.proxy is not None and read_path(request.path).subresource == "proxy"

    def _describe(self, request: Request, route: Route) -> Answer:
        """Discovery."""
        routed = self._is_routed(route)
        of_version = routed and route.area is Area.RESOURCES
        spoken = MEDIA_TYPES if of_version else tuple(codec.media_type for codec in self._without_cbor)
        try:
            if routed:
                if request.method != "GET":
                    raise method_not_allowed()
                check_routed(request.headers.get("accept", ""), spoken)
            return self._discovery.answer(request, route, self._codecs if of_version else self._without_cbor)
        except ApiError as error:
            return failure(request, self._without_cbor, error)

    def _is_routed(self, route: Route) -> bool:
        """Whether a path of discovery is of the router that knows methods: /apis and the groups take any."""
        if route.area is Area.API_VERSIONS:
            return True
        group = self._catalog.groups.get(route.group)
        return (
            route.area is Area.RESOURCES
            and group is not None
            and group.builtin
            and route.version in group.versions
        )

    async def _resource(self, request: Request, route: Route) -> Answer:
        served = self._catalog.find(route.group, route.version, route.resource)
        if served is None and self.catch_up_definitions is not None:
            await self.catch_up_definitions()  # another server may have been given its CRD
            served = self._catalog.find(route.group, route.version, route.resource)
        try:
            verb = self._routed_verb(request, route, served)
        except ApiError as error:
            if served is not None and not served.builtin and error.code not in (404, 405):
                raise
            return failure(request, self._without_cbor, error)
        if served is None or not verb:
            return NOT_FOUND
        if served.builtin and (accept := request.headers.get("accept", "")) and accept != JSON.media_type:
            if route.subresource == "log":
                check_routed(accept, ("text/plain", *MEDIA_TYPES))
                negotiate(accept, self._codecs)
            elif route.subresource not in FORWARDED:
                check_routed(accept, watch=verb in ("list", "watch"))
        if served.builtin:
            request.warnings.extend(served.warnings)
        shown = verb
        if verb == "patch" and request.headers.get("content-type", "").startswith("application/apply-patch"):
            shown = "apply"
        place = (shown, route.subresource, not route.name, not route.namespace)
        counted = served.counted.get(place)
        if counted is None:
            counted = served.counted[place] = self._counted(shown, route, served)
        request.counted = counted
        if served.warnings:
            self._note_deprecated(request, route, served)
        check_path_name(route.name)
        if self._alone:
            return await self._act(verb, request, route, served)
        return await self._among_others(verb, request, route, served)

    def _routed_verb(self, request: Request, route: Route, served: Served | None) -> str:
        """The verb that a path and a method mean, empty for a path that nobody knows. Raises ApiError 400 to 415."""
        if served is None:
            group = self._catalog.groups.get(route.group)
            if group is not None and group.builtin:
                raise no_such_resource()
            return ""
        if served.builtin:
            verb = builtin_verb(request, route, served)
            if verb == "patch" and route.subresource != "proxy":
                check_patch_type(request, served)
            return verb
        if misplaced(route, served, request.method):
            return ""
        request.warnings.extend(served.warnings)
        return custom_verb(request, route, served)

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
        # A create reads nothing of its own; what it is refused for may be news that is still on the way.
        if verb != "create":
            if needs_newest(verb, request, self._cache.revision):
                await self._cache.catch_up()
            return await self._act(verb, request, route, served)
        seen = self._cache.revision
        try:
            return await self._act(verb, request, route, served)
        except ApiError:
            await self._cache.catch_up()
            if self._cache.revision == seen:
                raise
            return await self._act(verb, request, route, served)

    async def _act(self, verb: str, request: Request, route: Route, served: Served) -> Answer:
        if route.subresource == "scale":
            return await self._scale(verb, request, route, served)
        if served.builtin and not served.group and route.subresource in FORWARDED:
            return await self.virtual.forward(request, route, served)
        match verb:
            case "get":
                return await self._get(request, route, served)
            case "list" | "watch":
                return await self._list(request, route, served, watch=verb == "watch")
            case "create":
                return await self._create(request, route, served)
            case "update":
                return await self._update(request, route, served)
            case "patch":
                return await self._patch(request, route, served)
            case "delete":
                return await self._delete(request, route, served)
            case "deletecollection":
                return await self._delete_collection(request, route, served)
        raise method_not_allowed()

    async def _get(self, request: Request, route: Route, served: Served) -> Answer:
        view = asked_view(request, served, self._codecs, of_list=False)
        key = served.key(route.namespace, route.name)
        resource_version = request.first("resourceVersion") if request.query_string else ""
        record = read_record(self._cache.resource(served.prefix), key, resource_version)
        if record is None:
            raise not_found(served.plural, served.group, route.name)
        body = await apart_if(ASKING, view.object, record) if served.asks else view.object(record)
        return Response(200, body, view.content_type)

    async def _list(self, request: Request, route: Route, served: Served, *, watch: bool) -> Answer:
        large = request.large
        if large:
            await apart(lambda: request.query)
        form = PLAIN
        if (accept := request.headers.get("accept", "")) and accept != JSON.media_type:
            # Refused before options are.
            form = await apart_if(large, negotiate, accept, self._codecs, typed=served.builtin)
        options = read_list_options(request.query, watch=watch)
        selectors = await apart_if(large, read_selectors, request)
        check_list_options(options)
        selection, scope = await apart_if(large, selection_of, selectors, route, served)
        view = await apart_if(large, asked_view, request, served, self._codecs, of_list=not options.watch)
        cache = self._cache.resource(served.prefix)
        if options.watch:
            check_streamed(form)
            answer: Answer = self._watches.start(
                cache, scope, options, view, selection, self._figures.watched(served.named), served.asks
            )
        else:
            prepare = served.prepare if served.asks else None
            answer = await list_records(cache, scope, options, view, selection, self._bodies, prepare)
        return answer

    async def _create(self, request: Request, route: Route, served: Served) -> Answer:
        if route.subresource or not served.prefix:
            return await self.virtual.answer(request, route, served)
        view = asked_view(request, served, self._codecs, of_list=False)
        options = read_write_options(request, "CreateOptions")
        target = WriteTarget.asked(request, served, route.namespace, "", options)
        obj = await apart_if(target.large, self._read, request, target)
        match_namespace(metadata_of(obj), route.namespace)
        return await self._written(view, served, await self._writer.create(target, obj))

    def _read(self, request: Request, target: WriteTarget) -> Json:
        """The object of a body, in form."""
        obj, duplicates = read_body(request, self._codecs, target.served, self._is_kind)
        bring_into_form(obj, target.served, target.options.validation, duplicates, target.warnings)
        note_object(request.trail, obj)
        return obj

    async def _update(self, request: Request, route: Route, served: Served) -> Answer:
        if route.subresource == "finalize":
            return await self.virtual.answer(request, route, served)
        view = asked_view(request, served, self._codecs, of_list=False)
        options = read_write_options(request, "UpdateOptions")
        target = WriteTarget.asked(request, served, route.namespace, route.name, options, route.subresource)
        obj = await apart_if(target.large, self._read, request, target)
        metadata = metadata_of(obj)
        match_namespace(metadata, route.namespace)
        match_name(obj, route.name)
        data = encode(obj)
        uid = metadata.get("uid") or ""
        creates = None
        if served.strategy.create_on_update and not route.subresource:
            creates = lambda: _again(data)  # noqa: E731
        written = await self._writer.update(target, lambda old: _again(data), uid=uid, creates=creates)
        return await self._written(view, served, written)

    async def _patch(self, request: Request, route: Route, served: Served) -> Answer:
        view = asked_view(request, served, self._codecs, of_list=False)
        note_patch(request)
        written = await patch(request, served, route.namespace, route.name, route.subresource, self._writer)
        return await self._written(view, served, written)

    async def _scale(self, verb: str, request: Request, route: Route, served: Served) -> Answer:
        form = negotiate(request.headers.get("accept", ""), self._codecs, typed=served.builtin)
        if verb == "patch":
            note_patch(request)
        if verb == "get":
            scale = await self._scales.read(served, route.namespace, route.name)
        elif verb in ("update", "patch"):
            scale = await self._scales.write(verb, request, served, route)
        else:
            raise method_not_allowed()
        if form.shown_as:
            scale = self._scales.shown(served, scale, form)
        return Response(200, whole(form.codec, scale), form.codec.media_type)

    async def _written(self, view: View, served: Served, written: Written) -> Response:
        code, record = 201 if written.created else 200, written.record
        where = ASKING if served.asks else len(record.value) > LARGE_BYTES
        body = await apart_if(where, view.object, record)
        return Response(code, body, view.content_type)

    async def _delete(self, request: Request, route: Route, served: Served) -> Answer:
        form = negotiate(request.headers.get("accept", ""), self._codecs, typed=served.builtin)
        body = read_delete_body(request, self._codecs)
        if body:
            note_object(request.trail, body)
        options = read_delete_options(request, body)
        write_options = WriteOptions(dry_run=options.dry_run)
        target = WriteTarget.asked(request, served, route.namespace, route.name, write_options)
        deleted = await self._deleter.delete(target, options)
        if deleted.stays or served.hooks.answers_deleted:
            view = view_of(served, form, request.first("includeObject"), of_list=False)
            # Accepted, not done: said only to clients that asked for dependents to go as they did before policies.
            code = 202 if deleted.stays and options.orphan is False else 200
            shown = await apart_if(target.asking, view.object, deleted.record)
            return Response(code, shown, view.content_type)
        details = {"name": route.name, "group": served.group, "kind": served.plural, "uid": deleted.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {key: value for key, value in details.items() if value},
        }
        return Response(200, whole(form.codec, status), form.codec.media_type)

    async def _delete_collection(self, request: Request, route: Route, served: Served) -> Answer:
        view = asked_view(request, served, self._codecs, of_list=True)
        list_options = read_list_options(request.query)
        selectors = read_selectors(request)
        check_list_options(list_options)
        selection, scope = selection_of(selectors, route, served)
        body = read_delete_body(request, self._codecs)
        if body and request.trail is not None:
            note_object(request.trail, body)
        options = read_delete_options(request, body)
        if served.hooks.orphan_warning and options.policy is None:
            request.warnings.append(served.hooks.orphan_warning)  # even where nothing is deleted
        cache = self._cache.resource(served.prefix)
        # One list decides what is deleted and what is shown: a page, a selection and a continue token hold for both.
        prepare = served.prepare if served.asks else None
        page = await list_page(cache, scope, list_options, selection, prepare)
        for record in page.records:
            namespace, name = name_of(record.key, served)
            target = WriteTarget.asked(
                request, served, namespace, name, WriteOptions(dry_run=options.dry_run)
            )
            try:
                await self._deleter.delete(target, options, of_collection=True)
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
        return show_page(page, view)


def _again(data: bytes) -> Json:
    from apimachinery.wire.json import decode

    obj: Json = decode(data)
    return obj


def _unclear(request: Request) -> Response:
    """A path that ends where a special verb wants a resource."""
    url = quote(request.path) + (f"?{request.query_string}" if request.query_string else "")
    said = f'Internal Server Error: "{url}": failed to create RequestInfo: '
    said += f"unable to determine kind and namespace from url, {url}\n"
    shown = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Response(500, shown.encode(), "text/plain; charset=utf-8")


def failure(request: Request, codecs: Iterable[Codec], error: ApiError) -> Response:
    """A failure in the form the client asked for."""
    codec = for_error(request.headers.get("accept", ""), codecs)
    headers = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    if codec is not JSON:
        # An API of packages without field numbers has no protobuf form of a Status either.
        with contextlib.suppress(DecodeFault):
            return Response(error.code, codec.encode(error.status()), codec.media_type, headers)
    return Response(error.code, encode(error.status()) + b"\n", headers=headers)


def read_only() -> ApiError:
    """403 for a write where nothing can be written."""
    return ApiError(
        403, "Forbidden", "the server is read-only: it shows what is in its storage", has_details=False
    )


def _storage_failure(refusal: StorageError) -> ApiError:
    """What the storage refuses, as etcd's refusals read through kube-apiserver: 500 without a reason."""
    if isinstance(refusal, ValueTooLarge):
        return ApiError(500, "", "etcdserver: request is too large", has_details=False)
    if isinstance(refusal, StorageFull):
        return ApiError(500, "", "etcdserver: mvcc: database space exceeded", has_details=False)
    if isinstance(refusal, StorageUnreachable):
        return ApiError(504, "Timeout", str(refusal), has_details=False, retry_after=1)
    if isinstance(refusal, StorageBusy):
        return ApiError(503, "ServiceUnavailable", str(refusal), retry_after=1)
    return ApiError(503, "ServiceUnavailable", "the storage is closed")


def warned(warnings: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    """Warning headers (RFC 7234 section 5.5, code 299), each text once. Where all together have more than 4,096
    characters each is cut to 256, and what is beyond 4,096 then is left out, as in kube-apiserver."""
    if not warnings:
        return ()
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) > WARNING_CHARACTERS:
        total, shown = 0, []
        for text in texts:
            if total >= WARNING_CHARACTERS:
                break
            shown.append(text[:WARNING_CUT])
            total += len(shown[-1])
        texts = shown
    return tuple(("Warning", f"299 - {_quoted(text)}") for text in texts)


def _quoted(text: str) -> str:
    kept = "".join(char if char.isprintable() else " " for char in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'
