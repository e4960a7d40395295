"""What passes between HTTP and the API: ``Request`` in, ``Response`` or ``StreamResponse`` out.

``protocol`` has read and bounded a request before a handler sees it, ``app`` has authenticated it; ``protocol`` times,
compresses and sends what the handler returns. A handler never touches a socket; a failure it raises is an
``ApiError``.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from apimachinery.http.governor import (
    SMALL_BYTES,
    Governor,
    Holding,
    weight_of,
)
from apimachinery.http.queries import parse_query, values_of
from apimachinery.http.workers import weigh

LARGE_BYTES = 32 << 10
"""Above this a body, or an object that is read for a change, takes some milliseconds to work on..."""
QUICK_BYTES = 8 << 10
"""...and below this nothing does, not even YAML."""
SPARSE_BYTES, SPARSE_WEIGHT = 64 << 10, 384 << 10
"""An object of so many bytes takes no longer if its values are few (``weight_of``): they cost, not the length of text.
The way to another thread and back costs a quiet user more than such work costs others, where somebody asks for much."""

COPIES = 2
"""As which an object is there while it is changed: as it came or was, and as it is to be."""

Handler = Callable[["Request"], Awaitable["Response | StreamResponse | UpgradeResponse"]]


def is_large(data: bytes) -> bool:
    """Whether an object in these bytes, as it was sent or is stored, takes some milliseconds to work on."""
    size = len(data)
    return size > LARGE_BYTES and (size > SPARSE_BYTES or weight_of(data) > SPARSE_WEIGHT)


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def info(self) -> dict[str, Any]:
        """The user as a ``UserInfo`` of authentication.k8s.io/v1: what is empty is left out, ``extra`` is sorted."""
        info: dict[str, Any] = {"username": self.name} if self.name else {}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            # In the order of their keys, as Go writes maps.
            info["extra"] = {key: list(values) for key, values in sorted(self.extra)}
        return info


class Counts(Protocol):
    """What requests of one sort are counted under."""

    labels: tuple[str, ...]
    long_running: Any

    def answered(self, code: int, seconds: float, size: int, body: int, dry_run: str) -> None:
        """Counts one answer."""


class Trail(Protocol):
    """The audit of a request: what is noted of it on its way."""

    wants_objects: bool
    constraint: str
    """By which right somebody acts as another."""

    def note_object(self, encoded: bytes) -> None:
        """Keeps the object that the client sent, as JSON."""

    def note_name(self, name: str) -> None:
        """Keeps the name of a created object, which the path lacks."""


class Request(msgspec.Struct):
    """A request whose body has been read.

    ``path`` is percent-decoded; ``query_string`` is as it came. ``headers`` have lower-case names; values of
    a repeated header are joined by ``", "``. ``user`` is None until somebody is authenticated, and
    ``impersonator`` unless he acts as another. ``repeated`` has the single values of repeated headers, ``peer`` the
    client's certificate and those up to an authority (DER), verified by TLS. ``warnings`` collects texts for the
    Warning headers of the answer, failures included, ``annotations`` what admission has to say in the audit event.

    ``uri`` is the target as it came, ``source`` the client's address. ``stamp`` are header lines, ready to send, that
    the answer has whatever becomes of the request. ``asked`` is kept by whoever reads method and path, ``counted`` says
    under what the request is counted, ``trail`` is its audit, where there is one. ``done`` is called when the answer
    was sent, or could not be; ``began`` is when the request was whole (``perf_counter``). ``governor`` counts what
    working on it takes.
    """

    method: str
    path: str
    query_string: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    user: User | None = None
    repeated: Mapping[str, Sequence[str]] | None = None
    peer: tuple[bytes, ...] = ()
    impersonator: User | None = None
    warnings: list[str] = msgspec.field(default_factory=list)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    uri: bytes = b""
    source: str = ""
    stamp: bytes = b""
    counted: Counts | None = None
    trail: Trail | None = None
    asked: Any = None
    done: Callable[[], None] | None = None
    began: float = 0.0
    governor: Governor | None = None
    holding: Holding | None = None
    _query: dict[str, list[str]] | None = None

    @property
    def audit_id(self) -> str:
        """The id of the request in answers, audit events and the log; empty before the server has given it one."""
        return self.stamp.partition(b"\r\n")[0].partition(b": ")[2].decode("latin-1")

    @property
    def large(self) -> bool:
        """Whether the body, the query or the forms wanted are long enough to be worked on apart from the loop."""
        return (
            (len(self.body) > QUICK_BYTES and self._has_large_body())
            or self.has_long_query
            or len(self.headers.get("accept", "")) > LARGE_BYTES >> 4
        )

    def _has_large_body(self) -> bool:
        kind = self.headers.get("content-type", "")
        if "yaml" in kind:
            return True
        # Of a binary form the bytes say nothing about the values.
        return is_large(self.body) if "json" in kind else len(self.body) > LARGE_BYTES

    def hold(
        self, data: bytes, *, binary: bool = False, memo: MutableMapping[Hashable, Any] | None = None
    ) -> None:
        """Counts what an object takes that is read from ``data``, and its copies, for as long as there is the request;
        the request's work is weighed by it. What was counted is kept in ``memo``. Raises Crowded."""
        if self.governor is None or len(data) < SMALL_BYTES:
            return
        weigh(len(data))
        if self.holding is None:
            self.holding = Holding(self.governor.work, self.user.name if self.user is not None else "")
        weight = None if memo is None else memo.get("weight")
        if weight is None:
            weight = weight_of(data, binary=binary)
            if memo is not None:
                memo["weight"] = weight
        self.holding.grow(COPIES * weight)

    @property
    def query(self) -> dict[str, list[str]]:
        """The query's values by name, in order; parsed once."""
        if self._query is None:
            self._query = parse_query(self.query_string) if self.query_string else {}
        return self._query

    def values(self, header: str) -> Sequence[str]:
        """The values of a header, one a field line."""
        if self.repeated and header in self.repeated:
            return self.repeated[header]
        value = self.headers.get(header)
        return () if value is None else (value,)

    @property
    def has_long_query(self) -> bool:
        """Whether the query takes some milliseconds to parse."""
        return len(self.query_string) > LARGE_BYTES >> 4

    def first(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def sought(self, name: str) -> Iterator[str]:
        """The values of one query parameter, searched for without parsing the others: for what has to be known of a
        request before it is authorized."""
        return values_of(self.query_string, name)

    def sought_first(self, name: str, most: int | None = None) -> str | None:
        """The first of them, empty where it has more than ``most`` characters; None where there is none."""
        return next(values_of(self.query_string, name, most), None) if self.query_string else None


class Response(msgspec.Struct):
    """A whole answer. ``body`` in several parts is sent without being joined. ``holding`` is what of it is counted
    already.

    ``headers`` do not include Content-Type, Content-Length, Content-Encoding, Vary and Date, which ``protocol`` sets.
    """

    status: int
    body: bytes | tuple[bytes, ...] = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    holding: Holding | None = None


@dataclass(slots=True)
class StreamResponse:
    """An answer that comes in parts: each item of ``parts`` is sent at once.

    The iterator is closed (``aclose``) when the client goes or the server ends; by returning it ends
    the answer.
    """

    status: int
    parts: AsyncIterator[bytes]
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class BrokenOff(Exception):
    """Raised by the parts of a StreamResponse that cannot go on: the connection ends before the answer is whole."""


class Tunnel(Protocol):
    """A connection that speaks another protocol from now on."""

    async def read(self, size: int = ...) -> bytes:
        """What came, at most so much; empty at the end."""

    def write(self, data: bytes) -> None:
        """Sends bytes."""

    async def drain(self) -> None:
        """Waits until the client takes more. Raises Crowded, which whoever handed over expects."""

    def hold(self, size: int) -> None:
        """Counts what is kept of what was read, until the tunnel ends. Raises Crowded."""


@dataclass(slots=True)
class UpgradeResponse:
    """An answer that takes the connection: ``run`` writes the handshake's answer itself and goes on from there; when
    it returns the connection is closed."""

    run: Callable[[Tunnel], Awaitable[None]]
    status: int = 101
    headers: tuple[tuple[str, str], ...] = ()
