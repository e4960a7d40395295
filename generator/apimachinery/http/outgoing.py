"""Calls that the server itself makes: to webhooks, to issuers for their keys, to aggregated servers. The one file here
with an HTTP client.

Answers are bounded in size and time; redirects are not followed, so an answer comes from whom the options name.
Connections are kept for the next call (``Outgoing``), and so are TLS contexts: to make one takes milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apimachinery.http.flows import on_behalf_of
from apimachinery.http.trust import trusting

if TYPE_CHECKING:
    import aiohttp

ANSWER_BYTES = 1 << 18
FIELD_BYTES = 1 << 16
CONNECT_SECONDS = 10.0
CONTEXTS = 256
IDLE_SECONDS = 60.0
CALLS_AT_ONCE, CALLS_OF_A_USER = 256, 128
"""To one address, and of those for one user. A call that waits costs its body and, for a conversion, a thread."""


class CallFailed(Exception):
    """No usable answer; the text says which address, and why. ``status`` is that of an answer that is a refusal."""

    def __init__(self, text: str, status: int = 0, body: bytes = b"") -> None:
        super().__init__(text)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to call: ``headers`` are sent with every call (credentials), ``tls`` says whom to trust. ``server_name`` is
    the name that the certificate must have where it is not the host of the URL."""

    url: str
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 10.0
    server_name: str = ""


@dataclass(slots=True)
class Opened:
    """An answer whose head has come. Read ``parts`` to the end, or ``close``."""

    status: int
    headers: Sequence[tuple[str, str]]
    parts: AsyncIterator[bytes]
    _answer: aiohttp.ClientResponse

    def close(self) -> None:
        """Lets go of the connection."""
        _break_off(self._answer)

    async def read(self, most: int, before_more: Callable[[], Awaitable[object]] | None = None) -> bytes:
        """The rest; ``before_more`` is awaited where that is much. Raises ValueError for more than ``most`` bytes."""
        content = bytearray()
        try:
            if (self._answer.content_length or 0) > most:
                raise ValueError(f"answered more than {most} bytes")
            async for part in self.parts:
                content += part
                if len(content) > most:
                    raise ValueError(f"answered more than {most} bytes")
                if before_more is not None and len(content) > MUCH_BYTES:
                    await before_more()
                    before_more = None
        except BaseException:
            self.close()
            raise
        return bytes(content)


LARGE_AT_ONCE = 2
MUCH_BYTES = 64 << 10
"""Answers of one address that are more than this are read so many at a time: each takes a piece of every turn of the
loop, however large."""


@dataclass(slots=True)
class _Line:
    """The calls of one address: how many are under way, of which users, and who waits."""

    busy: int = 0
    users: Counter[str] = field(default_factory=Counter)
    waiting: deque[tuple[str, asyncio.Future[None]]] = field(default_factory=deque)
    large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))

    def has_room(self, user: str) -> bool:
        """Whether a call may begin. The server's own calls share what there is."""
        return self.busy < CALLS_AT_ONCE and (not user or self.users[user] < CALLS_OF_A_USER)

    def begin(self, user: str) -> None:
        """Counts a call."""
        self.busy += 1
        self.users[user] += 1

    def end(self, user: str) -> None:
        """Ends a call: whoever waits and has room is next."""
        self.busy -= 1
        self.users[user] -= 1
        if not self.users[user]:
            del self.users[user]
        # In order, but passing those whose user has no room left.
        for number, (other, turn) in enumerate(self.waiting):
            if self.has_room(other):
                del self.waiting[number]
                self.begin(other)
                turn.set_result(None)
                return


