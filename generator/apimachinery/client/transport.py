"""Bytes over HTTP: the one file that knows an HTTP library.

Measured per request on one machine (GET of 1 KB, one connection): http.client 0.25 ms, httpcore 0.34 ms,
httpx 0.52 ms, urllib3 0.53 ms, niquests 0.61 ms; async: aiohttp 0.24 ms, httpx 0.97 ms; imports: http.client
22 ms, urllib3 91 ms, httpx 106 ms. So sync calls stand on the standard library's http.client with a small
pool, and async calls on aiohttp, which is imported when the first async transport is made.

A watch is silent for minutes, so a peer that is gone without a word must be found out by other means: the kernel's
keepalive probes (45 s, as long as client-go's HTTP/2 pings take) for hosts, the caller's ``timeout`` for what lies
between, and ``opening`` for the head of the answer.

Rules: a connection that the server has closed while it lay in the pool is never used (its socket would be
readable); a 401 is answered once with a fresh credential where there may be one; nothing else is retried
here (``retry.py`` decides about that). ``TransportError.sent`` says whether the server may have acted on the
request.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import select
import selectors
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

from apimachinery.client.bodies import AnswerTooLarge as AnswerTooLarge
from apimachinery.client.bodies import Lines, SentBody
from apimachinery.client.bodies import TransportError as TransportError
from apimachinery.client.config import Config, ConfigError, Credential
from apimachinery.client.credentials import CredentialSource
from apimachinery.client.throttle import Limits
from apimachinery.client.tls import make_tls
from apimachinery.meta.version import VERSION

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

CONNECT_SECONDS: Final = 10.0
IDLE_CONNECTIONS: Final = 32
CHUNK: Final = 1 << 16
LARGE_CHUNK: Final = 1 << 20
OPENING_SECONDS: Final = 60.0
KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""First probe after 30 s of silence, then three, 5 s apart."""
UNACKNOWLEDGED_MILLISECONDS: Final = 45_000


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


class _Endpoint:
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
        self.fixed = {"Accept": "application/json", "User-Agent": user_agent()}
        self.impersonation = config.impersonation.headers()
        self.proxy = urlsplit(config.proxy_url) if config.proxy_url else None
        self.is_socks = self.proxy is not None and self.proxy.scheme in ("socks5", "socks5h")
        if self.proxy is not None and not self.is_socks and self.proxy.scheme not in ("http", "https"):
            shown = self.proxy._replace(netloc=self.proxy.netloc.rpartition("@")[2]).geturl()
            raise ConfigError(f'proxy "{shown}": only http, https and socks5 proxies are supported')
        self.proxy_headers = _proxy_headers(self.proxy)
        self._context: tuple[tuple[bytes, bytes, bytes], ssl.SSLContext] | None = None

    @property
    def authority(self) -> str:
        """Host and port, for the Host field."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

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


def keep_alive(sock: Any) -> None:
    """Has the kernel ask a silent peer whether it is still there; what a platform lacks is left out."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MILLISECONDS)


# ------------------------------------------------------------------ sync


