"""A running server: storage, cache, API, socket, and their orderly start and end.

Start: open the storage, read its state, let the API prepare, listen, then be ready. End (``stop``): say "not
ready", go on answering for the shutdown delay so that load balancers notice, stop accepting, end the watches,
let requests under way finish, stop the controllers, close the storage.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from apimachinery.access.authorization import Attributes
from apimachinery.access.control import Access, AccessOptions
from apimachinery.http.governor import Governor, trim
from apimachinery.http.handshakes import BACKLOG, TlsListener
from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.outgoing import Outgoing
from apimachinery.http.protocol import ConnectionLimits, Connections
from apimachinery.http.workers import end_costly
from apimachinery.metrics import Metrics
from apimachinery.server.aggregation.identity import ProxyIdentity
from apimachinery.server.app import App, Limits
from apimachinery.server.fairness.fairness import Fairness
from apimachinery.server.network.services import Address, ServiceResolver
from apimachinery.server.operate.audit.audit import Audit, Decode, audit_counts
from apimachinery.server.operate.audit.policy import read_policy
from apimachinery.server.operate.debug import Debug
from apimachinery.server.operate.health import Check, Health
from apimachinery.server.operate.loop_lag import LoopLag
from apimachinery.server.operate.process_metrics import add_process_metrics
from apimachinery.server.operate.reload import Reload, Reloads
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.operate.tracing import Tracing
from apimachinery.server.read.listing import JoinedBodies
from apimachinery.server.read.watch import Watches
from apimachinery.storage.compaction import PERIOD_SECONDS, compact_for_ever
from apimachinery.storage.interface import Storage
from apimachinery.storage.url import PLAIN, StorageOptions, open_storage
from apimachinery.storage.watch_cache import Judge, WatchCache

log = logging.getLogger("kubewright.server")

SWEPT_SECONDS, SWEPT_TURNS = 0.25, 4


@dataclass(frozen=True, slots=True)
class Backend:
    """What the API stands on. ``services`` finds the addresses of Services, ``outgoing`` calls them."""

    storage: Storage
    cache: WatchCache
    access: Access
    watches: Watches
    bodies: JoinedBodies
    health: Health
    metrics: Metrics
    counts: RequestMetrics
    services: ServiceResolver
    outgoing: Outgoing = field(default_factory=Outgoing)
    identity: ProxyIdentity = field(default_factory=ProxyIdentity)
    fairness: Fairness | None = None
    governor: Governor = field(default_factory=Governor)


class Api(Protocol):
    """The API: handlers, and the controllers that run next to them."""

    async def handle(self, request: Request) -> Response | StreamResponse | UpgradeResponse:
        """Answers an authenticated request. Raises ApiError."""

    def decoded(self, media_type: str, body: bytes) -> Any:
        """What an answer says, None where it is no object."""

    def objects(self, attributes: Attributes) -> int:
        """How many objects a list would go through."""

    def takes_upgrade(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, may change to another protocol than websockets."""

    async def start(self) -> None:
        """Prepares what must exist before the first request (the default namespaces), starts controllers."""

    async def stop(self) -> None:
        """Stops controllers."""


