"""Calls to the members of an etcd: deadlines, and another member where one does not answer.

Rules. A read may be asked again of another member until its time is up. A write is sent once: after an answer that did
not come nobody knows whether it was made, and to send it again could make it twice. Only where it certainly never left
(no connection, or a member that refused it unread) it goes to the next one.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

from apimachinery.storage.etcd import messages, rpc
from apimachinery.storage.etcd.options import EtcdOptions
from apimachinery.storage.interface import StorageError, StorageFull, StorageUnreachable, ValueTooLarge

ATTEMPT_SECONDS = 2.0
READ_SECONDS = 6.0
WRITE_SECONDS = 6.0
RETRY_SECONDS = 0.05
_MOVING_ON = (
    rpc.UNAVAILABLE,
    rpc.DEADLINE_EXCEEDED,
    rpc.RESOURCE_EXHAUSTED,
    rpc.CANCELLED,
    rpc.UNKNOWN,
    rpc.INTERNAL,
)
# Said before anything is proposed to the others.
_UNSENT = ("no leader", "too many requests", "not capable", "rpc not supported for learner")


class EtcdRefusal(StorageError):
    """An answer of etcd that says no; ``details`` is its text."""

    def __init__(self, details: str) -> None:
        super().__init__(f"etcd: {details}")
        self.details = details


class EtcdConnection:
    """Channels to the members, of which one is in use. Use it on one event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        self.options = options
        self._tls = _tls(options)
        self._channels: dict[str, rpc.RpcChannel] = {}
        self._at = 0
        self._closed = False

    @property
    def endpoint(self) -> str:
        """The member in use."""
        return self.options.endpoints[self._at % len(self.options.endpoints)]

    def move_on(self, endpoint: str) -> None:
        """Uses the next member, unless somebody has moved on from ``endpoint`` already."""
        # Many calls fail at once when a member goes; only the first one changes the member.
        if endpoint == self.endpoint:
            self._at += 1

    def _channel(self, endpoint: str) -> rpc.RpcChannel:
        channel = self._channels.get(endpoint)
        if channel is None:
            channel = self._channels[endpoint] = rpc.RpcChannel(endpoint, self._tls)
        return channel

    async def read(self, method: rpc.Method, request: Any) -> Any:
        """The answer to a call that changes nothing. Raises EtcdRefusal, StorageUnreachable."""
        until = time.monotonic() + READ_SECONDS
        while True:
            endpoint = self.endpoint
            left = until - time.monotonic()
            try:
                # Each attempt has a time of its own, so that a hung member leaves time for another one.
                return await self._channel(endpoint).call(
                    method, request, min(ATTEMPT_SECONDS, max(left, 0.01))
                )
            except rpc.RpcFailed as fault:
                if fault.status not in _MOVING_ON:
                    raise _refusal(fault) from None
                self.move_on(endpoint)
                if time.monotonic() + RETRY_SECONDS > until or self._closed:
                    raise _unreachable(endpoint, fault) from None
                await asyncio.sleep(RETRY_SECONDS)

    async def write(self, request: Any) -> Any:
        """The answer to a transaction that writes. Raises EtcdRefusal, StorageFull, ValueTooLarge, and
        StorageUnreachable where its outcome is unknown."""
        until = time.monotonic() + WRITE_SECONDS
        while True:
            endpoint = self.endpoint
            left = until - time.monotonic()
            try:
                # The whole time: an attempt that was cut off could not be repeated anyway.
                return await self._channel(endpoint).call(messages.TXN, request, max(left, 0.01))
            except rpc.RpcFailed as fault:
                if fault.status not in _MOVING_ON:
                    raise _refusal(fault) from None
                # What a member refused unread it says in the text of the error alone.
                details = fault.details.lower()
                if "database space exceeded" in details:
                    raise StorageFull(f"etcd: {fault.details}") from None
                self.move_on(endpoint)
                unsent = fault.unsent or any(text in details for text in _UNSENT)
                if not unsent or time.monotonic() + RETRY_SECONDS > until or self._closed:
                    raise _unreachable(endpoint, fault) from None
                await asyncio.sleep(RETRY_SECONDS)

    async def ask(self, method: rpc.Method, request: Any, endpoint: str) -> Any:
        """The answer of one member. Raises EtcdRefusal, StorageUnreachable."""
        try:
            return await self._channel(endpoint).call(method, request, ATTEMPT_SECONDS)
        except rpc.RpcFailed as fault:
            if fault.status not in _MOVING_ON:
                raise _refusal(fault) from None
            raise _unreachable(endpoint, fault) from None

    async def watch(self, endpoint: str) -> rpc.MessageStream:
        """A stream of watches with one member. Raises RpcFailed, as what it is used for does."""
        return await self._channel(endpoint).stream(messages.WATCH)

    async def snapshot(self) -> rpc.MessageStream:
        """The stream of a snapshot's pieces. Raises RpcFailed."""
        return await self._channel(self.endpoint).stream(messages.SNAPSHOT, messages.SnapshotRequest())

    async def close(self) -> None:
        """Ends all calls."""
        self._closed = True
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()


def _tls(options: EtcdOptions) -> ssl.SSLContext | None:
    if not options.tls:
        return None
    tls = ssl.create_default_context(cafile=options.ca_file)
    if options.cert_file is not None:
        tls.load_cert_chain(options.cert_file, options.key_file)
    tls.set_alpn_protocols(["h2"])
    return tls


def _unreachable(endpoint: str, fault: rpc.RpcFailed) -> StorageUnreachable:
    return StorageUnreachable(f"etcd at {endpoint} did not answer: {fault}")


def _refusal(fault: rpc.RpcFailed) -> StorageError:
    details = fault.details or rpc.status_name(fault.status)
    if "request is too large" in details:
        return ValueTooLarge(f"etcd: {details}")
    if "database space exceeded" in details:
        return StorageFull(f"etcd: {details}")
    return EtcdRefusal(details)