class _Incoming(io.RawIOBase):
    """What a socket says, up to a point in time: a server that sends a little again and again must not hold a call
    forever. It also stands for the socket where http.client makes a file of that."""

    def __init__(self, sock: socket.socket, until: float | None) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self.until = until

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.until is not None:
            left = self.until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Connection(http.client.HTTPConnection):
    """One connection: TLS with our own server name, and no delay for small requests. ``until`` is when the call that
    uses it has to be done; ``silence`` takes its place when a stream begins."""

    def __init__(self, endpoint: _Endpoint, context: ssl.SSLContext | None) -> None:
        proxy = endpoint.proxy
        if proxy is not None:
            super().__init__(proxy.hostname or "", proxy.port or 3128, timeout=CONNECT_SECONDS)
            if endpoint.tls and not endpoint.is_socks:
                self.set_tunnel(endpoint.host, endpoint.port, endpoint.proxy_headers)
        else:
            super().__init__(endpoint.host, endpoint.port, timeout=CONNECT_SECONDS)
        self.endpoint = endpoint
        self.context = context
        self.wire: socket.socket | None = None
        self.until: float | None = None
        self._incoming: _Incoming | None = None

    def response_class(  # type: ignore[override]
        self, sock: socket.socket, *arguments: Any, **options: Any
    ) -> http.client.HTTPResponse:
        """What http.client makes of an answer; a method, so that no connection refers to itself."""
        self._incoming = _Incoming(sock, self.until)
        return http.client.HTTPResponse(cast(socket.socket, self._incoming), *arguments, **options)

    def expect(self, until: float | None) -> None:
        """Begins a call that has to be done by then: sets the time limits of what follows."""
        self.until = until
        left = None if until is None else max(until - time.monotonic(), 0.001)
        self.timeout = CONNECT_SECONDS if left is None else min(CONNECT_SECONDS, left)
        if self.sock is not None:
            self.sock.settimeout(left)

    def flow(self, silence: float | None) -> None:
        """Begins a stream: from now on each silence has a limit."""
        if self._incoming is not None:
            self._incoming.until = None
        if self.wire is not None:
            self.wire.settimeout(silence)

    def abort(self) -> None:
        """Closes it by RST: what was written and has not arrived must not arrive later, when nobody waits for it any
        more (a write of a leader that was)."""
        if self.wire is not None:
            with contextlib.suppress(OSError):
                self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def connect(self) -> None:
        if self.endpoint.is_socks:
            self.sock = _through_socks(self.endpoint, self.timeout or CONNECT_SECONDS)
        else:
            super().connect()
        sock: socket.socket = self.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(sock)
        if self.context is not None:
            self.sock = self.context.wrap_socket(sock, server_hostname=self.endpoint.server_name)
        self.wire = self.sock  # http.client lets go of it where the answer ends the connection

    def is_stale(self) -> bool:
        """Whether the server closed it, or said something unasked, while it lay in the pool."""
        if self.sock is None:
            return True
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self.sock], [], [], 0)[0])
        poll = select.poll()  # unlike select, it takes any number of open files
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))


def _through_socks(endpoint: _Endpoint, seconds: float) -> socket.socket:
    """A connection made by a SOCKS5 proxy; the proxy looks up the name (``socks5h``), as curl and Go have it."""
    try:
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.sync import Proxy
    except ImportError:
        raise ConfigError("a socks5 proxy needs: pip install 'kubewright[socks]'") from None
    proxy = Proxy.from_url(endpoint.socks_url, rdns=True)
    try:
        made: socket.socket = proxy.connect(endpoint.host, endpoint.port, timeout=seconds)
    except (ProxyError, ProxyTimeoutError) as error:
        raise ConnectionError(f"the proxy refused: {error}") from None
    return made


