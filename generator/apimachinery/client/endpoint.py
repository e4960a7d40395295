"""Requests and answers as values, and where a server is: what the transports for threads and for asyncio share.

A watch is silent for minutes, so a peer that is gone without a word must be found out by other means: the kernel's
keepalive probes (45 s, as long as client-go's HTTP/2 pings take) for hosts, the caller's ``timeout`` for what lies
between, and ``opening`` for the head of the answer.
"""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from apimachinery.client.bodies import TransportError as TransportError
from apimachinery.client.config import Config, ConfigError, Credential
from apimachinery.client.credentials import CredentialSource
from apimachinery.client.tls import make_tls
from apimachinery.http.asking import BadAnswer, request_head
from apimachinery.meta.version import VERSION

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS: Final = 10.0
OPENING_SECONDS: Final = 60.0
IDLE_CONNECTIONS: Final = 32
CHUNK: Final = 1 << 16
KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""First probe after 30 s of silence, then three, 5 s apart."""
UNACKNOWLEDGED_MILLISECONDS: Final = 45_000
FAILURES: Final = (OSError, BadAnswer, TransportError)
"""What a broken exchange raises."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. ``target`` is path and query, escaped; ``timeout`` in seconds, None for no limit. Of a stream
    ``timeout`` bounds each silence, and ``opening`` how long its head may take."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float | None = 60.0
    opening: float | None = None

    @property
    def path(self) -> str:
        """The target without its query, which may be long, or hold what is not for logs."""
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class TransportResponse:
    """A whole answer; header names in lower case, values of repeated ones joined by newlines."""

    code: int
    headers: Mapping[str, str]
    body: bytes


class LineStream(Protocol):
    """An answer that goes on: iterate for its lines (without the newline); ``close`` may be called from any
    thread and ends the iteration."""

    code: int
    headers: Mapping[str, str]

    def __iter__(self) -> Iterator[bytes]:
        """The lines as they arrive. Raises ``TransportError`` where the connection breaks."""

    def read(self) -> bytes:
        """The rest of the answer as one value, for answers that turn out to be errors."""

    def close(self) -> None:
        """Ends the stream."""


