"""GET and LIST: which state a resourceVersion asks for, and the answer made of stored bytes.

Rules (resourceVersion × resourceVersionMatch × limit × continue, as kube-apiserver answers from its cache):

====================  =============================  ============================================
resourceVersion       match                          state
====================  =============================  ============================================
unset                 unset                          now
"0"                   unset, NotOlderThan            now, and the limit is ignored
N                     unset without limit, NotOlder  now, if N is not in the future
N                     unset with limit, Exact        at N
====================  =============================  ============================================

A continue token brings its own revision. A future N is 504 with cause ResourceVersionTooLarge; one that is
compacted 410 Expired, and where a token asked for it the answer carries a token that goes on in the state of
now.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from apimachinery.http.governor import Governor, Holding
from apimachinery.http.messages import Response
from apimachinery.http.steps import ASKS, LIGHT, LONG, Asking, Wait, work
from apimachinery.http.workers import MANY_RECORDS, weigh
from apimachinery.meta.errors import ApiError, Cause
from apimachinery.server.answer.view import ListMeta, Selection, View
from apimachinery.server.request.continue_token import (
    INCONSISTENT,
    BadContinueToken,
    decode_continue,
    encode_continue,
)
from apimachinery.server.request.list_options import (
    EXACT,
    NOT_OLDER_THAN,
    BadRevision,
    ListQuery,
    parse_revision,
)
from apimachinery.storage.interface import Compacted, Record
from apimachinery.storage.sorted_records import Run
from apimachinery.storage.watch_cache import ResourceCache, Snapshot

BODIES_BYTES = 48 << 20
KNOWN_SIZES = 1_000
SOUGHT_NAMESPACES = 64
"""In how many namespaces a name is sought; to look at all keys costs less where there are many more."""
LONG_BYTES = 1 << 20
_EVENTS = "/core/events/"
Prepare = Callable[[Sequence[Record]], None]
"""Converts records, with one call for all; it may wait."""
Joined = tuple[bytes, Holding | None]
"""The items of a list, and where they are counted if they are long."""
ENTRY_BYTES = 1 << 10
"""What an entry takes besides its body: its key, of a scope and a form, and its place in the order."""


def check_seen(cache: ResourceCache, resource_version: str) -> None:
    """Raises ApiError for a ``resourceVersion`` that a GET cannot be answered at: 500 for one that is not a number, 400
    where kube-apiserver has no watch cache, 504 for one in the future."""
    try:
        # kube-apiserver answers 500 here, since it parses the version deep in its watch cache.
        revision = parse_revision(resource_version)
    except BadRevision as fault:
        if not is_cached(cache):
            raise _bad_request(f"invalid resource version: {fault}") from None
        raise ApiError(500, "", str(fault), has_details=False) from None
    if revision > cache.revision:
        raise too_large(revision, cache.revision, cached=is_cached(cache))


class JoinedBodies:
    """Joined list items by what they show, for as long as their scope does not change; bounded in bytes.

    Whoever answers with the items of a long list has the same holding of them as this, so that they are counted once,
    among the answers, for as long as somebody is sent them.
    """

    def __init__(self, capacity: int = BODIES_BYTES, governor: Governor | None = None) -> None:
        self._capacity = capacity
        self._size = 0
        self._kept: OrderedDict[Hashable, tuple[int, Joined]] = OrderedDict()
        self._sizes: dict[Hashable, tuple[int, int]] = {}
        self._answers = governor.answers if governor is not None else None
        if governor is not None:
            governor.ask("small_lists", lambda: self._size - self._counted)
        self._counted = 0

    def get(self, shown: Hashable, stamp: int) -> Joined | None:
        """The joined items kept under ``shown``; None if they were not joined at this stamp of their scope."""
        found = self._kept.get(shown)
        # Joined at another state: the next answer replaces it.
        if found is None or found[0] != stamp:
            return None
        self._kept.move_to_end(shown)
        return found[1]

    def holding(self, size: int) -> Holding | None:
        """Counts a list that is to be made. Raises Crowded."""
        if size < LONG_BYTES or self._answers is None:
            return None
        # What nobody is sent makes room.
        while self._kept and not self._answers.fits(size):
            self._drop()
        return self._answers.holding(size)

    def size_of(self, prefix: str, scope: str, page: ListedPage) -> int:
        """How many bytes the records of a page have; thousands are counted once, whoever asks for them and in what
        form."""
        place = (prefix, scope, page.span)
        known = self._sizes.get(place)
        if known is None or known[0] != page.stamp:
            if len(self._sizes) >= KNOWN_SIZES:
                self._sizes.clear()
            known = self._sizes[place] = (page.stamp, size_of(page.records))
        return known[1]

    def keep(self, shown: Hashable, stamp: int, body: bytes, holding: Holding | None = None) -> Joined:
        """Keeps a body in place of an older one; forgets those longest unused."""
        joined = (body, holding)
        # The size of the old one goes before the new one is counted.
        if (old := self._kept.pop(shown, None)) is not None:
            self._count(old[1], -1)
        # One list that fills everything would push out all others.
        if len(body) + ENTRY_BYTES > self._capacity:
            return joined
        self._kept[shown] = (stamp, joined)
        self._count(joined, 1)
        while self._size > self._capacity:
            self._drop()
        return joined

    def _drop(self) -> None:
        _, (_, dropped) = self._kept.popitem(last=False)
        self._count(dropped, -1)

    def _count(self, joined: Joined, times: int) -> None:
        body, holding = joined
        self._size += times * (len(body) + ENTRY_BYTES)
        if holding is not None:
            self._counted += times * holding.size

    @property
    def size(self) -> int:
        """What is kept, in bytes."""
        return self._size


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a list begins: a state, the first key, and the page's size (0 for all)."""

    snapshot: Snapshot
    first_key: str
    limit: int