class SyncTransport:
    """Requests over pooled connections; may be shared between threads."""

    def __init__(self, config: Config, limits: Limits | None = None) -> None:
        self._endpoint = _Endpoint(config)
        self._limits = limits if limits is not None else Limits()
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    def send(self, request: Request) -> TransportResponse:
        """Sends and reads the whole answer. Raises ``TransportError`` and ``ConfigError``."""
        until = None if request.timeout is None else time.monotonic() + request.timeout
        connection, answer = self._exchange(request, until)
        headers = _headers(answer.headers.items())
        return TransportResponse(answer.status, headers, self._finish(connection, answer, request, headers))

    def stream(self, request: Request) -> LineStream:
        """Sends and gives the answer as it arrives; close it. ``request.timeout`` bounds each silence."""
        opening = replace(request, timeout=_opening(request))
        until = time.monotonic() + _opening(request)
        connection, answer = self._exchange(opening, until)
        if answer.status < 400:  # a refusal is read as a whole, within the time that its head has
            connection.flow(request.timeout)
        return _SyncStream(connection, answer, request, self._limits, self._put_back)

    def dial(self, timeout: float) -> Wire:
        """A connection of its own, for another protocol. Raises ``TransportError`` and ``ConfigError``."""
        endpoint = self._endpoint
        credential = endpoint.credentials.current()
        connection = _Connection(endpoint, endpoint.context(credential))
        request = Request("GET", "/", timeout=timeout)
        connection.expect(time.monotonic() + timeout)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _translate(error, request, sent=False) from None
        connection.sock.settimeout(None)
        return Wire(
            connection.sock, endpoint.authority, endpoint.prefix, endpoint.headers(request, credential)
        )

    def close(self) -> None:
        """Closes idle connections; streams end by their own ``close``."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _exchange(
        self, request: Request, until: float | None
    ) -> tuple[_Connection, http.client.HTTPResponse]:
        credentials = self._endpoint.credentials
        credential = credentials.current()
        connection, answer = self._once(request, credential, until)
        if answer.status == 401 and credentials.can_refresh:
            self._finish(connection, answer, request, _headers(answer.headers.items()))
            credentials.refresh()
            connection, answer = self._once(request, credentials.current(), until)
        return connection, answer

    def _finish(
        self,
        connection: _Connection,
        answer: http.client.HTTPResponse,
        request: Request,
        headers: Mapping[str, str],
    ) -> bytes:
        """The rest of an answer; its connection is free again."""
        try:
            body = _read_whole(answer, headers, self._limits.answer_bytes)
        except (OSError, http.client.HTTPException, TransportError) as error:
            answer.close()
            connection.abort()
            raise _translate(error, request, sent=True) from None
        if answer.will_close:
            connection.close()
        else:
            self._put_back(connection)
        return body

    def _once(
        self, request: Request, credential: Credential, until: float | None
    ) -> tuple[_Connection, http.client.HTTPResponse]:
        endpoint = self._endpoint
        connection = self._take(endpoint.context(credential))
        connection.expect(until)
        sent = False
        try:
            if connection.sock is None:
                connection.connect()
                connection.expect(until)
            target = endpoint.prefix + request.target
            through_proxy = endpoint.proxy is not None and not endpoint.tls and not endpoint.is_socks
            if through_proxy:
                target = f"http://{endpoint.host}:{endpoint.port}{target}"
            sent = True
            connection.putrequest(request.method, target, skip_accept_encoding=True)
            if through_proxy:
                for name, value in endpoint.proxy_headers.items():
                    connection.putheader(name, value)
            for name, value in endpoint.headers(request, credential):
                connection.putheader(name, value)
            if request.body is not None:
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.abort()
            endpoint.credentials.reread()
            raise _translate(error, request, sent=sent) from None

    def _take(self, context: ssl.SSLContext | None) -> _Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return _Connection(self._endpoint, context)
            if connection.context is context and not connection.is_stale():
                return connection
            connection.close()

    def _put_back(self, connection: _Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


class Wire:
    """A connection that another protocol is spoken on. ``host``, ``prefix`` and ``headers`` are for its handshake."""

    def __init__(self, sock: socket.socket, host: str, prefix: str, headers: list[tuple[str, str]]) -> None:
        self.host, self.prefix, self.headers = host, prefix, headers
        # One thread may read while another writes, but OpenSSL takes one caller at a time: nobody waits in it.
        sock.setblocking(False)
        self._sock = sock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting = 0
        self._closed = False

    def read(self) -> bytes:
        """What came; empty at the end. Raises ``TransportError``."""
        return self._do(partial(self._sock.recv, CHUNK), selectors.EVENT_READ)

    def write(self, data: bytes) -> None:
        """Sends bytes. Raises ``TransportError``."""
        with self._writing:
            sent = 0
            while sent < len(data):
                sent += self._do(partial(self._sock.send, memoryview(data)[sent:]), selectors.EVENT_WRITE)

    def _do(self, action: Callable[[], T], wanted: int) -> T:
        """Tries as often as the socket has to be waited for."""
        try:
            while True:
                with self._lock:
                    if self._closed:
                        raise ConnectionError("it was closed")
                    try:
                        return action()
                    except ssl.SSLWantReadError:
                        event = selectors.EVENT_READ
                    except ssl.SSLWantWriteError:
                        event = selectors.EVENT_WRITE
                    except BlockingIOError:
                        event = wanted
                    self._waiting += 1
                self._wait(event)
        except (OSError, ValueError) as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    def _wait(self, event: int) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._sock, event)
                selector.select()
        finally:
            with self._lock:
                self._waiting -= 1
                self._release()

    def close(self) -> None:
        """Ends it; from any thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
                self._release()

    def _release(self) -> None:
        """Closes the socket once nobody waits for it: whoever did would never hear of it."""
        if self._closed and not self._waiting:
            self._sock.close()


