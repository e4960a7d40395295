"""Leader election on a Lease (coordination.k8s.io/v1), awaited: of several copies of a program one works.

Theory (client-go's leaderelection). The lease names a holder and how long it holds. Everybody looks at it again and
again; who has seen it unchanged for a whole lease takes it, by a write that only succeeds on the version it read. No
clock is compared with another machine's: a candidate measures with its own since when the lease looks as it does. The
holder rewrites it well before it ends, and stops working when it could not do so in ``renew_seconds``, which is
shorter than the lease: so two never lead, as long as clocks run at about the same speed.

Made of ``async_election`` by ``make golden``: edit that one.
"""

from __future__ import annotations

import logging
import random
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from apimachinery.client.config import ConfigError
from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError, NotFound, TransportError
from apimachinery.client.resource import DynamicResource
from apimachinery.meta.resources import Resource
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Observer
from apimachinery.queue.running import Flag

LEASES = Resource(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    singular="lease",
    namespaced=True,
    verbs=(),
)

_log = logging.getLogger("kubewright.controller")


class LostLeadership(Exception):
    """The lease could not be renewed in time: another copy may lead by now. Let the process end."""


def identity() -> str:
    """Who this copy is: its host and a random part."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Which lease is held, by whom, and how long; seconds as client-go's defaults. ``release``: give the lease back
    at the end, so that the next leader need not wait."""

    name: str
    namespace: str = ""
    identity: str = field(default_factory=identity)
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0
    release: bool = True

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError("an election needs lease_seconds > renew_seconds > retry_seconds > 0")


class Elector:
    """A candidate: ``acquire``, then ``hold`` while working, then ``release``."""

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observer: Observer | None = None,
    ) -> None:
        self.election = election
        self.is_leader = False
        self._api = DynamicResource(client, LEASES)
        self._namespace = election.namespace or client.config.namespace
        self._clock = clock
        self._observer = observer if observer is not None else Observer()
        self._seen: dict[str, Any] | None = None
        self._seen_at = 0.0

    def acquire(self, stopping: Flag) -> bool:
        """Waits until this copy leads, or ``stopping``; whether it does."""
        while not stopping.is_set:
            if self._try():
                self._set(True)
                return True
            stopping.wait(self._clock.real(self.election.retry_seconds * random.uniform(1.0, 1.2)))
        return False

    def hold(self, stopping: Flag, lost: Callable[[], None]) -> None:
        """Renews until ``stopping``; calls ``lost`` and ends where that fails for too long."""
        renewed = self._clock.now()
        while not stopping.is_set:
            stopping.wait(self._clock.real(self.election.retry_seconds))
            if stopping.is_set:
                return
            before = self._clock.now()
            if self._try():
                renewed = before
            elif self._clock.now() - renewed > self.election.renew_seconds or self._is_others():
                self._set(False)
                lost()
                return

    def release(self) -> None:
        """Gives the lease back. Failures are logged: it ends by itself."""
        if not self.is_leader:
            return
        self._set(False)
        lease = self._seen
        if not self.election.release or lease is None:
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _moment()}
        try:
            self._api.replace({**lease, "spec": spec}, namespace=self._namespace)
        except (ApiError, TransportError, ConfigError) as error:
            _log.warning("lease %s was not given back: %s", self.election.name, error)

    def _set(self, is_leader: bool) -> None:
        self.is_leader = is_leader
        self._observer.leading(self.election.name, is_leader)
        _log.info(
            "%s %s lease %s", self.election.identity, "holds" if is_leader else "left", self.election.name
        )

    def _is_others(self) -> bool:
        holder = ((self._seen or {}).get("spec") or {}).get("holderIdentity")
        return bool(holder) and holder != self.election.identity

    def _try(self) -> bool:
        """One attempt to take or renew the lease; what goes wrong is logged."""
        try:
            return self._take()
        except (ApiError, TransportError, ConfigError) as error:
            _log.warning("lease %s: %s", self.election.name, error)
            return False

    def _take(self) -> bool:
        election = self.election
        try:
            lease = self._api.get(election.name, namespace=self._namespace)
        except NotFound:
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": election.name, "namespace": self._namespace},
                "spec": self._spec({}),
            }
            self._note(self._api.create(body, namespace=self._namespace))
            return True
        spec: dict[str, Any] = lease.get("spec") or {}
        if self._seen is None or spec != self._seen.get("spec"):
            self._note(lease)
        holder = spec.get("holderIdentity")
        if holder and holder != election.identity:
            # the holder's own duration counts: it may have been started with another one
            duration = float(spec.get("leaseDurationSeconds") or election.lease_seconds)
            if self._clock.now() < self._seen_at + duration:
                return False
        written = {**lease, "spec": self._spec(spec)}
        self._note(self._api.replace(written, namespace=self._namespace))
        return True

    def _note(self, lease: dict[str, Any]) -> None:
        self._seen, self._seen_at = lease, self._clock.now()

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        now = _moment()
        mine = old.get("holderIdentity") == self.election.identity
        return {
            **old,
            "holderIdentity": self.election.identity,
            "leaseDurationSeconds": max(1, int(self.election.lease_seconds)),
            "renewTime": now,
            "acquireTime": old.get("acquireTime") if mine and old.get("acquireTime") else now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (not mine and bool(old)),
        }


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
