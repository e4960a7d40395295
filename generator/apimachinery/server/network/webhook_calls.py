"""Calls of webhooks that reviews are posted to: those of admission and those that convert custom resources.

A client configuration (``WebhookClientConfig`` of both API groups) names a URL or a Service, and the authorities whose
certificates count. Connections are kept; redirects are not followed, so an answer comes from whom the configuration
names. Failures are worded as kube-apiserver words them, since configurations are debugged by these texts.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import posixpath
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from apimachinery.http.outgoing import (
    CallFailed,
    Endpoint,
    Opened,
    Outgoing,
    client_tls,
)
from apimachinery.http.workers import aside
from apimachinery.server.network.services import ServiceResolver, Unresolved, server_name
from apimachinery.wire.json import DecodeFault, decode, encode, type_name

ANSWER_BYTES = 6 << 20
"""Room for a patch that is as large as a body may be (3 MiB), in base64, and half as much again."""
Json = dict[str, Any]
_GO_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_SCHEME = "k8s.io/apiserver/pkg/util/webhook/client.go:71"
_FIXED = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class WebhookFailed(Exception):
    """No usable answer; the text says why."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What came back."""

    status: int
    media_type: str
    content: bytes


Value = TypeVar("Value")
Read = Callable[[WebhookAnswer], Awaitable[Value]]
Observe = Callable[[str, str, str, int, float], None]
"""Takes a webhook's name, the operation, the webhook's kind, the code of its verdict (0 for none) and seconds."""