class _SyncStream:
    def __init__(
        self,
        connection: _Connection,
        answer: http.client.HTTPResponse,
        request: Request,
        limits: Limits,
        put_back: Callable[[_Connection], None],
    ) -> None:
        self.code = answer.status
        self.headers: Mapping[str, str] = _headers(answer.headers.items())
        self._connection = connection
        self._answer = answer
        self._request = request
        self._limits = limits
        self._put_back = put_back
        self._closing = False
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        lines = Lines(self.headers, self._limits.line_bytes)
        while True:
            try:
                block = self._answer.read1(CHUNK)
            except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
                # http.client may trip over its own closed file (ValueError, AttributeError) after close().
                if self._closing:
                    return
                if isinstance(error, ValueError | AttributeError):
                    error = ConnectionError("the connection was closed")
                raise _translate(error, self._request, sent=True) from None
            if not block:
                self._ended = True
                if rest := lines.rest():
                    yield rest
                self.close()
                return
            yield from _named(lines.take(block), self._request)

    def read(self) -> bytes:
        try:
            return _read_whole(self._answer, self.headers, self._limits.answer_bytes)
        except (OSError, http.client.HTTPException, TransportError) as error:
            raise _translate(error, self._request, sent=True) from None

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if self._ended and not self._answer.will_close:
            self._answer.close()  # http.client leaves one with a length open at its end
            self._put_back(self._connection)  # a watch that ended by itself leaves a good connection
            return
        sock = self._connection.wire
        if sock is not None:
            with contextlib.suppress(OSError):  # the other side may have closed it
                sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        with contextlib.suppress(OSError, ValueError):  # its reader may be closing it too
            self._answer.close()  # http.client forgets an answer that ends its connection, and the socket stays open


# ------------------------------------------------------------------ async


