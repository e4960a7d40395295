"""Hands a request on to another server and its answer back, as a reverse proxy (RFC 9110 section 7.6). Knows nothing of
Kubernetes: whose identity goes with it, and where it goes, is said by a ``Destination``.

What goes on: method, the path and query of the destination, the header fields but for those that are between two
neighbours only (``Connection`` and what it names, ``Keep-Alive``, ``Proxy-*``, ``TE``, ``Trailer``,
``Transfer-Encoding``, ``Upgrade``) and those that carry credentials, and the body. A field whose name reads the same
with ``_`` for ``-`` counts as the same: some servers make no difference.

An upgraded connection (websocket, SPDY) is handed through byte by byte in both directions, and ends when one side ends.
Memory: what one side sends waits in a buffer of bounded size until the other takes it (see ``tunnel``).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from apimachinery.http.async_dialing import async_dial
from apimachinery.http.messages import (
    BrokenOff,
    Request,
    Response,
    StreamResponse,
    Tunnel,
    UpgradeResponse,
)
from apimachinery.http.outgoing import (
    CONNECT_SECONDS,
    FIELD_BYTES,
    CallFailed,
    Endpoint,
    Opened,
    Outgoing,
    why,
)
from apimachinery.http.trust import trusting

Relayed = Response | StreamResponse | UpgradeResponse
WHOLE_BYTES = 1 << 16
"""Answers up to here are read whole; larger ones, and those of unknown length, are passed on as they come."""
PIECE_BYTES = 1 << 16
REFUSAL_SECONDS = 10.0
_BETWEEN_NEIGHBOURS = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS = frozenset({"host", "content-length", "authorization", "expect"})
_SET_BY_PROTOCOL = frozenset({"content-type", "content-length", "date", "x-content-type-options"})
_STAMPED = ("audit-id", "x-kubernetes-pf-")
_PATH_SAFE = "/~-._$&+,:;=@"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes. ``root`` is scheme, host and port; ``path`` is decoded. ``headers`` are added, and no field
    of the client's may have their names, nor begin with one of ``withheld`` (lower case). ``seconds`` are for the head
    of the answer, and for all of it unless it ``lasts``."""

    root: str
    path: str
    query: str = ""
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    headers: Sequence[tuple[str, str]] = ()
    withheld: tuple[str, ...] = ()
    seconds: float = 60.0
    lasts: bool = False
    host: str = ""

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        path = quote(self.path, safe=_PATH_SAFE) or "/"
        return f"{path}?{self.query}" if self.query else path


def plain_query(query: dict[str, list[str]]) -> str:
    """A query that says what was read of the client's, by name: what could not be read does not go on."""
    return "&".join(
        f"{quote_plus(name)}={quote_plus(value)}" for name in sorted(query) for value in query[name]
    )


def is_upgrade(request: Request) -> bool:
    """Whether the client offers another protocol on this connection."""
    return bool(request.headers.get("upgrade")) and "upgrade" in request.headers.get("connection", "").lower()


async def relay(outgoing: Outgoing, request: Request, destination: Destination) -> Relayed:
    """The answer of the destination. Raises CallFailed where there is none."""
    if is_upgrade(request):
        return await _upgrade(request, destination)
    endpoint = Endpoint(
        destination.root + destination.target,
        destination.tls,
        seconds=destination.seconds,
        server_name=destination.server_name,
    )
    headers = passed_on(request, destination)
    # b"" where a length is expected: it is sent as Content-Length: 0 (RFC 9110 section 8.6).
    body = request.body if request.body or request.method in ("POST", "PUT", "PATCH") else None
    opened = await outgoing.open(request.method, endpoint, headers, body, total=not destination.lasts)
    return await _answer(request, opened)