@dataclass(frozen=True, slots=True)
class ListedPage:
    """What a LIST shows: its records, the metadata of the list, and which part of which state that is.

    ``stamp`` changes with the state of the scope. ``span`` is the page's place in it, None where a selection chose.
    """

    records: Sequence[Record]
    meta: ListMeta
    stamp: int
    span: tuple[int, int] | None


def list_page(
    cache: ResourceCache,
    scope: str,
    options: ListQuery,
    selection: Selection | None = None,
    prepare: Prepare | None = None,
) -> Asking[ListedPage]:
    """The records of ``scope`` that a LIST or a DELETE of a collection is about. ``prepare`` is there where somebody
    else converts them. Raises ApiError 400, 410, 500, 504."""
    start = yield from _start(cache, scope, options)
    snapshot = start.snapshot
    # Selections read fields of the converted objects, so conversion comes first.
    if prepare is not None and selection is not None:
        yield from work(ASKS, prepare, snapshot.records)
    records: Sequence[Record] = snapshot.records
    rest, span = 0, None
    low = snapshot.records.first_at(start.first_key) if start.first_key else 0
    if selection is not None and selection.name:
        # At most one object in each namespace has the name.
        records, low = _of_name(snapshot.records, low, scope, selection.name), 0
    if selection is None:
        high = length = len(records)
        if start.limit:
            high = min(low + start.limit, length)
        rest = length - high
        last = records[high - 1].key if rest else ""
        # Where the page is kept joined, nobody reads these.
        chosen: Sequence[Record] = snapshot.records.part(low, high) if low or rest else records
        span = (low, high)
    else:
        # Selecting reads each object: many of them are not for the loop.
        weight = LONG if len(records) > MANY_RECORDS else LIGHT
        chosen, last = yield from work(weight, _choose, records, low, start.limit, selection)
    if prepare is not None:
        yield from work(ASKS, prepare, chosen)
    token = encode_continue(scope, last, snapshot.revision, rooted=_is_rooted(cache, options)) if last else ""
    return ListedPage(chosen, ListMeta(snapshot.revision, token, rest or None), snapshot.stamp, span)


def list_records(
    cache: ResourceCache,
    scope: str,
    options: ListQuery,
    view: View,
    selection: Selection | None = None,
    bodies: JoinedBodies | None = None,
    prepare: Prepare | None = None,
) -> Asking[Response]:
    """The answer to a LIST of ``scope``. Raises ApiError 400, 410, 500, 504."""
    page = yield from list_page(cache, scope, options, selection, prepare)
    # Selections are too many to keep joined lists of them.
    if bodies is None or page.span is None:
        weigh(size := size_of(page.records))
        holding = bodies.holding(size) if bodies is not None else None
        response = yield from work(weight_of(page.records, size, view), show_page, page, view)
        response.holding = holding
        return response
    shown = (cache.prefix, scope, view.key, *page.span)
    joined = bodies.get(shown, page.stamp)
    if joined is None:
        weigh(size := bodies.size_of(cache.prefix, scope, page))
        holding = bodies.holding(size)
        items = yield from work(weight_of(page.records, size, view), view.join, page.records)
        if holding is not None:
            holding.set(len(items))
        joined = bodies.keep(shown, page.stamp, items, holding)
    items, holding = joined
    if view.lists_quickly:
        return Response(200, view.list(page.meta, items), view.content_type, holding=holding)
    weight = LONG if len(items) > view.quick_bytes else LIGHT
    body = yield from work(weight, view.list, page.meta, items)
    holding = bodies.holding(sum(map(len, body)))
    return Response(200, body, view.content_type, holding=holding)


def size_of(records: Sequence[Record]) -> int:
    """How many bytes these have as they are stored."""
    return sum([len(record.value) for record in records])


def weight_of(records: Sequence[Record], size: int, view: View) -> int:
    """How heavy it is to make a list of these: ``LONG`` for many of them, or many bytes."""
    return LONG if len(records) > MANY_RECORDS or size > view.quick_bytes else LIGHT


def _is_rooted(cache: ResourceCache, options: ListQuery) -> bool:
    """Whether a token has the slash that kube-apiserver's watch cache puts there: it leaves a zero that is not spelled
    "0" to the storage, unless any newer state will do."""
    version = options.resource_version
    zeros = len(version) > 1 and not version.strip("0") and options.match != NOT_OLDER_THAN
    return is_cached(cache) and not zeros


