"""What each verb does with a resource that was found: options and body are read, then something is read or written, and
what came of it is put into the form that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from apimachinery.http.governor import SMALL_BYTES
from apimachinery.http.messages import (
    LARGE_BYTES,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.steps import ASKS, HEAVY, LIGHT, LONG, Wait, compute, work
from apimachinery.http.workers import weigh
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import FORWARDED, Route
from apimachinery.meta.errors import ApiError, method_not_allowed, not_found, verb_not_supported
from apimachinery.server.answer.view import ListMeta, Selection, View
from apimachinery.server.answer.views import asked_view, view_of
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.read.computed import Computed
from apimachinery.server.read.listing import (
    JoinedBodies,
    ListedPage,
    check_seen,
    list_page,
    list_records,
    show_page,
    size_of,
    weight_of,
)
from apimachinery.server.read.past import asks_for_past, past_of
from apimachinery.server.read.selection import read_selectors, selection_of
from apimachinery.server.read.watch import Watches, check_version
from apimachinery.server.read.watch_events import Seen
from apimachinery.server.request.bodies import hold_body, note_object, note_patch, read_sent
from apimachinery.server.request.codecs import JSON, Codecs, whole
from apimachinery.server.request.delete_bodies import read_delete_body
from apimachinery.server.request.list_options import ListQuery, check_list_options, read_list_options
from apimachinery.server.request.negotiation import (
    PLAIN,
    AnswerForm,
    check_streamed,
    negotiate,
)
from apimachinery.server.request.options import WriteOptions, read_delete_options, read_write_options
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    match_name,
    match_namespace,
    metadata_of,
)
from apimachinery.server.subresources.calls import VirtualResources
from apimachinery.server.subresources.scale import Scales
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.effects import Steps
from apimachinery.server.write.object_changes import drop_repeated_owners
from apimachinery.server.write.patch import patch
from apimachinery.server.write.unreadable import Authorize, UnreadableDeletion
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Record
from apimachinery.storage.kept import KeepsVersions
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode, encode

Answer = Response | StreamResponse | UpgradeResponse

WRITTEN_AHEAD = frozenset(("update", "patch", "delete"))
"""Verbs that ``Verbs.write_ahead`` answers for an object itself and for its status."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What gets, lists and watches are made of. ``computed`` are the resources of which nothing is stored."""

    cache: WatchCache
    watches: Watches
    bodies: JoinedBodies
    computed: Mapping[tuple[str, str, str], Computed]


@dataclass(frozen=True, slots=True)
class WriteParts:
    """What changes objects."""

    writer: Writer
    deleter: Deleter


