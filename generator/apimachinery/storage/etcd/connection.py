"""Calls to the members of an etcd: deadlines, and another member where one does not answer.

Rules. A read may be asked again of another member until its time is up. A write is sent once: after an answer that did
not come nobody knows whether it was made, and to send it again could make it twice. Only where it certainly never left
(no connection, or a member that refused it unread) it goes to the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.options import EtcdOptions
from apimachinery.storage.interface import StorageError, StorageFull, StorageUnreachable, ValueTooLarge

ATTEMPT_SECONDS = 2.0
READ_SECONDS = 6.0
WRITE_SECONDS = 6.0
RETRY_SECONDS = 0.05
_OPTIONS = (
    # A page has as many objects as were asked for, of whatever size; requests are limited by etcd.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A member that is gone without a word (its machine stopped) is noticed by unanswered pings; etcd throws out who
    # pings more often than every five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
)
_MOVING_ON = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
)
# Said before anything is proposed to the others.
_UNSENT = (
    "failed to connect",
    "no leader",
    "too many requests",
    "not capable",
    "rpc not supported for learner",
)


class EtcdRefusal(StorageError):
    """An answer of etcd that says no; ``details`` is its text."""

    def __init__(self, details: str) -> None:
        super().__init__(f"etcd: {details}")
        self.details = details


class EtcdConnection:
    """Channels to the members, of which one is in use. Use it on one event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        self.options = options
        self._credentials = _credentials(options)
        self._channels: dict[str, grpc.aio.Channel] = {}
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

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        channel = self._channels.get(endpoint)
        if channel is None:
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
            else:
                channel = grpc.aio.secure_channel(endpoint, self._credentials, options=_OPTIONS)
            self._channels[endpoint] = channel
        return channel

    def _call(self, method: Sequence[Any], endpoint: str) -> Any:
        path, request, response = method
        return self._channel(endpoint).unary_unary(
            path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )

    async def read(self, method: Sequence[Any], request: Any) -> Any:
        """The answer to a call that changes nothing. Raises EtcdRefusal, StorageUnreachable."""
        until = time.monotonic() + READ_SECONDS
        while True:
            endpoint = self.endpoint
            left = until - time.monotonic()
            try:
                # Each attempt has a time of its own, so that a hung member leaves time for another one.
                answer = await self._call(method, endpoint)(
                    request, timeout=min(ATTEMPT_SECONDS, max(left, 0.01))
                )
            except grpc.aio.AioRpcError as fault:
                if fault.code() not in _MOVING_ON:
                    raise _refusal(fault) from None
                self.move_on(endpoint)
                if time.monotonic() + RETRY_SECONDS > until or self._closed:
                    raise _unreachable(endpoint, fault) from None
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return answer

    async def write(self, request: Any) -> Any:
        """The answer to a transaction that writes. Raises EtcdRefusal, StorageFull, ValueTooLarge, and
        StorageUnreachable where its outcome is unknown."""
        until = time.monotonic() + WRITE_SECONDS
        while True:
            endpoint = self.endpoint
            left = until - time.monotonic()
            try:
                # The whole time: an attempt that was cut off could not be repeated anyway.
                answer = await self._call(messages.TXN, endpoint)(request, timeout=max(left, 0.01))
            except grpc.aio.AioRpcError as fault:
                if fault.code() not in _MOVING_ON:
                    raise _refusal(fault) from None
                # The text of the error is the only thing that tells the two cases apart.
                details = (fault.details() or "").lower()
                if "database space exceeded" in details:
                    raise StorageFull(f"etcd: {fault.details()}") from None
                self.move_on(endpoint)
                unsent = any(text in details for text in _UNSENT)
                if not unsent or time.monotonic() + RETRY_SECONDS > until or self._closed:
                    raise _unreachable(endpoint, fault) from None
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return answer

    async def ask(self, method: Sequence[Any], request: Any, endpoint: str) -> Any:
        """The answer of one member. Raises EtcdRefusal, StorageUnreachable."""
        try:
            return await self._call(method, endpoint)(request, timeout=ATTEMPT_SECONDS)
        except grpc.aio.AioRpcError as fault:
            if fault.code() not in _MOVING_ON:
                raise _refusal(fault) from None
            raise _unreachable(endpoint, fault) from None

    def watch(self, endpoint: str) -> Any:
        """A stream of watches with one member: ``write`` requests, ``read`` responses, ``cancel``."""
        path, request, response = messages.WATCH
        return self._channel(endpoint).stream_stream(
            path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )()

    def snapshot(self) -> Any:
        """The stream of a snapshot's pieces."""
        path, request, response = messages.SNAPSHOT
        return self._channel(self.endpoint).unary_stream(
            path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )(request())

    async def close(self) -> None:
        """Ends all calls."""
        self._closed = True
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()


def _credentials(options: EtcdOptions) -> grpc.ChannelCredentials | None:
    if not options.tls:
        return None
    authority, certificate, key = (
        path.read_bytes() if path is not None else None
        for path in (options.ca_file, options.cert_file, options.key_file)
    )
    return grpc.ssl_channel_credentials(authority, key, certificate)


def _unreachable(endpoint: str, fault: grpc.aio.AioRpcError) -> StorageUnreachable:
    return StorageUnreachable(f"etcd at {endpoint} did not answer: {fault.code().name}: {fault.details()}")


def _refusal(fault: grpc.aio.AioRpcError) -> StorageError:
    details = fault.details() or fault.code().name
    if "request is too large" in details:
        return ValueTooLarge(f"etcd: {details}")
    if "database space exceeded" in details:
        return StorageFull(f"etcd: {details}")
    return EtcdRefusal(details)