def show_page(page: ListedPage, view: View) -> Response:
    """A page as the answer of a LIST."""
    return Response(200, view.list(page.meta, view.join(page.records)), view.content_type)


def _start(cache: ResourceCache, scope: str, options: ListQuery) -> Asking[_Start]:
    if options.continue_token:
        return (yield from _continued(cache, scope, options))
    if not options.resource_version:
        return _Start(cache.snapshot(scope), "", options.limit)
    try:
        revision = parse_revision(options.resource_version)
    except BadRevision as fault:
        raise _bad_request(f"invalid resource version: {fault}") from None
    if revision == 0:
        # Only "0" itself lets kube-apiserver answer without regard to the limit, and that from its watch cache.
        unlimited = options.resource_version == "0" and is_cached(cache)
        return _Start(cache.snapshot(scope), "", 0 if unlimited else options.limit)
    exact = options.match == EXACT or (bool(options.limit) and not options.match)
    is_one = not scope.endswith("/")
    if revision > cache.revision:
        raise too_large(revision, cache.revision, cached=is_cached(cache) and not (exact and is_one))
    # A limit does not make a list of one object, which its name chose, an exact one.
    if exact and (options.match or not is_one):
        try:
            return _Start((yield Wait(partial(cache.snapshot_at, scope, revision))), "", options.limit)
        except Compacted:
            raise expired("The resourceVersion for the provided list is too old.") from None
    return _Start(cache.snapshot(scope), "", options.limit)


def _continued(cache: ResourceCache, scope: str, options: ListQuery) -> Asking[_Start]:
    try:
        first_key, revision = decode_continue(scope, options.continue_token)
    except BadContinueToken as fault:
        raise _bad_request(str(fault)) from None
    if options.resource_version not in ("", "0"):
        raise _bad_request("specifying resource version is not allowed when using continue")
    # "0" ignores a limit here too.
    limit = 0 if options.resource_version and is_cached(cache) else options.limit
    if revision == INCONSISTENT:
        return _Start(cache.snapshot(scope), first_key, limit)
    if revision < 0:
        raise _bad_request("invalid continue token: continue key is not valid: negative resourceVersion")
    if revision > cache.revision:
        raise too_large(revision, cache.revision, cached=is_cached(cache))
    try:
        return _Start((yield Wait(partial(cache.snapshot_at, scope, revision))), first_key, limit)
    except Compacted:
        error = expired(
            "The provided continue parameter is too old to display a consistent list result. You can start "
            "a new list without the continue parameter, or use the continue token in this response to "
            "retrieve the remainder of the results. Continuing with the provided token results in an "
            "inconsistent list - objects that were created, modified, or deleted between the time the first "
            "chunk was returned and now may show up in the list."
        )
        last_key = first_key.removesuffix("\0")
        error.continue_token = encode_continue(scope, last_key, INCONSISTENT, rooted=is_cached(cache))
        raise error from None


def _of_name(records: Run, low: int, scope: str, name: str) -> list[Record]:
    """The records from ``low`` on that bear a name, in a scope of many namespaces: sought in the first namespaces, as
    there are mostly few; in those after them every key is looked at."""
    found: list[Record] = []
    for _ in range(SOUGHT_NAMESPACES):
        if low >= len(records):
            return found
        namespace = records[low].key[: records[low].key.index("/", len(scope))]
        place = records.first_at(f"{namespace}/{name}")
        if low <= place < len(records) and records[place].key == f"{namespace}/{name}":
            found.append(records[place])
        low = records.first_at(f"{namespace}0")  # "0" follows "/"
    ending = f"/{name}"
    found += [record for record in records[low:] if record.key.endswith(ending)]
    return found


def _choose(
    records: Sequence[Record], low: int, limit: int, selection: Selection
) -> tuple[list[Record], str]:
    """The selected records of a page, and its last key where more records follow, selected or not."""
    rest = islice(records, low, None)
    matching = (record for record in rest if selection.matches(record))
    if not limit:
        return list(matching), ""
    chosen = list(islice(matching, limit))
    # Like kube-apiserver, which stops at the limit, this does not look for whether a later record is selected.
    more = len(chosen) == limit and next(rest, None) is not None
    return chosen, chosen[-1].key if more else ""


def is_cached(cache: ResourceCache) -> bool:
    """Whether kube-apiserver has a watch cache for the resource, which shows in the details of answers: not for
    events, which are too many."""
    return cache.prefix != _EVENTS


def too_large(revision: int, current: int, *, cached: bool = True) -> ApiError:
    """504 for a version that is not yet written. Only a cache may have it a second later."""
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {revision}, current: {current}",
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
        retry_after=1 if cached else 0,
    )


def expired(message: str) -> ApiError:
    """410 for a version that is no longer kept."""
    return ApiError(410, "Expired", message, has_details=False)


def _bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message, has_details=False)
