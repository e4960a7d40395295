"""A running server: storage, cache, API, socket, and their orderly start and end.

``table`` has its parts in the order of their start: the storage is opened and read, the API prepares, the socket
listens, then the server is ready. ``stop`` says "not ready", goes on answering for the shutdown delay so that load
balancers notice, then stops the parts in reverse.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cached_property, partial

from apimachinery.access.control import Access, AccessOptions
from apimachinery.http.governor import trim
from apimachinery.http.handshakes import BACKLOG, Listening, TlsListener
from apimachinery.http.outgoing import Outgoing
from apimachinery.http.protocol import Application, Connections
from apimachinery.http.tls import log_broken_tls
from apimachinery.http.workers import end_costly
from apimachinery.meta import clock
from apimachinery.metrics import Metrics
from apimachinery.server.app import App
from apimachinery.server.assembly.parts import Assembly, Background, Ends, Make, ServerPart
from apimachinery.server.backend import Backend, BuildApi, ServedApi, ServerOptions
from apimachinery.server.operate.audit.audit import Audit, Decode, audit_counts
from apimachinery.server.operate.audit.policy import read_policy
from apimachinery.server.operate.debug import Debug
from apimachinery.server.operate.health import Check, Health
from apimachinery.server.operate.loop_lag import LoopLag
from apimachinery.server.operate.process_metrics import add_process_metrics
from apimachinery.server.operate.reload import Reload, Reloads
from apimachinery.storage.compaction import compact_for_ever
from apimachinery.storage.interface import Storage
from apimachinery.storage.url import open_storage
from apimachinery.storage.watch_cache import WatchCache

SWEPT_SECONDS, SWEPT_TURNS = 0.25, 4
PRIORITY_LEVELS = "/debug/api_priority_and_fairness/dump_priority_levels"
log = logging.getLogger("kubewright.server")
MakeAudit = Callable[[Metrics, Outgoing, Decode], Audit]


class Server:
    """One server. ``start`` it on the event loop that is to run it, and ``stop`` it there; ``url`` says where it is."""

    def __init__(
        self,
        options: ServerOptions,
        access: AccessOptions,
        build: BuildApi,
        make_audit: MakeAudit | None = None,
    ) -> None:
        """``access`` says who may in, ``build`` makes the API, ``make_audit`` the audit, None for none."""
        self.port = options.port
        self.health = Health(options.livez_grace_seconds)
        self._options, self._access = options, access
        self._build, self._make_audit = build, make_audit
        self._cache: WatchCache | None = None
        self._listener: asyncio.Server | Listening | None = None
        self._assembly = Assembly(self.table())

    async def start(self) -> None:
        """Serves when it returns. Raises what the storage and the socket raise, with nothing left open."""
        await self._assembly.start()
        self.health.started = True
        log.info("serving", extra={"url": self.url, "storage": self._options.storage})

    async def stop(self) -> None:
        """Ends in order; harmless when repeated."""
        if self.health.ending:
            return
        self.health.ending = True
        await asyncio.sleep(self._options.shutdown_delay_seconds)
        await self._assembly.stop()
        log.info("ended")

    def table(self) -> list[Make]:
        """What starts with the server, in order."""
        options = self._options
        return [
            lambda: Ends(self._enter_clock),
            self._end_tracing,
            lambda: Ends(self._open_storage, self._close_storage),
            lambda: Ends(stop=self.backend.outgoing.close),
            self._keep_audit,
            lambda: self._api,
            lambda: Background(partial(_sweep, self._connections)),
            lambda: Background(LoopLag(self.backend.metrics).measure),
            lambda: Background(Reloads(self._reloads(), self.backend.metrics).follow),
            lambda: Ends(self._listen, self._end_serving),
            lambda: Background(partial(compact_for_ever, self.backend.storage, options.history_seconds)),
        ]

    @property
    def url(self) -> str:
        """Where it can be reached."""
        host = self._options.host
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{'https' if self._options.tls else 'http'}://{host}:{self.port}"

    async def _enter_clock(self) -> None:
        clock.enter(self._options.clock)

    async def _open_storage(self) -> None:
        storage = await self._make_storage()
        try:
            self._cache = await WatchCache.open(storage, self._options.judge)
        except BaseException:
            await storage.close()
            raise

    async def _make_storage(self) -> Storage:
        return await open_storage(self._options.storage, self._options.storage_options)

    async def _close_storage(self) -> None:
        await self.backend.storage.close()

    @cached_property
    def backend(self) -> Backend:
        """What the API is built on; there once the storage is open."""
        assert self._cache is not None, "the storage is not open yet"
        storage = self._cache.storage
        self.health.add(Check("etcd", lambda: not storage.failed))
        self.health.add_ready(Check("storage", lambda: not storage.trouble, reason=lambda: storage.trouble))
        backend = Backend(
            self._cache,
            self._access,
            self._options,
            url=lambda: self.url,
            estimate=lambda attributes: self._api.objects(attributes),
        )
        add_process_metrics(backend.metrics)
        return backend

    @property
    def access(self) -> Access:
        """Who may what; there once the storage is open."""
        return self.backend.access

    @cached_property
    def _audit(self) -> Audit | None:
        metrics = self.backend.metrics
        if self._make_audit is None:
            audit_counts(metrics)
            return None
        return self._make_audit(metrics, self.backend.outgoing, lambda *body: self._api.decoded(*body))

    def _keep_audit(self) -> ServerPart | None:
        return None if self._audit is None else Ends(self._audit.start, self._audit.close)

    def _end_tracing(self) -> ServerPart | None:
        tracing = self._options.tracing
        return None if tracing is None else Ends(stop=partial(asyncio.to_thread, tracing.stop))

    def _reloads(self) -> list[Reload]:
        """What is read again while the server runs."""
        audit, path = self._audit, self._options.audit_policy
        if audit is None or path is None:
            return [*self._options.reloads]
        return [
            *self._options.reloads,
            Reload("audit policy", (path,), lambda: audit.take(read_policy(path))),
        ]

    @cached_property
    def _api(self) -> ServedApi:
        return self._build(self.backend)

    @cached_property
    def _app(self) -> App:
        backend, options, fairness = self.backend, self._options, self.backend.fairness
        pages = {} if fairness is None else {PRIORITY_LEVELS: fairness.dump}
        return App(
            self._api.handle,
            backend.access,
            self.health,
            backend.metrics,
            backend.counts,
            limits=options.in_flight,
            audit=self._audit,
            takes_upgrade=self._api.takes_upgrade,
            fairness=fairness,
            tracing=options.tracing,
            debug=Debug(pages) if options.profiling else None,
            browsers=options.browsers,
            all_metrics=self._all_metrics,
        )

    @property
    def _application(self) -> Application:
        return self._app

    async def _all_metrics(self, own: str) -> str:
        """The page of metrics, of which this process has ``own``."""
        return own

    @cached_property
    def _connections(self) -> Connections:
        return Connections(self._application, self._options.limits, self.backend.governor)

    async def _listen(self) -> None:
        log_broken_tls(asyncio.get_running_loop())
        connections, options = self._connections, self._options
        if options.tls is not None:
            self._listener = await TlsListener.on(connections, options.tls, options.host, options.port)
        else:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(
                connections, options.host, options.port, backlog=BACKLOG
            )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _end_serving(self) -> None:
        """Ends watches, and connections when what is under way on them has its answer."""
        assert self._listener is not None
        connections, watches, seconds = (
            self._connections,
            self.backend.watches,
            self._options.shutdown_seconds,
        )
        if self._options.send_retry_after:
            # Who comes now is sent to another server, on a connection that then ends, until nothing is under way.
            self._app.ending = True
            watches.end()
            await connections.quiet(seconds)
        self._listener.close()
        watches.end()
        await connections.end(seconds)
        await self._listener.wait_closed()


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
