"""What an API is built on, whichever it is: the cache of an open storage, access, limits; how it is served."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from apimachinery.access.authorization import Attributes
from apimachinery.access.control import Access, AccessOptions
from apimachinery.http.browsers import BrowserRules
from apimachinery.http.governor import Governor
from apimachinery.http.messages import Request, Response, StreamResponse, UpgradeResponse
from apimachinery.http.outgoing import Outgoing
from apimachinery.http.protocol import ConnectionLimits
from apimachinery.meta.clock import MovableClock
from apimachinery.metrics import Figure, Metrics, one
from apimachinery.server.fairness.fairness import Estimate, Fairness, ServerLimits
from apimachinery.server.network.proxy_identity import ProxyIdentity
from apimachinery.server.network.services import Address, ServiceResolver
from apimachinery.server.operate.reload import Reload
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.operate.tracing import Tracing
from apimachinery.server.read.listing import JoinedBodies
from apimachinery.server.read.watch import Watches
from apimachinery.storage.compaction import PERIOD_SECONDS
from apimachinery.storage.url import PLAIN, StorageOptions
from apimachinery.storage.watch_cache import Judge, WatchCache


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve. ``port`` 0 takes a free one. ``services`` are addresses of Services (namespace and name) that count
    before those that their objects name. ``identity`` is what the server shows to those it stands in front of,
    ``judge`` what keeps stored objects from everybody that no request could have stored. ``caught_up``: who hands
    a request to the API has waited until reads see all that was acknowledged before."""

    storage: str = "memory://"
    storage_options: StorageOptions = PLAIN
    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    limits: ConnectionLimits | None = None
    in_flight: ServerLimits = field(default_factory=ServerLimits)
    fairness: bool = True
    livez_grace_seconds: float = 0.0
    shutdown_delay_seconds: float = 0.0
    shutdown_seconds: float = 10.0
    history_seconds: float = PERIOD_SECONDS
    send_retry_after: bool = False
    tracing: Tracing | None = None
    profiling: bool = True
    reloads: Sequence[Reload] = ()
    audit_policy: Path | None = None
    services: Mapping[tuple[str, str], Address] = field(default_factory=dict)
    identity: ProxyIdentity = field(default_factory=ProxyIdentity)
    judge: Judge | None = None
    caught_up: bool = False
    browsers: BrowserRules | None = None
    clock: MovableClock = field(default_factory=MovableClock)
    """The time that tokens, ages, controllers and the simulated node go by."""


class Backend:
    """``services`` finds the addresses of Services, ``outgoing`` calls them, ``governor`` bounds what clients make the
    server hold."""

    def __init__(
        self,
        cache: WatchCache,
        access: AccessOptions,
        options: ServerOptions,
        *,
        url: Callable[[], str] = lambda: "",
        estimate: Estimate = lambda attributes: 0,
    ) -> None:
        """``url`` is where the server listens, ``estimate`` how many objects a list would go through: both are called
        with the first request, when there is a socket and an API."""
        self.cache, self.storage = cache, cache.storage
        self.metrics = metrics = Metrics()
        self.governor = governor = Governor()
        self.counts = RequestMetrics(metrics)
        self.watches = Watches(governor)
        self.bodies = JoinedBodies(governor=governor)
        self.access = Access(access, cache, url)
        self.services = ServiceResolver(cache, options.services)
        self.outgoing = access.outgoing or Outgoing()
        self.identity = options.identity
        self.caught_up = options.caught_up
        seats = options.in_flight.reads + options.in_flight.writes
        self.fairness = Fairness(cache, seats, metrics, estimate) if options.fairness else None
        cache.on_reset(self.watches.cut)
        governor.ask("recent_events", lambda: cache.held)
        governor.ask("past_states", lambda: cache.superseded)
        if (rbac := self.access.rbac) is not None:
            governor.ask("access_rules", lambda: rbac.weight)
        metrics.show(self._figures())

    def _figures(self) -> list[Figure]:
        cache, watches, governor = self.cache, self.watches.budget, self.governor
        accounts = governor.accounts.values
        return [
            one("kubewright_watchers", "Open watches.", lambda: watches.watchers),
            one(
                "kubewright_watch_backlog_bytes",
                "Bytes that wait for watchers to read.",
                lambda: watches.held,
            ),
            one(
                "kubewright_watches_cut_off_total",
                "Watches ended because their clients read too slowly.",
                lambda: watches.cut_off,
                kind="counter",
            ),
            one("kubewright_joined_body_bytes", "Bytes of lists kept joined.", lambda: self.bodies.size),
            one(
                "kubewright_buffered_body_bytes",
                "Bytes of request bodies that are held.",
                lambda: governor.bodies.held,
            ),
            one("kubewright_storage_revision", "Newest revision.", lambda: cache.storage.revision),
            one(
                "kubewright_storage_trouble",
                "1 while some writes cannot be made: a full disk, a foreign lock, a failed one.",
                lambda: bool(cache.storage.trouble),
            ),
            Figure(
                "kubewright_unreadable_objects",
                "Stored objects that are not served, as they cannot be read.",
                lambda: Counter((key.split("/")[2],) for key in cache.unreadable).items(),
                ("resource",),
            ),
            Figure(
                "kubewright_held_bytes",
                "What clients make the server hold, by sort.",
                lambda: [((name,), held) for name, held in governor.held().items()],
                ("sort",),
            ),
            Figure(
                "kubewright_held_limit_bytes",
                "The most that it may hold of a sort, and of all together.",
                lambda: [*(((each.name,), each.limit) for each in accounts()), (("",), governor.total)],
                ("sort",),
            ),
            Figure(
                "kubewright_crowded_total",
                "How often there was no room, by sort.",
                lambda: [((each.name,), each.refused) for each in accounts()],
                ("sort",),
                kind="counter",
            ),
        ]


class ServedApi(Protocol):
    """An API over a backend: a part of the server that answers requests."""

    async def handle(self, request: Request) -> Response | StreamResponse | UpgradeResponse:
        """Answers an authenticated request. Raises ApiError."""

    def takes_upgrade(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, may change to another protocol than websockets."""

    def decoded(self, media_type: str, body: bytes) -> Any:
        """What an answer says, None where it is no object."""

    def objects(self, attributes: Attributes) -> int:
        """How many objects a list would go through."""

    async def start(self) -> None:
        """Prepares what must exist before the first request (the default namespaces), starts controllers."""

    async def stop(self) -> None:
        """Stops controllers."""


BuildApi = Callable[[Backend], ServedApi]