BuildApi = Callable[[Backend], Api]
MakeAudit = Callable[[Metrics, Outgoing, Decode], Audit]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve. ``port`` 0 takes a free one. ``services`` are addresses of Services (namespace and name) that count
    before those that their objects name. ``identity`` is what the server shows to those it stands in front of,
    ``judge`` what keeps stored objects from everybody that no request could have stored."""

    storage: str = "memory://"
    storage_options: StorageOptions = PLAIN
    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    limits: ConnectionLimits | None = None
    in_flight: Limits | None = None
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


class Server:
    """One server. ``start`` it on the event loop that is to run it, and ``stop`` it there."""

    def __init__(
        self,
        options: ServerOptions,
        access: AccessOptions,
        build: BuildApi,
        make_audit: MakeAudit | None = None,
    ) -> None:
        self._make_audit = make_audit
        self._options = options
        self._access = access
        self._build = build
        self._stops: list[Callable[[], Awaitable[None]]] = []
        self._ended = False
        self.health = Health(options.livez_grace_seconds)
        self.port = options.port
        self.access: Access | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = self._options.host
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{'https' if self._options.tls else 'http'}://{host}:{self.port}"

    async def start(self) -> None:
        """Serves when it returns. Raises what the storage and the socket raise, with nothing left open."""
        try:
            await self._start()
        except BaseException:
            await self._unwind()
            raise

    async def _start(self) -> None:
        options = self._options
        storage = await open_storage(options.storage, options.storage_options)
        self._stops.append(storage.close)
        cache = await WatchCache.open(storage, options.judge)
        governor = Governor()
        watches, metrics = Watches(governor), Metrics()
        cache.on_reset(watches.cut)
        counts = RequestMetrics(metrics)
        bodies = JoinedBodies(governor=governor)
        governor.ask("recent_events", lambda: cache.held)
        governor.ask("past_states", lambda: cache.superseded)
        access = self.access = Access(self._access, cache, lambda: self.url)
        if (rbac := access.rbac) is not None:
            governor.ask("access_rules", lambda: rbac.weight)
        services = ServiceResolver(cache, options.services)
        outgoing = self._access.outgoing or Outgoing()
        in_flight = options.in_flight or Limits()
        fairness = None
        if options.fairness:
            seats = in_flight.reads + in_flight.writes
            fairness = Fairness(cache, seats, metrics, lambda attributes: api.objects(attributes))
        backend = Backend(
            storage,
            cache,
            access,
            watches,
            bodies,
            self.health,
            metrics,
            counts,
            services,
            outgoing,
            options.identity,
            fairness,
            governor,
        )
        self._stops.append(outgoing.close)
        audit = None
        if self._make_audit is not None:
            audit = self._make_audit(
                metrics, outgoing, lambda media_type, body: api.decoded(media_type, body)
            )
        if audit is not None:
            self._stops.append(audit.close)
            audit.start()
        else:
            audit_counts(metrics)
        api = self._build(backend)
        self._stops.append(api.stop)
        self.health.add(Check("etcd", lambda: not storage.failed))
        self.health.add_ready(Check("storage", lambda: not storage.trouble, reason=lambda: storage.trouble))
        metrics.gauge("kubewright_watchers", "Open watches.", lambda: watches.budget.watchers)
        metrics.gauge(
            "kubewright_watch_backlog_bytes",
            "Bytes that wait for watchers to read.",
            lambda: watches.budget.held,
        )
        metrics.gauge(
            "kubewright_watches_cut_off_total",
            "Watches ended because their clients read too slowly.",
            lambda: watches.budget.cut_off,
            kind="counter",
        )
        metrics.gauge("kubewright_joined_body_bytes", "Bytes of lists kept joined.", lambda: bodies.size)
        lag = LoopLag(metrics)
        add_process_metrics(metrics)
        _count_stored(metrics, cache)
        await api.start()
        pages: dict[str, Callable[[], str]] = {}
        if fairness is not None:
            pages["/debug/api_priority_and_fairness/dump_priority_levels"] = fairness.dump
        app = App(
            api.handle,
            access,
            self.health,
            metrics,
            counts,
            limits=in_flight,
            audit=audit,
            takes_upgrade=api.takes_upgrade,
            fairness=fairness,
            tracing=options.tracing,
            debug=Debug(pages) if options.profiling else None,
        )
        connections = Connections(app, options.limits, governor)
        listener: asyncio.Server | TlsListener
        if options.tls is not None:
            listener = await TlsListener.on(connections, options.tls, options.host, options.port)
        else:
            listener = await asyncio.get_running_loop().create_server(
                connections, options.host, options.port, backlog=BACKLOG
            )
        self.port = listener.sockets[0].getsockname()[1]
        compaction = asyncio.create_task(compact_for_ever(storage, options.history_seconds))
        metrics.gauge(
            "kubewright_buffered_body_bytes",
            "Bytes of request bodies that are held.",
            lambda: governor.bodies.held,
        )
        metrics.asked(
            "kubewright_held_bytes",
            "What clients make the server hold, by sort.",
            ("sort",),
            lambda: [((name,), held) for name, held in governor.held().items()],
        )
        metrics.asked(
            "kubewright_held_limit_bytes",
            "The most that it may hold of a sort, and of all together.",
            ("sort",),
            lambda: [
                *[((account.name,), account.limit) for account in governor.accounts.values()],
                (("",), governor.total),
            ],
        )
        metrics.asked(
            "kubewright_crowded_total",
            "How often there was no room, by sort.",
            ("sort",),
            lambda: [((account.name,), account.refused) for account in governor.accounts.values()],
            kind="counter",
        )
        sweeping = asyncio.create_task(_sweep(connections))
        measuring = asyncio.create_task(lag.measure())
        following = asyncio.create_task(Reloads(self._reloads(audit), metrics).follow())

        async def end_serving() -> None:
            compaction.cancel()
            await asyncio.gather(compaction, return_exceptions=True)
            if options.send_retry_after:
                # Who comes now is sent to another server, on a connection that then ends, until nothing is under way.
                app.ending = True
                watches.end()
                await connections.quiet(options.shutdown_seconds)
            listener.close()
            watches.end()
            await connections.end(options.shutdown_seconds)
            sweeping.cancel()
            measuring.cancel()
            following.cancel()
            await asyncio.gather(sweeping, measuring, following, return_exceptions=True)
            await listener.wait_closed()

        self._stops.append(end_serving)
        self.health.started = True
        log.info("serving", extra={"url": self.url, "storage": options.storage})

    def _reloads(self, audit: Audit | None) -> list[Reload]:
        """What is read again while the server runs."""
        reloads = [*self._options.reloads]
        if audit is not None and (path := self._options.audit_policy) is not None:
            reloads.append(Reload("audit policy", (path,), lambda: audit.take(read_policy(path))))
        return reloads

    async def stop(self) -> None:
        """Ends in order; harmless when repeated."""
        if self._ended:
            return
        self._ended = True
        self.health.ending = True
        if self._options.shutdown_delay_seconds:
            await asyncio.sleep(self._options.shutdown_delay_seconds)
        await self._unwind()
        if self._options.tracing is not None:
            await asyncio.to_thread(self._options.tracing.stop)
        log.info("ended")

    async def _unwind(self) -> None:
        while self._stops:
            try:
                await self._stops.pop()()
            except Exception:
                log.exception("a part did not end cleanly")


async def _sweep(connections: Connections) -> None:
    turn = 0
    while True:
        await asyncio.sleep(SWEPT_SECONDS)
        end_costly()
        turn += 1
        if turn % SWEPT_TURNS:
            continue
        connections.sweep()
        if connections.governor.should_trim():
            await asyncio.to_thread(trim)


def _count_stored(metrics: Metrics, cache: WatchCache) -> None:
    """What is said of the storage in metrics."""
    metrics.gauge(
        "kubewright_storage_trouble",
        "1 while some writes cannot be made: a full disk, a foreign lock, a failed one.",
        lambda: bool(cache.storage.trouble),
    )
    metrics.asked(
        "kubewright_unreadable_objects",
        "Stored objects that are not served, as they cannot be read.",
        ("resource",),
        lambda: list(Counter((key.split("/")[2],) for key in cache.unreadable).items()),
    )
    metrics.gauge("kubewright_storage_revision", "Newest revision.", lambda: cache.storage.revision)