class WebhookCalls:
    """Posts reviews."""

    def __init__(
        self,
        outgoing: Outgoing,
        services: ServiceResolver,
        observe: Observe = lambda *seen: None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """``loop`` makes the calls that threads ``wait`` for."""
        self._outgoing = outgoing
        self._services = services
        self.observe = observe
        self._loop = loop

    async def post(
        self, client: Mapping[str, Any], body: bytes, seconds: float, agent: str, read: Read[Value]
    ) -> Value:
        """What ``read`` makes of a webhook's answer to a review, by ``read_review``. Raises WebhookFailed and what
        ``read`` raises."""
        return await self._exchanged(client, body, seconds, agent, ANSWER_BYTES, read)

    def wait(self, client: Mapping[str, Any], review: Json, seconds: float, agent: str) -> Json:
        """The review that a webhook answers, for a thread for such work: others compute while it waits. The answer may
        be as large again as what was sent. Raises WebhookFailed."""
        loop = self._loop
        if loop is None or loop is _running():
            raise WebhookFailed("failed to call webhook: the server cannot wait for it here")
        body = encode(review)
        most = ANSWER_BYTES + 2 * len(body)
        with aside():
            answer = asyncio.run_coroutine_threadsafe(
                self._exchanged(client, body, seconds, agent, most, _unread), loop
            ).result()
        return read_review(answer, review)

    async def _exchanged(
        self,
        client: Mapping[str, Any],
        body: bytes,
        seconds: float,
        agent: str,
        most: int,
        read: Read[Value],
    ) -> Value:
        """Raises WebhookFailed."""
        shown, host = _shown_url(client, seconds)
        try:
            endpoint = self._endpoint(client, shown, host, seconds)
        except Unresolved as fault:
            raise WebhookFailed(f"failed to call webhook: {_posted(shown)}: {fault}") from None
        except ValueError as fault:
            raise WebhookFailed(f"could not get REST client: {fault}") from None
        headers = [
            ("Accept", "application/json, */*"),
            ("Content-Type", "application/json"),
            ("User-Agent", agent),
        ]
        if endpoint.server_name:
            headers.append(("Host", host))
        try:
            return await self._posted(endpoint, headers, body, shown, most, read)
        except CallFailed as fault:
            raise WebhookFailed(f"failed to call webhook: {fault}") from None

    def _endpoint(self, client: Mapping[str, Any], shown: str, host: str, seconds: float) -> Endpoint:
        """Raises Unresolved, ValueError."""
        tls = client_tls(_authorities(client.get("caBundle") or ""))
        service = client.get("service")
        if service is None:
            return Endpoint(shown, tls, seconds=seconds)
        namespace, name = service["namespace"], service["name"]
        address = self._services.resolve(namespace, name, int(service.get("port") or 443))
        parts = urlsplit(shown)
        url = f"https://{address}{parts.path}?{parts.query}"
        return Endpoint(url, tls, seconds=seconds, server_name=server_name(namespace, name))

    async def _posted(
        self,
        endpoint: Endpoint,
        headers: list[tuple[str, str]],
        body: bytes,
        shown: str,
        most: int,
        read: Read[Value],
    ) -> Value:
        """Raises CallFailed. A server that is busy is asked again when it says, while there is time."""
        until = time.monotonic() + endpoint.seconds
        while True:
            async with AsyncExitStack() as stack:
                large = await stack.enter_async_context(self._turn(shown, until))
                try:
                    opened = await self._opened(endpoint, headers, body, max(until - time.monotonic(), 0.0))
                except CallFailed as fault:
                    raise CallFailed(f"{_posted(shown)}: {_go_words(str(fault))}") from None
                fields = {name.lower(): value for name, value in opened.headers}
                wait = fields.get("retry-after", "")
                if not ((opened.status == 429 or opened.status >= 500) and wait.isdigit()):
                    left = max(until - time.monotonic(), 0.0)
                    content = await _read(opened, most, left, partial(stack.enter_async_context, large))
                    return await read(WebhookAnswer(opened.status, fields.get("content-type", ""), content))
                opened.close()
            if time.monotonic() + int(wait) >= until:
                await asyncio.sleep(max(until - time.monotonic(), 0.0))
                raise CallFailed(f"{_posted(shown)}: context deadline exceeded")
            await asyncio.sleep(int(wait))

    @asynccontextmanager
    async def _turn(self, shown: str, until: float) -> AsyncIterator[asyncio.Semaphore]:
        """Raises CallFailed."""
        async with AsyncExitStack() as stack:
            turn = self._outgoing.turn(shown.partition("?")[0], until - time.monotonic())
            try:
                large = await stack.enter_async_context(turn)
            except CallFailed as fault:
                raise CallFailed(f"{_posted(shown)}: {_go_words(str(fault))}") from None
            yield large

    async def _opened(
        self, endpoint: Endpoint, headers: list[tuple[str, str]], body: bytes, seconds: float
    ) -> Opened:
        limited = Endpoint(endpoint.url, endpoint.tls, {}, seconds, endpoint.server_name)
        try:
            return await self._outgoing.open("POST", limited, headers, body)
        except CallFailed as fault:
            # A connection that was kept may have been closed by the other side meanwhile; a new one tells.
            if _go_words(str(fault)) != "EOF":
                raise
            return await self._outgoing.open("POST", limited, headers, body)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _read(
    answer: Opened, most: int, seconds: float, before_more: Callable[[], Awaitable[object]]
) -> bytes:
    """Raises CallFailed."""
    try:
        async with asyncio.timeout(seconds):
            return await answer.read(most, before_more)
    except ValueError as fault:
        raise CallFailed(str(fault)) from None
    except (CallFailed, TimeoutError) as fault:
        why = "context deadline exceeded" if isinstance(fault, TimeoutError) else _go_words(str(fault))
        why = why if why.startswith("context") else "unexpected EOF"
        raise CallFailed(
            f"unexpected error when reading response body. Please retry. Original error: {why}"
        ) from None


async def _unread(answer: WebhookAnswer) -> WebhookAnswer:
    return answer


def _authorities(bundle: str) -> bytes:
    """Raises ValueError."""
    if not bundle:
        return b""
    try:
        pem = base64.b64decode(bundle, validate=True)
    except (binascii.Error, ValueError):
        pem = b""
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block")
    return pem


def _shown_url(client: Mapping[str, Any], seconds: float) -> tuple[str, str]:
    """The URL as messages show it, with the time limit in its query, and its host."""
    timeout = f"timeout={_duration(seconds)}"
    service = client.get("service")
    if service is None:
        parts = urlsplit(str(client.get("url") or ""))
        return f"{parts.scheme}://{parts.netloc}{_clean(parts.path)}?{timeout}", parts.netloc
    host = f"{server_name(service['namespace'], service['name'])}:{service.get('port') or 443}"
    return f"https://{host}{_clean(str(service.get('path') or ''))}?{timeout}", host


def _clean(path: str) -> str:
    """A path as client-go asks for it: unquoted, joined to the root, which takes ``//``, ``..`` and a slash at the end
    away, and quoted again."""
    joined = posixpath.normpath("/" + unquote(path, errors="surrogateescape").lstrip("/"))
    return quote(joined, safe="$&+,/:;=@", errors="surrogateescape")


def _duration(seconds: float) -> str:
    whole = int(seconds) + (seconds > int(seconds))
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60}s"


def _posted(url: str) -> str:
    return f'Post "{url}"'