class Verbs:
    """The verbs, over one storage."""

    def __init__(
        self,
        reads: Reads,
        writes: WriteParts,
        codecs: Codecs,
        is_kind: IsKind,
        virtual: VirtualResources,
        watched: Callable[[tuple[str, str, str]], Seen],
        authorize: Authorize,
    ) -> None:
        """``watched`` gives what counts the events of a resource."""
        self._unreadable = UnreadableDeletion(reads.cache, authorize)
        self._cache, self._watches, self._bodies = reads.cache, reads.watches, reads.bodies
        self._computed = reads.computed
        # Of the drivers one keeps versions, and only if told to.
        self._past: KeepsVersions | None = getattr(reads.cache.storage, "past", None)
        self._writer, self._deleter = writes.writer, writes.deleter
        self._driver = writes.writer.driver
        self._codecs = codecs
        self._is_kind = is_kind
        self._virtual = virtual
        self._scales = Scales(writes.writer.pipeline, codecs, is_kind)
        self._writes = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        self._watched = watched

    def act(self, verb: str, request: Request, route: Route, served: Served) -> Coroutine[Any, Any, Answer]:
        """Answers a verb that the resource serves. Raises ApiError, also before anything is awaited."""
        if route.subresource == "scale":
            return self._run(request, self._scale(verb, request, route, served))
        if not served.group and route.subresource in FORWARDED:
            return self._virtual.forward(request, route, served)
        if self._past is not None and verb in ("get", "list") and asks_for_past(request):
            return self._driver.run(past_of(self._past, request, route, served))
        if verb == "get":
            return self._get(request, route, served)
        if verb in ("list", "watch"):
            return self._driver.run(self._list(request, route, served, watch=verb == "watch"))
        steps = self._writes.get(verb)
        if steps is None:
            raise method_not_allowed()
        return self._run(request, steps(request, route, served))

    def takes_upgrade(self, request: Request, route: Route) -> bool:
        """Whether an offer of another protocol than websockets may be accepted."""
        return self._virtual.takes_upgrade(request, route.subresource)

    def write_ahead(
        self, verb: str, request: Request, route: Route, served: Served
    ) -> Coroutine[Any, Any, Answer]:
        """Answers a write where others write too, and nothing has waited for what they were acknowledged. Raises
        ApiError."""
        steps = self._writes[verb]
        warned = len(request.warnings)

        def begin() -> Steps[Answer]:
            del request.warnings[warned:]  # those of an attempt before
            return steps(request, route, served)

        if len(request.body) >= SMALL_BYTES:
            hold_body(request)
        return self._driver.run_ahead(begin, large=request.large)

    def _run(self, request: Request, steps: Steps[Answer]) -> Coroutine[Any, Any, Answer]:
        if len(request.body) >= SMALL_BYTES:
            hold_body(request)
        return self._driver.run(steps, large=request.large)

    async def _get(self, request: Request, route: Route, served: Served) -> Answer:
        view = asked_view(request, served, self._codecs, of_list=False, subresource=route.subresource)
        key = served.key(route.namespace, route.name)
        if (computed := self._computed.get(served.named)) is not None:
            made = [each for each in await computed.records(served, key) if each.key == key]
            if not made:
                raise computed.missing(served, route.namespace, route.name)
            return Response(200, view.object(made[0]), view.content_type)
        self._cache.check_readable(key)
        cache = self._cache.resource(served.prefix)
        if request.query_string and (wanted := request.first("resourceVersion")):
            check_seen(cache, wanted)
        record = cache.get(key)
        if record is None:
            raise not_found(served.hooks.called or served.plural, served.group, route.name)
        if served.asks:
            body = await compute(ASKS, view.object, record)
        elif ((size := len(record.value)) > view.quick_bytes or size > LARGE_BYTES) and not view.copies(
            record
        ):
            weigh(size)
            body = await compute(LONG, view.object, record)
        else:
            body = view.object(record)
        return Response(200, body, view.content_type)

    def _list(self, request: Request, route: Route, served: Served, *, watch: bool) -> Steps[Answer]:
        weight = LONG if request.large else LIGHT
        form, options, selection, scope = yield from work(
            weight, self._read_list, request, route, served, watch
        )
        if (computed := self._computed.get(served.named)) is not None:
            if options.watch:
                raise verb_not_supported("watch", served.plural, served.group)
            view = asked_view(request, served, self._codecs, of_list=True)
            records: list[Record] = yield Wait(partial(computed.records, served, scope))
            chosen = [each for each in records if selection is None or selection.matches(each)]
            # A limit has no meaning: there is nothing to go on from.
            return show_page(ListedPage(chosen, ListMeta(0), 0, None), view)
        cache = self._cache.resource(served.prefix)
        if not options.watch or options.resource_version in ("", "0") or options.send_initial_events:
            self._cache.check_readable(scope)
        try:
            watch = options.watch
            shown = partial(asked_view, request, served, self._codecs, of_list=not watch, watch=watch)
            view = yield from work(weight, shown)
        except ApiError:
            # What storage refuses is noticed first.
            if options.watch:
                check_version(options)
            else:
                yield from list_page(cache, scope, options, selection)
            raise
        if options.watch:
            answer = self._watches.start(
                cache, scope, options, view, selection, self._watched(served.named), served.asks
            )
            # A version that is none is noticed first; what is never sent leaves nothing.
            check_streamed(form)
            return answer
        prepare = served.prepare if served.asks else None
        return (yield from list_records(cache, scope, options, view, selection, self._bodies, prepare))

    def _read_list(
        self, request: Request, route: Route, served: Served, watch: bool
    ) -> tuple[AnswerForm, ListQuery, Selection | None, str]:
        form = PLAIN
        if (accept := request.headers.get("accept", "")) and accept != JSON.media_type:
            # Refused before options are.
            form = negotiate(accept, self._codecs, has_messages=served.family.has_messages)
        options = read_list_options(request.query, watch=watch)
        selectors = read_selectors(request)
        check_list_options(options)
        return form, options, *selection_of(selectors, route, served)

    def _create(self, request: Request, route: Route, served: Served) -> Steps[Answer]:
        if route.subresource or not served.prefix:
            return (yield from self._virtual.answer(request, route, served))
        view = asked_view(request, served, self._codecs, of_list=False)
        options = read_write_options(request, "CreateOptions")
        target = WriteTarget.asked(request, served, route.namespace, "", options)
        obj = self._read(request, target)
        match_namespace(metadata_of(obj), route.namespace)
        drop_repeated_owners(metadata_of(obj), target.warnings, sent=True)
        written = yield from self._writer.pipeline.create(target, obj)
        return (yield from self._written(view, written))

    def _read(self, request: Request, target: WriteTarget) -> Json:
        options = target.options
        obj, target.empties = read_sent(
            request, self._codecs, target.served, self._is_kind, options.validation, target.warnings
        )
        return obj

    def _update(self, request: Request, route: Route, served: Served) -> Steps[Answer]:
        view = asked_view(request, served, self._codecs, of_list=False, subresource=route.subresource)
        options = read_write_options(request, "UpdateOptions")
        target = WriteTarget.asked(request, served, route.namespace, route.name, options, route.subresource)
        obj = self._read(request, target)
        metadata = metadata_of(obj)
        match_namespace(metadata, route.namespace)
        match_name(obj, route.name)
        drop_repeated_owners(metadata, target.warnings, sent=True)
        copies = _Copies(obj)
        uid = metadata.get("uid") or ""
        creates = None
        if served.strategy.create_on_update and route.subresource in ("", "status"):
            creates = copies.next
        written = yield from self._writer.pipeline.update(
            target, lambda old: copies.next(), uid=uid, creates=creates, pure=True
        )
        return (yield from self._written(view, written))

    def _patch(self, request: Request, route: Route, served: Served) -> Steps[Answer]:
        view = asked_view(request, served, self._codecs, of_list=False, subresource=route.subresource)
        note_patch(request)
        written = yield from patch(
            request, served, route.namespace, route.name, route.subresource, self._writer.pipeline
        )
        return (yield from self._written(view, written))

    def _scale(self, verb: str, request: Request, route: Route, served: Served) -> Steps[Answer]:
        form = negotiate(
            request.headers.get("accept", ""), self._codecs, has_messages=served.family.has_messages
        )
        if verb == "patch":
            note_patch(request)
        if verb == "get":
            scale = yield from self._scales.read(served, route.namespace, route.name)
        elif verb in ("update", "patch"):
            scale = yield from self._scales.write(verb, request, served, route)
        else:
            raise method_not_allowed()
        if form.shown_as:
            scale = self._scales.shown(served, scale, form)
        return Response(200, whole(form.codec, scale), form.codec.media_type)

    def _written(self, view: View, written: Written) -> Steps[Response]:
        return self._shown(view, written.record, 201 if written.created else 200)

    def _shown(self, view: View, record: Record, code: int) -> Steps[Response]:
        if len(record.value) > min(LARGE_BYTES, view.quick_bytes) and not view.copies(record):
            yield HEAVY
        return Response(code, view.object(record), view.content_type)

    def _delete(self, request: Request, route: Route, served: Served) -> Steps[Answer]:
        form = negotiate(
            request.headers.get("accept", ""), self._codecs, has_messages=served.family.has_messages
        )
        body = read_delete_body(request, self._codecs)
        if body:
            note_object(request.trail, body)
        options = read_delete_options(request, body)
        write_options = WriteOptions(dry_run=options.dry_run)
        target = WriteTarget.asked(request, served, route.namespace, route.name, write_options)
        if options.ignores_read_errors and self._cache.unreadable_in(target.key):
            yield Wait(partial(self._unreadable.delete, request, target))
            return _gone(form, served, route.name, "")
        deleted = yield from self._deleter.steps(target, options)
        if deleted.stays or served.hooks.answers_deleted:
            view = view_of(served, form, request.first("includeObject"), of_list=False)
            # Accepted, not done: said only to clients that asked for dependents to go as they did before policies.
            code = 202 if deleted.stays and options.orphan is False else 200
            return (yield from self._shown(view, deleted.record, code))
        return _gone(form, served, route.name, deleted.uid)

    def _delete_collection(self, request: Request, route: Route, served: Served) -> Steps[Answer]:
        view = asked_view(request, served, self._codecs, of_list=True)
        list_options = read_list_options(request.query)
        selectors = read_selectors(request)
        check_list_options(list_options)
        selection, scope = selection_of(selectors, route, served)
        body = read_delete_body(request, self._codecs)
        if body:
            note_object(request.trail, body)
        options = read_delete_options(request, body)
        if served.hooks.orphan_warning and options.policy is None:
            request.warnings.append(served.hooks.orphan_warning)  # even where nothing is deleted
        cache = self._cache.resource(served.prefix)
        # One list decides what is deleted and what is shown: a page, a selection and a continue token hold for both.
        prepare = served.prepare if served.asks else None
        page = yield from list_page(cache, scope, list_options, selection, prepare)
        write_options = WriteOptions(dry_run=options.dry_run)
        targets = (
            WriteTarget.asked(request, served, *name_of(record.key, served), write_options)
            for record in page.records
        )
        yield Wait(
            partial(self._deleter.delete_all, targets, options, passes_over=_is_gone, of_collection=True)
        )
        if weight_of(page.records, size_of(page.records), view):
            yield HEAVY
        return show_page(page, view)


