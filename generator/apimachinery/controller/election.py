# Made from async_election.py by build/plain.py: edit that one.
"""Leader election on a Lease (coordination.k8s.io/v1), awaited: of several copies of a program one works.

Theory (client-go's leaderelection). The lease names a holder and how long it holds. Everybody looks at it again and
again; who has seen it unchanged for a whole lease takes it, by a write that only succeeds on the version it read. No
clock is compared with another machine's: a candidate measures with its own since when the lease looks as it does. The
holder rewrites it well before it ends, and stops working when it could not do so in ``renew_seconds``, which is
shorter than the lease: so two never lead, as long as clocks run at about the same speed.

The deadline counts from when the last successful try began, for others may have seen its write as early as that.
``is_leader`` and ``fence`` look at the clock themselves and ``hold`` watches the deadline beside the tries, so nothing
that a try waits for (a connection, a login program, a server's Retry-After) prolongs leadership. Tries have a
connection of their own, and each may take half of ``renew_seconds``: after one that hangs there is time for another.
"""

from __future__ import annotations

import logging
import math
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
from apimachinery.controller.requests import LostLeadership as LostLeadership
from apimachinery.meta.printing import printable
from apimachinery.meta.resources import Resource
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Observer
from apimachinery.queue.running import Flag, RunningGroup

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

    @property
    def duration(self) -> int:
        """What the lease says: whole seconds, never fewer than ``lease_seconds``, for others wait no longer."""
        return math.ceil(self.lease_seconds)


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
        # A connection of its own: requests of the program must not hold up the renewal.
        self._client = client._separate()
        api = DynamicResource(self._client, LEASES)
        self._api = api.within(election.renew_seconds / 2)
        self._namespace = election.namespace or client.config.namespace
        self._clock = clock
        self._observer = observer if observer is not None else Observer()
        self._group = RunningGroup()
        self._leads = False
        self._deadline = float("-inf")
        self._seen: dict[str, Any] | None = None
        self._seen_at = 0.0

    @property
    def is_leader(self) -> bool:
        """Whether this copy leads, by the clock: false from the deadline on, whoever has noticed it."""
        return self._leads and self._clock.now() < self._deadline

    def fence(self) -> float:
        """For how many seconds this copy surely leads. Raises ``LostLeadership`` where it does not."""
        left = self._deadline - self._clock.now()
        if not self._leads or left <= 0:
            raise LostLeadership(f"{self.election.identity} does not hold lease {self.election.name}")
        return left

    def acquire(self, stopping: Flag) -> bool:
        """Waits until this copy leads, or ``stopping``; whether it does."""
        while not stopping.is_set:
            if self._try():
                self._set(True)
                return True
            # Jitter keeps candidates from asking all at the same moment.
            self._pause(self.election.retry_seconds * random.uniform(1.0, 1.2), stopping)
        return False

    def hold(self, stopping: Flag, lost: Callable[[], None]) -> None:
        """Renews until ``stopping``; calls ``lost`` and ends at the deadline, or when the lease is another's."""
        self._group.spawn("renewal", self._renew, stopping)
        while not stopping.is_set:
            left = self._deadline - self._clock.now()
            if left <= 0 or self._is_others():
                self._set(False)
                lost()
                return
            # never long: the clock may jump while this sleeps
            stopping.wait(self._clock.real(min(left, self.election.retry_seconds / 2)))

    def _renew(self, stopping: Flag) -> None:
        while self.is_leader:
            self._pause(self.election.retry_seconds, stopping)
            if stopping.is_set:
                return
            self._try()

    def _pause(self, seconds: float, stopping: Flag) -> None:
        ends = self._clock.now() + seconds
        while not stopping.is_set and (left := ends - self._clock.now()) > 0:
            stopping.wait(self._clock.real(left))

    def close(self) -> None:
        """Ends renewals that are still under way, and the connection."""
        self._group.join(0)
        self._client.close()

    def release(self) -> None:
        """Gives the lease back; call it when nothing is worked on any more. Failures are logged: it ends by itself."""
        if not self._leads:
            return
        # Read before leadership is given up below.
        is_leader, lease = self.is_leader, self._seen
        self._set(False)
        if not is_leader or not self.election.release or lease is None:
            return
        # As client-go: an empty holder and one second let the next candidate take it at once.
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _moment()}
        try:
            self._api.replace({**lease, "spec": spec}, namespace=self._namespace)
        except (ApiError, TransportError, ConfigError) as error:
            _log.warning("lease %s was not given back: %s", self.election.name, error)

    def _set(self, is_leader: bool) -> None:
        self._leads = is_leader
        self._observer.leading(self.election.name, is_leader)
        _log.info(
            "%s %s lease %s", self.election.identity, "holds" if is_leader else "left", self.election.name
        )

    def _is_others(self) -> bool:
        holder = ((self._seen or {}).get("spec") or {}).get("holderIdentity")
        return bool(holder) and holder != self.election.identity

    def _try(self) -> bool:
        """One attempt to take or renew the lease; what goes wrong is logged."""
        began = self._clock.now()
        try:
            taken = self._take()
        except (ApiError, TransportError, ConfigError) as error:
            _log.warning("lease %s: %s", self.election.name, printable(str(error)))
            return False
        except Exception:  # a lease that somebody wrote nonsense into must not end the candidate
            _log.exception("lease %s", self.election.name)
            return False
        if taken:
            self._deadline = max(self._deadline, began + self.election.renew_seconds)
        return taken

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
            "leaseDurationSeconds": self.election.duration,
            "renewTime": now,
            "acquireTime": old.get("acquireTime") if mine and old.get("acquireTime") else now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (not mine and bool(old)),
        }


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