class AsyncLineStream(Protocol):
    """As ``LineStream``, awaited."""

    code: int
    headers: Mapping[str, str]

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The lines as they arrive."""

    async def read(self) -> bytes:
        """The rest of the answer as one value."""

    async def close(self) -> None:
        """Ends the stream."""


class ServerAddress:
    """What both transports share: where the server is, and how a request looks on the wire."""

    def __init__(self, config: Config) -> None:
        parts = urlsplit(config.server)
        if not parts.hostname:
            raise ConfigError(f'server "{config.server}" has no host')
        self.config = config
        self.credentials = CredentialSource(config)
        self.tls = parts.scheme == "https"
        self.host: str = parts.hostname
        self.port: int = parts.port or (443 if self.tls else 80)
        self.prefix = parts.path.rstrip("/")
        self.server_name = config.tls_server_name or self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"
        self.fixed = {"Accept": "application/json", "User-Agent": user_agent()}
        self.impersonation = config.impersonation.headers()
        self.proxy = urlsplit(config.proxy_url) if config.proxy_url else None
        self.is_socks = self.proxy is not None and self.proxy.scheme in ("socks5", "socks5h")
        if self.proxy is not None and not self.is_socks and self.proxy.scheme not in ("http", "https"):
            shown = self.proxy._replace(netloc=self.proxy.netloc.rpartition("@")[2]).geturl()
            raise ConfigError(f'proxy "{shown}": only http, https and socks5 proxies are supported')
        self.proxy_headers = _proxy_headers(self.proxy)
        self.through_proxy = self.proxy is not None and not self.is_socks
        self.tunnels = self.through_proxy and self.tls
        self._context: tuple[tuple[bytes, bytes, bytes], ssl.SSLContext] | None = None

    @property
    def socks_url(self) -> str:
        """The proxy as the SOCKS library reads it: names are always looked up by the proxy."""
        return self.config.proxy_url.replace("socks5h://", "socks5://", 1)

    def context(self, credential: Credential) -> ssl.SSLContext | None:
        """The TLS context for a credential, made once for each certificate and authority."""
        if not self.tls:
            return None
        identity = (credential.certificate, credential.key, credential.authority)
        if self._context is None or self._context[0] != identity:
            self._context = (identity, make_tls(self.config, credential))
        return self._context[1]

    @property
    def first_hop(self) -> tuple[str, int]:
        """Where to connect to: the server, or an HTTP proxy."""
        if self.proxy is None or self.is_socks:
            return self.host, self.port
        return self.proxy.hostname or "", self.proxy.port or (443 if self.proxy.scheme == "https" else 80)

    def proxy_tls(self, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """The TLS context for an HTTP proxy that speaks TLS itself."""
        if self.proxy is None or self.proxy.scheme != "https":
            return None
        from apimachinery.http.trust import trusting

        return context or trusting()

    def tunnel_head(self) -> bytes:
        """The request to an HTTP proxy to pass bytes on to the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        target = f"{host}:{self.port}"
        return request_head("CONNECT", target, [("Host", target), *self.proxy_headers.items()], None)

    def head(self, request: Request, credential: Credential) -> bytes:
        """The head of a request as it is sent. Raises ``ConfigError``."""
        target, fields = self.prefix + request.target, [("Host", self.authority)]
        if self.through_proxy and not self.tls:
            target = f"http://{self.authority}{target}"
            fields += self.proxy_headers.items()
        fields += self.headers(request, credential)
        try:
            return request_head(request.method, target, fields, request.body)
        except ValueError as error:
            raise ConfigError(f"{request.method} {request.path}: {error}") from None

    def headers(self, request: Request, credential: Credential) -> list[tuple[str, str]]:
        """Every header to send."""
        merged = {**self.fixed, **request.headers}
        if credential.authorization:
            merged["Authorization"] = credential.authorization
        return [*merged.items(), *self.impersonation]


def user_agent() -> str:
    """Who asks, as client-go says it: program, version, platform. The server names a field manager after the part
    before the first slash."""
    return f"kubewright/{VERSION} ({sys.platform}; python {sys.version_info[0]}.{sys.version_info[1]})"


def _proxy_headers(proxy: SplitResult | None) -> dict[str, str]:
    if proxy is None or proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair).decode()}


def prepare(sock: socket.socket) -> None:
    """Sets up a new connection: small requests are sent at once, and the kernel asks a silent peer whether it is still
    there; what a platform lacks is left out."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MILLISECONDS)


def end_by_reset(sock: socket.socket) -> None:
    """Has closing it send RST: what was written and has not arrived must not arrive later, when nobody waits for it any
    more (a write of a leader that was)."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def has_news(sock: socket.socket) -> bool:
    """Whether the server closed a connection, or said something unasked, while it lay in the pool."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()  # unlike select, it takes any number of open files
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def seconds_until(until: float | None) -> float | None:
    """How long it is until then, at least nothing; None for no limit."""
    return None if until is None else max(until - time.monotonic(), 0.0)


def opening_of(request: Request) -> float:
    """How long the head of a stream may take."""
    limits = [seconds for seconds in (request.opening, request.timeout) if seconds is not None]
    return min(limits, default=OPENING_SECONDS)


def named(lines: Iterator[bytes], request: Request) -> Iterator[bytes]:
    """The same lines; an error says whose they are."""
    try:
        yield from lines
    except TransportError as error:
        raise translate(error, request, sent=True) from None


def translate(error: BaseException, request: Request, *, sent: bool) -> TransportError:
    """The failure of a request, in words that say which."""
    if isinstance(error, TransportError):
        error.args = (f"{request.method} {request.path}: {error}",)
        return error
    late = isinstance(error, TimeoutError)
    what = (
        f"no answer within {request.timeout:g} s"
        if late and request.timeout
        else str(error) or type(error).__name__
    )
    return TransportError(f"{request.method} {request.path}: {what}", sent=sent, timed_out=late)