def _gone(form: AnswerForm, served: Served, name: str, uid: str) -> Response:
    """The answer where nothing of an object is left to be shown."""
    details = {"name": name, "group": served.group, "kind": served.plural, "uid": uid}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
    return Response(200, whole(form.codec, status), form.codec.media_type)


def _is_gone(error: ApiError) -> bool:
    return error.reason == "NotFound"


class _Copies:
    """An object, and copies of what it was for each later attempt to store it."""

    def __init__(self, obj: Json) -> None:
        self._first: Json | None = obj
        self._data = encode(obj)

    def next(self) -> Json:
        """One that nobody else has."""
        obj: Json = self._first or decode(self._data)
        self._first = None
        return obj


def needs_newest(verb: str, request: Request, seen: int) -> bool:
    """Whether a request must see every write that was acknowledged before it came, where others write too; ``seen`` is
    the revision that reads see. Not where it asks for what the cache has, or for a revision that was seen."""
    wanted = request.first("resourceVersion") if request.query_string else ""
    if verb not in ("get", "list", "watch") or not wanted:
        # Without a resourceVersion the newest state is promised.
        return True
    # A watch from a revision to come waits for it, without a limit of its own.
    return verb != "watch" and wanted.isascii() and wanted.isdigit() and int(wanted[:20]) > seen