class AsyncTransport:
    """Requests over aiohttp, on the event loop that sends the first of them. At most ``Limits.connections`` calls are
    on their way at once; streams are not counted, for each holds its connection as long as it lives."""

    def __init__(self, config: Config, limits: Limits | None = None) -> None:
        import asyncio

        try:
            import aiohttp
        except ImportError:
            raise ConfigError("async clients need aiohttp: pip install 'kubewright[client]'") from None
        self._aiohttp = aiohttp
        self._endpoint = _Endpoint(config)
        self._session: aiohttp.ClientSession | None = None
        self._limits = limits if limits is not None else Limits(connections=0)
        slots = self._limits.connections
        self._slots = asyncio.Semaphore(slots) if slots else contextlib.nullcontext()

    async def send(self, request: Request) -> TransportResponse:
        """Sends and reads the whole answer. Raises ``TransportError`` and ``ConfigError``."""
        import asyncio

        waiting = True
        try:
            async with asyncio.timeout(request.timeout), self._slots:
                waiting = False
                return await self._send(request)
        except TimeoutError as error:
            raise _translate(error, request, sent=not waiting) from None

    async def _send(self, request: Request) -> TransportResponse:
        answer = await self._exchange(
            request, self._aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_SECONDS)
        )
        headers = _headers(answer.headers.items())
        try:
            body = await _await_whole(answer, headers, self._limits.answer_bytes)
        except (self._aiohttp.ClientError, OSError, TimeoutError, TransportError) as error:
            raise _translate(error, request, sent=True) from None
        finally:
            answer.close()  # harmless where it ended: its connection is back in the pool
        return TransportResponse(answer.status, headers, body)

    async def stream(self, request: Request) -> AsyncLineStream:
        """Sends and gives the answer as it arrives; close it. ``request.timeout`` bounds each silence."""
        timeout = self._aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=request.timeout
        )
        import asyncio

        opening = _opening(request)
        try:
            async with asyncio.timeout(opening):
                answer = await self._exchange(request, timeout)
        except TimeoutError as error:
            raise _translate(error, replace(request, timeout=opening), sent=True) from None
        connection = answer.connection
        wire = connection.transport.get_extra_info("socket") if connection and connection.transport else None
        if wire is not None:
            keep_alive(wire)
        return _AsyncStream(answer, request, self._limits, self._aiohttp.ClientError)

    async def dial(self, timeout: float) -> AsyncWire:
        """A connection of its own, for another protocol. Raises ``TransportError`` and ``ConfigError``."""
        import asyncio

        endpoint = self._endpoint
        credential = await self._credential()
        request = Request("GET", "/", timeout=timeout)
        plain = _Connection(endpoint, None)  # through proxies, up to where TLS begins
        plain.expect(time.monotonic() + timeout)
        context = endpoint.context(credential)
        try:
            await asyncio.to_thread(plain.connect)
            plain.sock.setblocking(False)
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(
                    sock=plain.sock, ssl=context, server_hostname=endpoint.server_name if context else None
                ),
                timeout,
            )
        except (OSError, http.client.HTTPException) as error:
            plain.close()
            raise _translate(error, request, sent=False) from None
        return AsyncWire(
            reader, writer, endpoint.authority, endpoint.prefix, endpoint.headers(request, credential)
        )

    async def close(self) -> None:
        """Closes every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, request: Request, timeout: Any) -> Any:
        credentials = self._endpoint.credentials
        answer = await self._once(request, await self._credential(), timeout)
        if answer.status == 401 and credentials.can_refresh:
            answer.release()
            credentials.refresh()
            answer = await self._once(request, await self._credential(), timeout)
        return answer

    async def _credential(self) -> Credential:
        credentials = self._endpoint.credentials
        if credentials.may_block:
            import asyncio

            return await asyncio.to_thread(credentials.current)
        return credentials.current()

    async def _once(self, request: Request, credential: Credential, timeout: Any) -> Any:
        import multidict
        import yarl

        endpoint = self._endpoint
        if self._session is None:
            self._session = self._aiohttp.ClientSession(connector=self._connector(), auto_decompress=False)
            # It would send PUT and DELETE again when a kept connection breaks: what was done is not for it to guess.
            self._session._retry_connection = False
        scheme = "https" if endpoint.tls else "http"
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        url = yarl.URL(f"{scheme}://{host}:{endpoint.port}{endpoint.prefix}{request.target}", encoded=True)
        try:
            return await self._session.request(
                request.method,
                url,
                headers=multidict.CIMultiDict(endpoint.headers(request, credential)),
                data=request.body,
                timeout=timeout,
                ssl=endpoint.context(credential) or True,
                server_hostname=endpoint.server_name if endpoint.tls else None,
                proxy=None if endpoint.is_socks else endpoint.config.proxy_url or None,
                allow_redirects=False,
                skip_auto_headers=("Accept-Encoding", "Content-Type"),
            )
        except (self._aiohttp.ClientError, OSError, TimeoutError) as error:
            endpoint.credentials.reread()
            sent = not isinstance(error, self._aiohttp.ClientConnectorError)
            raise _translate(error, request, sent=sent) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "python_socks":
                raise
            raise _translate(error, request, sent=False) from None

    def _connector(self) -> Any:
        if not self._endpoint.is_socks:
            return self._aiohttp.TCPConnector(limit=0)
        try:
            from aiohttp_socks import ProxyConnector
        except ImportError:
            raise ConfigError("a socks5 proxy needs: pip install 'kubewright[socks]'") from None
        return ProxyConnector.from_url(self._endpoint.socks_url, rdns=True, limit=0)


class AsyncWire:
    """As ``Wire``, awaited."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        prefix: str,
        headers: list[tuple[str, str]],
    ) -> None:
        self.host, self.prefix, self.headers = host, prefix, headers
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """What came; empty at the end. Raises ``TransportError``."""
        try:
            return await self._reader.read(CHUNK)
        except OSError as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    async def write(self, data: bytes) -> None:
        """Sends bytes. Raises ``TransportError``."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    async def close(self) -> None:
        """Ends it."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class _AsyncStream:
    def __init__(self, answer: Any, request: Request, limits: Limits, failure: type[Exception]) -> None:
        self.code: int = answer.status
        self.headers: Mapping[str, str] = _headers(answer.headers.items())
        self._answer = answer
        self._request = request
        self._limits = limits
        self._failure = failure
        self._closing = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = Lines(self.headers, self._limits.line_bytes)
        while True:
            try:
                block: bytes = await self._answer.content.readany()
            except (self._failure, OSError, TimeoutError) as error:
                if self._closing:
                    return
                raise _translate(error, self._request, sent=True) from None
            if not block:
                if rest := lines.rest():
                    yield rest
                return
            for line in _named(lines.take(block), self._request):
                yield line

    async def read(self) -> bytes:
        import asyncio

        try:
            async with asyncio.timeout(_opening(self._request)):
                return await _await_whole(self._answer, self.headers, self._limits.answer_bytes)
        except (self._failure, OSError, TimeoutError, TransportError) as error:
            raise _translate(error, self._request, sent=True) from None

    async def close(self) -> None:
        self._closing = True
        self._answer.close()  # harmless where the answer ended by itself: its connection is back in the pool


