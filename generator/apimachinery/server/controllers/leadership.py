"""Several servers over one storage: whose controllers run, and who they are.

Rules, those of Kubernetes' leader election (client-go) and of kube-apiserver's identity:

- The controllers run on the server that holds the Lease ``kube-system/kubewright-controllers``. The holder renews it;
  another takes it when it has not changed for its duration by its own clock, so the clocks of two machines are
  never compared. A holder that could not renew in time stops its controllers before another may start them.
- A server that ends gives the Lease up first: the next one takes it within ``RETRY_SECONDS``.
- Each server has a Lease ``apiserver-…`` in kube-system, labelled as kube-apiserver's are; the holder of the first
  Lease removes those that ended long ago.
- A server that is alone with its storage needs neither.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError
from apimachinery.queue.observing import Observer
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import SILENT
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import KeyNotFound, Record, RevisionConflict, StorageError
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

log = logging.getLogger("kubewright.server.leadership")

NAMESPACE = "kube-system"
NAME = "kubewright-controllers"
LEASE_SECONDS = 15
RENEW_SECONDS = 10.0
RETRY_SECONDS = 2.0
IDENTITY_SECONDS = 3600
IDENTITY_RENEW_SECONDS = 10.0
IDENTITY_LABEL = "apiserver.kubernetes.io/identity"


class Loop(Protocol):
    """A controller in this process."""

    def start(self, observer: Observer = SILENT) -> None:
        """Starts it on the running event loop."""

    async def stop(self) -> None:
        """Ends it."""


Maker = Callable[[], Loop]
"""Makes a controller, each time that this server begins to run them."""


class Alone:
    """Runs the controllers from start to stop."""

    def __init__(self, makers: Sequence[Maker]) -> None:
        self._makers = makers
        self._loops: list[Loop] = []

    def start(self, observer: Observer = SILENT) -> None:
        """Starts them."""
        for make in self._makers:
            self._loops.append(make())
            self._loops[-1].start(observer)

    async def stop(self) -> None:
        """Ends them."""
        # Emptied first: stop() may be called again while it waits.
        loops, self._loops = self._loops, []
        for loop in loops:
            await loop.stop()


class Elected:
    """Runs the controllers while this server holds the Lease."""

    def __init__(self, makers: Sequence[Maker], leases: Served, cache: WatchCache, writer: Writer) -> None:
        self._controllers = Alone(makers)
        self._leases = _Leases(leases, cache, writer)
        digest = hashlib.sha256(f"{socket.gethostname()}/{uuid.uuid4()}".encode()).digest()[:16]
        self.name = "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()
        self.identity = f"{self.name}_{uuid.uuid4()}"
        self._seen: tuple[int, float] = (0, 0.0)
        self._renewed = 0.0
        self._named = 0.0
        self._task: asyncio.Task[None] | None = None
        self._observer = SILENT
        self.leads = False

    def start(self, observer: Observer = SILENT) -> None:
        """Begins to ask for the Lease."""
        self._observer = observer
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends the controllers and gives the Lease up."""
        if self._task is not None:
            self._task.cancel()
            # The task must have ended, or it could take the Lease again.
            await asyncio.gather(self._task, return_exceptions=True)
        led = self.leads
        await self._lose()
        with contextlib.suppress(ApiError, StorageError, TimeoutError):
            # An unreachable storage must not keep the server from ending.
            async with asyncio.timeout(RETRY_SECONDS):
                if led:
                    await self._give_up()
                await self._leases.remove(self.name)

    async def _run(self) -> None:
        while True:
            try:
                # Two rounds fit into the time to renew.
                async with asyncio.timeout(RENEW_SECONDS / 2):
                    await self._round()
            except (ApiError, StorageError, TimeoutError) as fault:
                log.warning("the lease of the controllers was not renewed: %s", fault)
            except Exception:
                log.exception("the lease of the controllers could not be read")
            # Judged by this machine's clock, whether or not the storage answers.
            if self.leads and time.monotonic() - self._renewed > RENEW_SECONDS:
                log.warning("the lease of the controllers was not renewed in time; they stop here")
                await self._lose()
            await asyncio.sleep(RETRY_SECONDS)

    async def _lose(self) -> None:
        self.leads = False
        self._observer.leading(NAME, is_leader=False)
        await self._controllers.stop()

    async def _round(self) -> None:
        began = time.monotonic()
        if began - self._named > IDENTITY_RENEW_SECONDS:
            await self._show_identity()
            self._named = began
        record = self._leases.record(NAME)
        spec = decode(record.value).get("spec") or {} if record is not None else {}
        holder = spec.get("holderIdentity") or ""
        # A change of the record, not its time, proves that the holder lives.
        if record is not None and self._seen[0] != record.revision:
            self._seen = (record.revision, began)
        if holder == self.identity:
            if began - self._renewed > RENEW_SECONDS / 2:
                await self._hold(record, spec, began)
            return
        if self.leads:
            log.warning(
                "another server holds the lease of the controllers; they stop here", extra={"holder": holder}
            )
            await self._lose()
        # Seen unchanged for less than a lease: its holder may be alive.
        if holder and began - self._seen[1] <= (spec.get("leaseDurationSeconds") or LEASE_SECONDS):
            return
        await self._hold(record, spec, began)

    async def _hold(self, record: Record | None, spec: Json, began: float) -> None:
        """Takes or renews the Lease; whoever is later than another finds a conflict, and nothing happens."""
        moment = _moment()
        taken = spec.get("holderIdentity") != self.identity
        wanted = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": moment if taken else spec.get("acquireTime", moment),
            "renewTime": moment,
            "leaseTransitions": (spec.get("leaseTransitions") or 0) + (taken and record is not None),
        }
        if not await self._leases.write(NAME, record, wanted, {}):
            return
        self._renewed = began
        if not self.leads:
            log.info("the controllers run on this server", extra={"identity": self.identity})
            self.leads = True
            self._observer.leading(NAME, is_leader=True)
            self._controllers.start(self._observer)

    async def _give_up(self) -> None:
        record = self._leases.record(NAME)
        if record is None:
            return
        spec = decode(record.value).get("spec") or {}
        if spec.get("holderIdentity") == self.identity:
            # Only its own: another may have taken it meanwhile.
            await self._leases.write(NAME, record, {**spec, "holderIdentity": "", "renewTime": _moment()}, {})

    async def _show_identity(self) -> None:
        labels = {IDENTITY_LABEL: "kube-apiserver", "kubernetes.io/hostname": socket.gethostname()[:63]}
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": IDENTITY_SECONDS,
            "renewTime": _moment(),
        }
        await self._leases.write(self.name, self._leases.record(self.name), spec, labels)
        if self.leads:
            await self._leases.remove_ended()


