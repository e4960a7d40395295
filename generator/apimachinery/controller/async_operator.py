"""Runs controllers as one program: caches first, then leadership, then work; and the same backwards at the end.

``operator``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.reflector import ReflectorOptions
from apimachinery.controller.async_caches import AsyncSharedInformers
from apimachinery.controller.async_context import AsyncRuntime
from apimachinery.controller.async_controller import AsyncController
from apimachinery.controller.async_election import AsyncElection, AsyncElector, LostLeadership
from apimachinery.controller.probes import Probes
from apimachinery.controller.written import WrittenObjects
from apimachinery.meta.resources import Resource
from apimachinery.queue.async_running import AsyncFlag, AsyncRunningGroup, async_on_signals
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import GuardedObserver, Observer

_log = logging.getLogger("kubewright.controller")
_log.addHandler(logging.NullHandler())  # programs say where logs go


class AsyncOperator:
    """Controllers that share a client and caches. ``run`` it, or use it in an ``async with`` block (for tests); once.

    ``namespace`` empty: all namespaces. ``election``: work only while this copy holds a lease. ``probes_port``: where
    ``/healthz``, ``/readyz`` and, with ``metrics`` (``PrometheusObserver.exposition``), ``/metrics`` are served.
    ``grace_seconds``: how long work under way may take at the end. ``clusters``: clients of other clusters by name, for
    ``Cached(…, cluster=name)`` and ``context.cluster(name)``.

    When the lease is lost, work stops in either form: nothing more is begun, writes through ``context.client`` raise
    ``LostLeadership``, and so do ``run`` and the end of the block. Tasks under way are cancelled; threads cannot be,
    so a long reconcile function asks ``context.leading``.
    """

    def __init__(
        self,
        client: AsyncClient,
        controllers: Sequence[AsyncController[Any]],
        *,
        namespace: str = "",
        election: AsyncElection | None = None,
        observer: Observer | None = None,
        metrics: Callable[[], bytes] | None = None,
        probes_port: int | None = None,
        grace_seconds: float = 30.0,
        sync_seconds: float = 120.0,
        options: ReflectorOptions | None = None,
        clock: Clock = SYSTEM_CLOCK,
        clusters: Mapping[str, AsyncClient] | None = None,
    ) -> None:
        clients = {"": client, **(clusters or {})}
        written = {name: WrittenObjects() for name in clients}
        self.observer = GuardedObserver(observer if observer is not None else Observer())
        self.informers = AsyncSharedInformers(
            client,
            namespace=namespace,
            options=options,
            on_error=self._mirror_failed,
            clusters=clusters,
            written=written,
        )
        self.elector = (
            None if election is None else AsyncElector(client, election, clock=clock, observer=self.observer)
        )
        noting = {name: each._noting(written[name].note) for name, each in clients.items()}
        shared: dict[str, Any] = {"observer": self.observer, "clock": clock}
        free = AsyncRuntime(noting, self.informers, **shared)
        self.runtime = free
        if self.elector is not None:
            fenced = {name: each._fenced(self.elector.fence) for name, each in noting.items()}
            self.runtime = AsyncRuntime(fenced, self.informers, leading=lambda: self.leading, **shared)
        self.controllers = tuple(
            controller.attached(self.runtime if controller.needs_lease else free)
            for controller in controllers
        )
        self.working = AsyncFlag()
        self._stopping = AsyncFlag()
        self._released = AsyncFlag()
        self._started = False
        self._lost = False
        self._grace = grace_seconds
        self._sync_seconds = sync_seconds
        self._group = AsyncRunningGroup()
        self._failure: Exception | None = None
        checks = {"/healthz": self._death, "/livez": self._death, "/readyz": self._trouble}
        self.probes = (
            None
            if probes_port is None
            else Probes(probes_port, checks=checks, metrics=metrics, remarks=lambda: self.observer.trouble)
        )

    @property
    def leading(self) -> bool:
        """Whether this copy may work: it holds its lease, or needs none."""
        return self.elector is None or self.elector.is_leader

    async def run(self, *, signals: bool = True) -> None:
        """Works until SIGTERM, SIGINT or ``stop``. Raises ``LostLeadership``, and ``TimeoutError`` where the caches
        have no first state in ``sync_seconds``."""
        undo = async_on_signals(self.stop) if signals else None
        try:
            self.start()
            await self._stopping.wait()
        finally:
            await self.close()
            if undo is not None:
                undo()
        self._raise_failure()

    def start(self) -> None:
        """Begins in the background; ``working`` is set when objects are worked on. Raises ``RuntimeError`` for an
        operator that was started before: its controllers can be given to another."""
        if self._started:
            raise RuntimeError("an operator runs once: make another one of the same controllers")
        self._started = True
        if self.probes is not None:
            self.probes.start()
        self.informers.start()
        self._group.spawn("operator", self._begin)

    def stop(self) -> None:
        """Lets ``run`` end; from any thread."""
        self._stopping.set()

    async def close(self) -> None:
        """Ends everything in order: work, leadership, caches, probes."""
        self._stopping.set()
        ended = True
        for controller in self.controllers:
            if not await controller.stop(self._patience()):
                _log.warning("%s did not end in time", controller.name)
                ended = False
        self._released.set()
        await self._group.join(self._patience())
        if self.elector is not None:
            if ended:  # else the lease runs out by itself, when what is under way cannot write any more
                await self.elector.release()
            await self.elector.close()
        await self.informers.stop()
        if self.probes is not None:
            self.probes.stop()

    def _patience(self) -> float:
        """How long the end waits for what is under way: after a loss, until another copy may lead."""
        if not self._lost or self.elector is None:
            return self._grace
        election = self.elector.election
        return min(self._grace, election.lease_seconds - election.renew_seconds)

    async def wait_until_idle(self, seconds: float = 10.0, *, delayed: bool = True) -> bool:
        """For tests: waits until no controller has anything to do; whether that came in time. An operator that does
        nothing may have something to do a moment later, when its caches have seen it."""
        in_time = True
        for controller in self.controllers:
            in_time &= await controller.queue.wait_until_idle(seconds, delayed=delayed)
        return in_time

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if error is None:
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._lost:
            raise LostLeadership("another copy may lead by now")

    async def _begin(self) -> None:
        try:
            await self._lead()
        except Exception as error:  # raised by ``run``
            if not self._stopping.is_set:
                self._failure = error
                _log.error("not started: %s", error)
            self._stopping.set()

    async def _lead(self) -> None:
        await self._sync()
        self._start([controller for controller in self.controllers if not controller.needs_lease])
        if self.elector is not None:
            if not await self.elector.acquire(self._stopping):
                return
            self._group.spawn("election", self.elector.hold, self._released, self._lose)
        if not self._stopping.is_set:
            self._start([controller for controller in self.controllers if controller.needs_lease])
            self.working.set()

    def _start(self, controllers: Sequence[AsyncController[Any]]) -> None:
        for controller in controllers:
            controller.start()

    async def _sync(self) -> None:
        waited = 0.0
        while True:
            try:
                await self.informers.wait_until_synced(0.5)
                return
            except TimeoutError:
                waited += 0.5
                if self._stopping.is_set or waited >= self._sync_seconds:
                    raise

    def _lose(self) -> None:
        _log.error("leadership is lost; stopping")
        self._lost = True
        for controller in self.controllers:
            controller.abandon()
        self._stopping.set()

    def _death(self) -> str:
        """What a restart would cure: workers that have ended while there is work."""
        if self._lost:
            return "leadership is lost"
        if self._stopping.is_set or not self.working.is_set:
            return ""
        return "; ".join(f"{name} has ended" for each in self.controllers for name in each.ended)

    def _trouble(self) -> str:
        if self.elector is not None and not self.elector.is_leader:
            return "; ".join(self.informers.troubles)  # a copy that waits for the lease is ready to take it
        if not self.working.is_set:
            return "not started"
        return "; ".join(self.informers.troubles)

    def _mirror_failed(self, resource: Resource, error: Exception) -> None:
        self.observer.mirror_failed(resource.plural, error)