# ------------------------------------------------------------------ shared


def _opening(request: Request) -> float:
    """How long the head of a stream may take."""
    limits = [seconds for seconds in (request.opening, request.timeout) if seconds is not None]
    return min(limits, default=OPENING_SECONDS)


def _headers(pairs: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


def _read_whole(answer: http.client.HTTPResponse, headers: Mapping[str, str], limit: int) -> bytes:
    """The rest of an answer, whose connection says how long that may take."""
    if _is_small(answer.length, headers, limit):
        return answer.read()
    body = SentBody(headers, limit)
    while block := answer.read1(LARGE_CHUNK):
        body.take(block)
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    answer.close()
    return body.whole()


async def _await_whole(answer: Any, headers: Mapping[str, str], limit: int) -> bytes:
    if _is_small(answer.content_length, headers, limit):
        small: bytes = await answer.read()
        return small
    body = SentBody(headers, limit)
    async for block in answer.content.iter_any():
        body.take(block)
    return body.whole()


def _is_small(length: int | None, headers: Mapping[str, str], limit: int) -> bool:
    """Whether a body can be read at once: nearly all can."""
    return length is not None and length <= min(CHUNK, limit) and "content-encoding" not in headers


def _named(lines: Iterator[bytes], request: Request) -> Iterator[bytes]:
    """The same lines; an error says whose they are."""
    try:
        yield from lines
    except TransportError as error:
        raise _translate(error, request, sent=True) from None


def _translate(error: BaseException, request: Request, *, sent: bool) -> TransportError:
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