class Outgoing:
    """All calls of one server: a pool of connections on its event loop, through an HTTP ``proxy`` if one is given."""

    def __init__(self, proxy: str = "") -> None:
        self._proxy = proxy or None
        self._session: aiohttp.ClientSession | None = None
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def turn(self, address: str, seconds: float) -> AsyncIterator[asyncio.Semaphore]:
        """Around a call to an address, which begins when there is room; what to hold around a large answer. Who hangs
        takes his own places alone. Raises CallFailed where there is none in time."""
        user, line = on_behalf_of.get(), self._lines.setdefault(address, _Line())
        if line.has_room(user):
            line.begin(user)
        else:
            await self._wait(line, user, seconds)
        try:
            yield line.large
        finally:
            # Addresses come from users' webhooks: a line that nobody uses must go.
            line.end(user)
            if not line.busy and not line.waiting:
                self._lines.pop(address, None)

    async def _wait(self, line: _Line, user: str, seconds: float) -> None:
        """Raises CallFailed."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append((user, turn))
        try:
            async with asyncio.timeout(seconds):
                await turn
        except (TimeoutError, asyncio.CancelledError) as fault:
            # The place was given in the same moment as the time ran out; it must go to the next.
            if turn.done() and not turn.cancelled():
                line.end(user)
            else:
                line.waiting.remove((user, turn))
            if isinstance(fault, TimeoutError):
                raise CallFailed(why(fault)) from None
            raise

    def _kept(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                # The lines above bound calls by address and user; aiohttp's own limit would let one address starve
                # the others.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                # Cookies of one webhook must never reach another.
                cookie_jar=aiohttp.DummyCookieJar(),
                # HTTPS_PROXY of the environment must not redirect calls to webhooks within the cluster.
                trust_env=False,
                # Relayed answers go on as they are, with their Content-Encoding.
                auto_decompress=False,
                max_line_size=FIELD_BYTES,
                max_field_size=FIELD_BYTES,
            )
        return self._session

    async def open(
        self,
        method: str,
        endpoint: Endpoint,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        total: bool = True,
    ) -> Opened:
        """Sends a request and waits for the head of the answer, at most ``endpoint.seconds``; with ``total`` the body
        must have come by then too. The path and query of the URL are sent as they are. Raises CallFailed."""
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(
            total=endpoint.seconds if total else None, sock_connect=CONNECT_SECONDS
        )
        try:
            async with asyncio.timeout(endpoint.seconds):
                answer = await self._kept().request(
                    method,
                    # Already escaped: yarl would normalize it, and webhooks would see another path.
                    URL(endpoint.url, encoded=True),
                    headers=[*endpoint.headers.items(), *headers],
                    data=body,
                    ssl=endpoint.tls if endpoint.tls is not None else True,
                    server_hostname=endpoint.server_name or None,
                    proxy=self._proxy,
                    # A redirect would send the review, with a user's object, to a host that nobody configured.
                    allow_redirects=False,
                    timeout=timeout,
                    # Relayed requests carry the fields of their client alone.
                    skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                )
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as fault:
            raise CallFailed(why(fault)) from None
        fields = [(name.decode("latin-1"), _text(value)) for name, value in answer.raw_headers]
        return Opened(answer.status, fields, _parts(answer), answer)

    async def json(self, endpoint: Endpoint, body: Any = None) -> Any:
        """The JSON that an endpoint answers, to a POST where there is a body. Raises CallFailed."""
        content = await self._exchange(endpoint, None if body is None else json.dumps(body).encode())
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise CallFailed(f"{endpoint.url}: did not answer JSON") from None

    async def send(self, endpoint: Endpoint, body: bytes) -> None:
        """Sends JSON to whoever only takes it; what he answers is not looked at. Raises CallFailed."""
        await self._exchange(endpoint, body)

    async def _exchange(self, endpoint: Endpoint, data: bytes | None) -> bytes:
        headers = [("Accept", "application/json"), ("Accept-Encoding", "identity")]
        if data is not None:
            headers.append(("Content-Type", "application/json"))
        began = time.monotonic()
        try:
            async with self.turn(endpoint.url, endpoint.seconds):
                # Waiting for a place counts against the call's own time limit.
                left = replace(endpoint, seconds=max(began + endpoint.seconds - time.monotonic(), 0.0))
                answer = await self.open("GET" if data is None else "POST", left, headers, data)
                content = await answer.read(ANSWER_BYTES)
        except (CallFailed, ValueError) as fault:
            raise CallFailed(f"{endpoint.url}: {fault}") from None
        if not 200 <= answer.status < 300:
            raise CallFailed(f"{endpoint.url}: answered {answer.status}", answer.status, content)
        return content

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _parts(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """What comes, as it comes. Raises CallFailed where the other side breaks off."""
    import aiohttp

    try:
        async for part in answer.content.iter_any():
            yield part
    except (TimeoutError, aiohttp.ClientError, OSError) as fault:
        raise CallFailed(why(fault)) from None
    finally:
        # Only an answer that was read to its end leaves a connection that can be used again.
        answer.release() if answer.content.at_eof() else _break_off(answer)


def _break_off(answer: aiohttp.ClientResponse) -> None:
    """Ends an answer that was not read to its end. To end TLS in order would wait for what is still on its way."""
    connection = answer.connection
    transport = connection.transport if connection is not None else None
    answer.close()  # after which the answer knows no connection
    if transport is not None:
        # uvloop's TLS may have scheduled a read, which must find the transport open.
        asyncio.get_running_loop().call_soon(transport.abort)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def why(fault: BaseException) -> str:
    """A failed call in the words of Go's net package, which operators know from kube-apiserver's conditions."""
    refused = getattr(fault, "os_error", fault)
    host, port = getattr(fault, "host", ""), getattr(fault, "port", "")
    place = f"dial tcp {host}:{port}: " if host else ""
    if isinstance(refused, ConnectionRefusedError):
        return f"{place}connect: connection refused"
    if isinstance(fault, TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    reason = getattr(fault, "certificate_error", None) or getattr(refused, "verify_message", "")
    if reason:
        return f"tls: failed to verify certificate: {reason}"
    if isinstance(refused, ssl.SSLError) or isinstance(fault, ssl.SSLError):
        reason = getattr(refused, "reason", "") or getattr(fault, "reason", "")
        if reason == "WRONG_VERSION_NUMBER":
            return "tls: first record does not look like a TLS handshake"
        return f"tls: {str(reason).lower().replace('_', ' ')}"
    if hasattr(fault, "request_info"):
        return "malformed HTTP response"  # of which nothing is repeated
    return str(fault) or type(fault).__name__


_Stamps = tuple[tuple[str, int, int], ...]
_contexts: dict[tuple[bytes, bool, _Stamps], ssl.SSLContext] = {}


def client_tls(
    authorities: bytes = b"", *, insecure: bool = False, certificate: tuple[Path, Path] | None = None
) -> ssl.SSLContext:
    """A context that trusts these authorities (PEM; the system's where there are none), or with ``insecure`` anybody,
    and shows ``certificate`` (its file and its key's). It is made once, and again when a file has changed. Raises
    ValueError, OSError."""
    stamps: _Stamps = ()
    if certificate is not None:
        found = [(path, path.stat()) for path in certificate]
        stamps = tuple((str(path), stat.st_mtime_ns, stat.st_ino) for path, stat in found)
    key = (authorities, insecure, stamps)
    context = _contexts.get(key)
    if context is not None:
        return context
    try:
        context = trusting(authorities)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as fault:
        raise ValueError(f"unable to load root certificates: {fault}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(*certificate)
    # All at once: contexts change so rarely that which one goes does not matter.
    if len(_contexts) >= CONTEXTS:
        _contexts.clear()
    _contexts[key] = context
    return context
