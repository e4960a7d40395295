"""Every call of the API as data: what to send, and how to read the answer. No sockets here.

A ``Call[T]`` is a request and the decoder of its answer; ``Client`` and ``AsyncClient`` only send it. So sync
and async, typed and dynamic clients say one and the same thing on the wire, and tests hold calls against data.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from apimachinery.client.codecs import JSON as JSON
from apimachinery.client.codecs import UNSTRUCTURED as UNSTRUCTURED
from apimachinery.client.codecs import Codec as Codec
from apimachinery.client.codecs import Event as Event
from apimachinery.client.codecs import EventType as EventType
from apimachinery.client.codecs import RawEvent as RawEvent
from apimachinery.client.codecs import decode_items as decode_items
from apimachinery.client.codecs import event as event
from apimachinery.client.codecs import no_event as no_event
from apimachinery.client.codecs import raw_event as raw_event
from apimachinery.client.codecs import typed_codec as typed_codec
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import UNDECODABLE, BadRequest, UnreadableAnswer, UnreadableObject
from apimachinery.meta.resources import Resource

T = TypeVar("T")

PAGE_SIZE: Final = 500

PropagationPolicy: TypeAlias = Literal["Background", "Foreground", "Orphan"]
FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
ResourceVersionMatch: TypeAlias = Literal["Exact", "NotOlderThan"]


class PatchType(Enum):
    """The content types of the four kinds of patches."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and how to read its answer. ``repeatable``: doing it twice is as good as once."""

    request: Request
    decode: Callable[[bytes], T]
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. ``next_token`` is empty on the last; ``remaining`` is None where not given; ``unreadable``
    are the objects that do not fit the model: they are not among the items."""

    items: list[T]
    resource_version: str
    next_token: str = ""
    remaining: int | None = None
    unreadable: tuple[UnreadableObject, ...] = ()


# ------------------------------------------------------------------ addresses


@dataclass(frozen=True, slots=True)
class Target:
    """A resource in one namespace (empty: all of them, or a cluster-scoped resource)."""

    resource: Resource
    namespace: str = ""

    def collection(self) -> str:
        """The URL path of the collection. Raises ``BadRequest`` for a namespace that cannot be in a path."""
        resource = self.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        if resource.namespaced and self.namespace:
            root = f"{root}/namespaces/{_segment(self.namespace)}"
        return f"{root}/{resource.plural}"

    def path(self, name: str, subresource: str = "") -> str:
        """The URL path of an object or its subresource. Raises ``BadRequest`` without a name (that path would be
        the whole collection's), without the namespace it needs, and for a name that cannot be in a path."""
        if not name:
            raise BadRequest(400, "BadRequest", "resource name may not be empty", has_details=False)
        self.require_namespace()
        path = f"{self.collection()}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path

    def require_namespace(self) -> None:
        """Raises ``BadRequest`` where the resource is namespaced and no namespace is named."""
        if self.resource.namespaced and not self.namespace:
            text = f"{self.resource.plural} are namespaced: this call needs one namespace"
            raise BadRequest(400, "BadRequest", text, has_details=False)


def _segment(text: str) -> str:
    # The rule of path segment names (apimachinery's path validation): such a name would address another URL.
    if text in (".", "..") or "/" in text or "%" in text:
        raise BadRequest(400, "BadRequest", f'"{text}" cannot be part of a URL path', has_details=False)
    return quote(text, safe="")


def query(**parameters: str | int | bool | Sequence[str] | None) -> str:
    """A query string of what is set; a sequence repeats its parameter."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if isinstance(value, str) or not isinstance(value, Sequence):
            # Unset options are left out, so that the server's own defaults hold.
            if value is not None and value != "" and value is not False:
                pairs.append((name, "true" if value is True else str(value)))
        else:
            pairs += [(name, item) for item in value]
    return f"?{urlencode(pairs)}" if pairs else ""


# ------------------------------------------------------------------ verbs


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of every write. ``field_manager`` empty: the server takes the User-Agent's."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation | Literal[""] = ""

    def query(self, **more: str | int | bool | None) -> str:
        """The query string, with ``more`` parameters."""
        return query(
            dryRun="All" if self.dry_run else None,
            fieldManager=self.field_manager,
            fieldValidation=self.field_validation,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How to delete; meta/v1 DeleteOptions. ``uid`` and ``resource_version`` are preconditions."""

    propagation_policy: PropagationPolicy | None = None
    grace_period_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def body(self) -> bytes:
        """The request body."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.propagation_policy is not None:
            body["propagationPolicy"] = self.propagation_policy
        if self.grace_period_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_period_seconds
        conditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(conditions.values()):
            body["preconditions"] = {k: v for k, v in conditions.items() if v}
        if self.dry_run:
            body["dryRun"] = ["All"]
        return msgspec.json.encode(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What to list or watch. ``limit`` is a page's size, 0 for all at once."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = PAGE_SIZE
    resource_version: str = ""
    resource_version_match: ResourceVersionMatch | Literal[""] = ""

    def query(self, **more: str | int | bool | None) -> str:
        """The query string of both verbs, with ``more`` parameters."""
        return query(
            labelSelector=self.label_selector,
            fieldSelector=self.field_selector,
            resourceVersion=self.resource_version,
            resourceVersionMatch=self.resource_version_match,
            **more,
        )


def get(
    target: Target, codec: Codec[T], name: str, *, subresource: str = "", resource_version: str = ""
) -> Call[T]:
    """GET of one object."""
    path = target.path(name, subresource) + query(resourceVersion=resource_version)
    return Call(Request("GET", path), codec.decode, repeatable=True)


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    # "continue" is a keyword of Python
    continue_: str = msgspec.field(default="", name="continue")
    remainingItemCount: int | None = None  # noqa: N815 - the wire's name


class _ListEnvelope(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_LIST: Final = msgspec.json.Decoder(_ListEnvelope)


def list_page(target: Target, codec: Codec[T], options: ListOptions, token: str = "") -> Call[Page[T]]:
    """GET of one page; ``token`` is that of the page before. Raises UnreadableAnswer for a body that is no list."""
    if token:  # the token holds the version; the server refuses both
        options = replace(options, resource_version="", resource_version_match="")
    parameters = options.query(limit=options.limit or None, **{"continue": token})

    def decode(body: bytes) -> Page[T]:
        try:
            envelope = _LIST.decode(body)
        except UNDECODABLE as error:
            raise UnreadableAnswer("a list", error) from None
        meta = envelope.metadata
        with no_collection():
            items, unreadable = decode_items(codec, envelope.items or [])
        return Page(items, meta.resourceVersion, meta.continue_, meta.remainingItemCount, tuple(unreadable))

    request = Request("GET", target.collection() + parameters, codec.accept(as_list=True))
    return Call(request, decode, repeatable=True)


class Tokens:
    """The continue tokens of one list, each of which may come once: else the list would never end."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def take(self, token: str) -> str:
        """Takes note of a token. Raises ``UnreadableAnswer`` for one that came before."""
        if token in self._seen:
            raise UnreadableAnswer("a list", "its continue token is one that was used before")
        self._seen.add(token)
        return token


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the collector: of what a page is decoded to nothing can be garbage yet, and looking for it again and
    again took four fifths of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def create(target: Target, codec: Codec[T], obj: Any, options: WriteOptions) -> Call[T]:
    """POST of an object."""
    target.require_namespace()
    path = target.collection() + options.query()
    request = Request("POST", path, {"Content-Type": JSON}, codec.encode(obj))
    # Not repeatable: a second try of one that went through would meet AlreadyExists.
    return Call(request, codec.decode, repeatable=False)


def create_subresource(
    target: Target, name: str, subresource: str, body: T, options: WriteOptions
) -> Call[T | None]:
    """POST to a subresource (an eviction, a token request, …); a Status as answer is read as None."""
    codec: Codec[T] = typed_codec(type(body))

    def decode(raw: bytes) -> T | None:
        answer = UNSTRUCTURED.decode(raw)
        # Some servers answer with a Status, some with an object.
        return None if answer.get("kind") == "Status" else codec.decode(raw)

    path = target.path(name, subresource) + options.query()
    return Call(Request("POST", path, {"Content-Type": JSON}, codec.encode(body)), decode, repeatable=False)


def update(
    target: Target, codec: Codec[T], name: str, obj: Any, options: WriteOptions, *, subresource: str = ""
) -> Call[T]:
    """PUT of an object."""
    path = target.path(name, subresource) + options.query()
    return Call(
        Request("PUT", path, {"Content-Type": JSON}, codec.encode(obj)), codec.decode, repeatable=False
    )


def patch(
    target: Target,
    codec: Codec[T],
    name: str,
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes | Any,
    kind: PatchType,
    options: WriteOptions,
    *,
    force: bool = False,
    subresource: str = "",
) -> Call[T]:
    """PATCH; ``body`` as JSON value, model, or bytes as they are."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    path = target.path(name, subresource) + options.query(force=force or None)
    request = Request("PATCH", path, {"Content-Type": kind.value}, raw)
    # An apply states the wanted fields, so that a second one changes nothing.
    return Call(request, codec.decode, repeatable=kind is PatchType.APPLY)


def delete(target: Target, codec: Codec[T], name: str, options: DeleteOptions) -> Call[T | None]:
    """DELETE of one object: gives it where it stays for now (finalizers, grace), None where it went."""

    def decode(body: bytes) -> T | None:
        answer = UNSTRUCTURED.decode(body)
        return None if answer.get("kind") == "Status" else codec.decode(body)

    request = Request("DELETE", target.path(name), {"Content-Type": JSON}, options.body())
    return Call(request, decode, repeatable=False)


def delete_collection(target: Target, selection: ListOptions, options: DeleteOptions) -> Call[None]:
    """DELETE of everything that a selection holds."""
    target.require_namespace()
    path = target.collection() + selection.query()
    return Call(
        Request("DELETE", path, {"Content-Type": JSON}, options.body()), lambda _: None, repeatable=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which part of which container's log."""

    container: str = ""
    previous: bool = False
    since_seconds: int | None = None
    tail_lines: int | None = None
    timestamps: bool = False

    def query(self, **more: bool) -> str:
        """The query string, with ``more`` parameters."""
        return query(
            container=self.container,
            previous=self.previous,
            sinceSeconds=self.since_seconds,
            tailLines=self.tail_lines,
            timestamps=self.timestamps,
            **more,
        )


def read_log(target: Target, name: str, options: LogOptions) -> Call[str]:
    """GET of a log."""
    request = Request("GET", target.path(name, "log") + options.query(), {"Accept": "*/*"})
    return Call(request, lambda body: body.decode("utf-8", "replace"), repeatable=True)


def follow_log(target: Target, name: str, options: LogOptions, silence: float | None) -> Request:
    """GET of a log that goes on."""
    path = target.path(name, "log") + options.query(follow=True)
    return Request("GET", path, {"Accept": "*/*"}, timeout=silence)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How a watch begins and ends. ``initial_events`` asks for the current state first (streaming list);
    ``timeout_seconds`` is when the server ends it, None for its own choice."""

    bookmarks: bool = True
    initial_events: bool = False
    timeout_seconds: int | None = None
    silence: float | None = field(default=None)


def watch(target: Target, selection: ListOptions, options: WatchOptions) -> Request:
    """The request of a watch; ``event`` reads its lines."""
    if options.initial_events:
        # Required by the API together with sendInitialEvents.
        selection = replace(selection, resource_version_match="NotOlderThan")
    parameters = selection.query(
        watch=True,
        allowWatchBookmarks=options.bookmarks,
        sendInitialEvents=options.initial_events or None,
        timeoutSeconds=options.timeout_seconds,
    )
    return Request("GET", target.collection() + parameters, timeout=options.silence)