def passed_on(request: Request, destination: Destination) -> list[tuple[str, str]]:
    """The header fields that go on."""
    named = {
        name.strip().lower() for value in request.values("connection") for name in value.split(",")
    } | _BETWEEN_NEIGHBOURS
    # The destination sets these itself; a client's own X-Remote-User must never reach it.
    given = {_plain(name) for name, _ in destination.headers}
    headers = [("Host", destination.host or request.headers.get("host", ""))]
    for name in request.headers:
        plain = _plain(name)
        if (
            plain in named
            or plain in _OURS
            or plain in given
            or plain.startswith(destination.withheld or ("\0",))
        ):
            continue
        headers += [(name, _utf8(value)) for value in request.values(name)]
    return [*headers, *destination.headers]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _utf8(value: str) -> str:
    """A field as the client's bytes, which were read as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


async def _answer(request: Request, opened: Opened) -> Response | StreamResponse:
    headers: list[tuple[str, str]] = []
    content_type, length = "", -1
    named = {
        name.strip().lower()
        for key, value in opened.headers
        if key.lower() == "connection"
        for name in value.split(",")
    }
    for name, value in opened.headers:
        key = name.lower()
        if key == "content-type":
            content_type = value
        elif key == "content-length" and value.isascii() and value.isdigit():
            # Nineteen digits fit 64 bits.
            length = int(value[:19])
        if (key == "cache-control" and value == "no-cache, private") or key.startswith(_STAMPED):
            continue  # every answer has it already
        if key in _SET_BY_PROTOCOL or key in _BETWEEN_NEIGHBOURS or key in named:
            continue
        headers.append((name, value))
    # Short answers are read whole: they need no task, and their length is known.
    if request.method == "HEAD" or opened.status in (204, 304) or 0 <= length <= WHOLE_BYTES:
        try:
            body = await opened.read(WHOLE_BYTES)
        except ValueError as fault:
            raise CallFailed(str(fault)) from None
        return Response(opened.status, body, content_type, tuple(headers))
    return StreamResponse(opened.status, _stream(opened), content_type, tuple(headers))


async def _stream(opened: Opened) -> AsyncIterator[bytes]:
    try:
        async for part in opened.parts:
            yield part
    except CallFailed as fault:
        # The client learns of it by an answer that is not whole.
        raise BrokenOff(str(fault)) from None
    finally:
        opened.close()


# Upgrades.


async def _upgrade(request: Request, destination: Destination) -> Relayed:
    """Opens a connection of its own for the new protocol, and hands over once the other side agrees."""
    scheme, _, place = destination.root.partition("://")
    host, _, port = place.rpartition(":")
    context = destination.tls or (trusting() if scheme == "https" else None)
    host = host.strip("[]")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            dialled = await async_dial(host, int(port), CONNECT_SECONDS)
            try:
                reader, writer = await asyncio.open_connection(
                    sock=dialled,
                    ssl=context,
                    server_hostname=(destination.server_name or host) if context else None,
                    limit=FIELD_BYTES,
                )
            except BaseException:
                dialled.close()
                raise
    except (OSError, TimeoutError, ValueError) as fault:
        raise CallFailed(why(fault)) from None
    try:
        writer.write(_request_head(request, destination) + request.body)
        async with asyncio.timeout(destination.seconds):
            await writer.drain()
            raw = await reader.readuntil(b"\r\n\r\n")
        status = int(raw.split(b" ", 2)[1])
    except (
        OSError,
        TimeoutError,
        ValueError,
        IndexError,
        asyncio.IncompleteReadError,
        asyncio.LimitOverrunError,
    ):
        writer.close()
        raise CallFailed("error reading the answer to an offer to upgrade") from None
    except BaseException:
        writer.close()
        raise
    # As kube-apiserver's UpgradeAwareHandler, which passes on refusals alone.
    if status != 101 and status < 400:
        writer.close()
        raise CallFailed(f"invalid upgrade response: status code {status}")

    async def run(tunnel: Tunnel) -> None:
        try:
            tunnel.write(raw)
            # A refusal is passed on as it comes, in raw form.
            if status == 101:
                await pump(tunnel, reader, writer)
            else:
                async with asyncio.timeout(REFUSAL_SECONDS):
                    await _copy(reader, tunnel)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()

    return UpgradeResponse(run, status)


def _request_head(request: Request, destination: Destination) -> bytes:
    lines = [f"{request.method} {destination.target} HTTP/1.1"]
    fields = [(name, value) for name, value in passed_on(request, destination) if value]
    fields += [("Connection", "Upgrade"), ("Upgrade", request.headers["upgrade"])]
    if request.body:
        fields.append(("Content-Length", str(len(request.body))))
    for name, value in fields:
        if any(char in name + value for char in "\r\n\0"):
            raise ValueError(f"header field {name!r} holds a line break")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode()


async def pump(tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both directions, until one ends."""

    async def forward() -> None:
        while data := await tunnel.read():
            writer.write(data)
            await writer.drain()

    tasks = [asyncio.create_task(forward()), asyncio.create_task(_copy(reader, tunnel))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, tunnel: Tunnel) -> None:
    while data := await reader.read(PIECE_BYTES):
        tunnel.write(data)
        await tunnel.drain()