_UNKNOWN_AUTHORITY = (
    "self-signed certificate",
    "self signed certificate",
    "unable to get local issuer",
    "invalid CA certificate",
)
_OTHER_NAME = re.compile(r"mismatch, certificate is not valid for '([^']*)'")
_NO_HOST = re.compile(
    r"Cannot connect to host (.*):\d+ .*\[(?:Name or service|nodename|No address|Temporary failure)"
)


def _go_words(text: str) -> str:
    """A failed call as Go's net/http words it, as far as it is the same failure."""
    if text.startswith("context deadline exceeded"):
        return "context deadline exceeded"
    if "disconnected" in text or "Connection reset" in text:
        return "EOF"
    for openssl in _UNKNOWN_AUTHORITY:
        if openssl in text:
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if (other := _OTHER_NAME.search(text)) is not None:
        return f"tls: failed to verify certificate: x509: certificate is not valid for {other.group(1)}"
    if (unknown := _NO_HOST.search(text)) is not None:
        return f"dial tcp: lookup {unknown.group(1)}: no such host"
    if "certificate has expired" in text:
        return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    if "RawResponseMessage" in text:  # What came of a head before the end.
        return "net/http: HTTP/1.x transport connection broken: unexpected EOF"
    if text == "malformed HTTP response":
        return f"net/http: HTTP/1.x transport connection broken: {text}"
    return text


def read_review(answer: WebhookAnswer, asked: Json) -> Json:
    """The review in an answer, of which no more is checked than its kind. Raises WebhookFailed."""
    try:
        return _review(answer.status, answer.media_type, answer.content, asked["apiVersion"], asked["kind"])
    except CallFailed as fault:
        raise WebhookFailed(f"failed to call webhook: {fault}") from None


def _review(status: int, media_type: str, content: bytes, api_version: str, kind: str) -> Json:
    """Raises CallFailed."""
    if not 200 <= status <= 206:
        raise CallFailed(_refusal(status, media_type, content))
    if not content:
        what = f"status code: {status} and content type: {media_type or 'application/json'}"
        raise CallFailed(f"0-length response with {what}")
    try:
        # What is no JSON object is read as YAML, where most text is a string.
        value = (
            decode(content) if content.lstrip()[:1] in (b"{", b"[") else content.decode("utf-8", "replace")
        )
    except DecodeFault as fault:
        raise CallFailed(f"couldn't get version/kind; json parse error: {fault}") from None
    if not isinstance(value, dict):
        fault_text = f"json: cannot unmarshal {type_name(value)} into Go value of type {_GO_TYPE_META}"
        raise CallFailed(f"couldn't get version/kind; json parse error: {fault_text}")
    _check_kind(value, api_version, kind)
    return value


def _check_kind(value: Json, api_version: str, kind: str) -> None:
    """Raises CallFailed for a review of another kind; what is not said is for the caller to judge."""
    for name, go_name in (("apiVersion", "apiVersion"), ("kind", "kind")):
        if not isinstance(value.get(name, ""), str):
            raise CallFailed(
                f"couldn't get version/kind; json parse error: json: cannot unmarshal {type_name(value[name])} into "
                f"Go struct field .{go_name} of type string"
            )
    given, given_kind = value.get("apiVersion") or api_version, value.get("kind") or kind
    if (given, given_kind) == (api_version, kind):
        return
    group, _, version = given.rpartition("/")
    own_group, _, own = api_version.rpartition("/")
    if given_kind == kind and group == own_group and version in ("v1", "v1beta1"):
        raise CallFailed(f"converting ({version}.{kind}) to ({own}.{kind}): unknown conversion")
    raise CallFailed(f'no kind "{given_kind}" is registered for version "{given}" in scheme "{_SCHEME}"')


def _refusal(status: int, media_type: str, content: bytes) -> str:
    """What an answer that is a failure says."""
    if media_type.partition(";")[0].strip() in ("application/json", ""):
        try:
            value = decode(content)
        except DecodeFault:
            value = None
        if isinstance(value, dict) and value.get("kind") == "Status" and value.get("status") != "Success":
            return str(value.get("message") or "unknown")
    text = content.decode("utf-8", "replace").strip() if media_type.startswith("text/") else "unknown"
    if status in (403, 415) or (status == 406 and text not in ("", "unknown")):
        return text
    if status in _FIXED:
        return _FIXED[status]
    if status >= 500:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'an error on the server ("{quoted}") has prevented the request from succeeding'
    return f"the server responded with the status code {status} but did not return more information"