class _Leases:
    """The Leases of kube-system."""

    def __init__(self, served: Served, cache: WatchCache, writer: Writer) -> None:
        self._served = served
        self._cache = cache.resource(served.prefix)
        self._writer = writer

    def record(self, name: str) -> Record | None:
        """A Lease as it is."""
        return self._cache.get(self._served.key(NAMESPACE, name))

    async def write(self, name: str, record: Record | None, spec: Json, labels: Json) -> bool:
        """Writes a Lease over the one that was read; whether nobody was faster."""
        target = self._target(name)
        try:
            if record is None:
                metadata: Json = {"name": name, "namespace": NAMESPACE}
                if labels:
                    metadata["labels"] = labels
                obj = {
                    "kind": "Lease",
                    "apiVersion": self._served.api_version,
                    "metadata": metadata,
                    "spec": spec,
                }
                await self._writer.create(target, obj)
            else:
                await self._writer.replace(target, record, {**self._served.read(record), "spec": spec})
        except (RevisionConflict, KeyNotFound):
            return False
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return False
        return True

    async def remove(self, name: str) -> None:
        """Removes a Lease where it is there."""
        record = self.record(name)
        if record is not None:
            with contextlib.suppress(RevisionConflict, KeyNotFound):
                await self._writer.remove(self._target(name), record, self._served.read(record))

    async def remove_ended(self) -> None:
        """Removes the identities of servers that were not seen for longer than they said."""
        for record in list(self._cache.snapshot(self._served.scope(NAMESPACE)).records):
            obj = self._served.read(record)
            if IDENTITY_LABEL in (obj["metadata"].get("labels") or {}) and _ended(obj.get("spec") or {}):
                await self.remove(obj["metadata"]["name"])

    def _target(self, name: str) -> WriteTarget:
        return WriteTarget(self._served, NAMESPACE, name, WriteOptions(manager="kube-apiserver"))


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _ended(spec: dict[str, Any]) -> bool:
    try:
        renewed = datetime.fromisoformat(str(spec["renewTime"]))
        seconds = float(spec["leaseDurationSeconds"])
    except (KeyError, ValueError, TypeError):
        return False
    return (datetime.now(UTC) - renewed).total_seconds() > seconds
