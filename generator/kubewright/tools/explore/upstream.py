"""The cluster behind the explorer: requests of the page go on to it with the credentials of a kubeconfig, or, where
the page logs in, with the token that the page sends. No request ever goes there with rights that nobody gave it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from apimachinery.client.config import Config, ConfigError, Credential
from apimachinery.client.credentials import CredentialSource
from apimachinery.client.tls import make_tls
from apimachinery.http.messages import Request, Response
from apimachinery.http.outgoing import CallFailed, Endpoint, Opened, Outgoing
from apimachinery.http.relay import Destination, Relayed, relay

SECONDS = 60.0
READ_BYTES = 32 << 20
_WITHHELD = ("impersonate-", "kubewright-", "sec-", "x-remote-", "x-forwarded-")
_BROWSERS = ("cookie", "origin", "referer")
"""What a browser adds; of no use to the cluster."""


class Upstream:
    """Sends requests on. ``login``: with the page's own token, and never with those of the configuration."""

    def __init__(self, config: Config, *, login: bool) -> None:
        _check_proxy(config.proxy_url)
        self.config = config
        self.login = login
        self._credentials = CredentialSource(config)
        self._outgoing = Outgoing(config.proxy_url)
        self._tls: tuple[object, ssl.SSLContext | None] = (None, None)
        address = urlsplit(config.server)
        self._root = f"{address.scheme}://{address.netloc}"
        self._base = unquote(address.path.rstrip("/"))

    async def relay(self, request: Request, path: str) -> Relayed:
        """The cluster's answer to a request for ``path``. Raises CallFailed, ConfigError."""
        for may_retry in (not self.login and self._credentials.can_refresh, False):
            destination = await self._destination(request, path)
            answer = await relay(self._outgoing, request, destination)
            if answer.status != 401 or not may_retry:
                break
            self._credentials.refresh()
        return answer

    async def ask(
        self, request: Request, path: str, body: Any = None, *, accept: str = "application/json"
    ) -> Any:
        """The JSON at a path and query, or the answer to a body that is posted there, with the rights of a request.
        Raises CallFailed, ConfigError."""
        endpoint = await self._endpoint(request, path)
        headers = [("Accept", accept)]
        if body is None:
            opened = await self._outgoing.open("GET", endpoint, headers)
        else:
            headers.append(("Content-Type", "application/json"))
            opened = await self._outgoing.open("POST", endpoint, headers, json.dumps(body).encode())
        return await _read(opened, path)

    async def lines(self, request: Request, path: str, accept: str, most: int) -> AsyncGenerator[bytes]:
        """The lines of an answer that goes on, each of ``most`` bytes at most, with the rights of a request. Raises
        CallFailed, ConfigError."""
        endpoint = await self._endpoint(request, path)
        opened = await self._outgoing.open("GET", endpoint, [("Accept", accept)], total=False)
        if opened.status != 200:
            await _read(opened, path)
            raise CallFailed(f"{path}: answered {opened.status}", opened.status)
        rest = b""
        try:
            async for part in opened.parts:
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if line:
                        yield line
                if len(rest) > most:
                    raise CallFailed(f"{path}: a line of more than {most} bytes")
        finally:
            opened.close()

    async def _endpoint(self, request: Request, address: str) -> Endpoint:
        path, _, query = address.partition("?")
        destination = replace(await self._destination(request, unquote(path)), query=query)
        return Endpoint(
            destination.root + destination.target,
            destination.tls,
            dict(destination.headers),
            SECONDS,
            destination.server_name,
        )

    async def _destination(self, request: Request, path: str) -> Destination:
        credential = Credential(authority=self.config.certificate_authority)
        if not self.login:
            # Plugins are programs, which take their time.
            credential = await asyncio.to_thread(self._credentials.current)
        headers = [("Accept-Encoding", "identity"), *self._identity(request, credential)]
        lasts = any(word in ("true", "1") for name in ("watch", "follow") for word in request.sought(name))
        return Destination(
            self._root,
            self._base + path,
            request.query_string,
            self._tls_of(credential),
            self.config.tls_server_name,
            headers,
            _WITHHELD + _BROWSERS,
            SECONDS,
            lasts,
            urlsplit(self.config.server).netloc,
        )

    def _identity(self, request: Request, credential: Credential) -> list[tuple[str, str]]:
        if self.login:
            given = request.headers.get("authorization", "")
            return [("Authorization", given)] if given else []
        own = [("Authorization", credential.authorization)] if credential.authorization else []
        return [*own, *self.config.impersonation.headers()]

    def _tls_of(self, credential: Credential) -> ssl.SSLContext | None:
        if not self.config.is_tls:
            return None
        material = (credential.certificate, credential.key, credential.authority)
        if self._tls[0] != material:
            self._tls = (material, make_tls(self.config, credential))
        return self._tls[1]

    async def close(self) -> None:
        """Closes all connections."""
        await self._outgoing.close()


async def _read(opened: Opened, path: str) -> Any:
    """The JSON of an answer. Raises CallFailed, also where it is a refusal."""
    try:
        value = json.loads(await opened.read(READ_BYTES))
    except (ValueError, RecursionError) as fault:
        raise CallFailed(f"{path}: {fault}") from None
    if opened.status not in (200, 201):
        message = value.get("message") if isinstance(value, dict) else ""
        raise CallFailed(str(message or f"{path}: answered {opened.status}"), opened.status)
    return value


def _check_proxy(url: str) -> None:
    """Raises ConfigError for a proxy that is no HTTP proxy; its password is not shown."""
    proxy = urlsplit(url)
    if url and proxy.scheme not in ("http", "https"):
        shown = proxy._replace(netloc=proxy.netloc.rpartition("@")[2]).geturl()
        raise ConfigError(
            f'proxy-url "{shown}": the explorer goes through http and https proxies only; '
            "kubectl proxy goes through others, and explore --url http://127.0.0.1:8001 to it"
        )


class ClusterOfRequest:
    """The cluster for code on a thread, with the rights of one request. Each path is read once."""

    def __init__(self, upstream: Upstream, request: Request) -> None:
        self._upstream = upstream
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._read: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        """The JSON at a path. Raises CallFailed, ConfigError."""
        if path not in self._read:
            self._read[path] = self._wait(path, None)
        return self._read[path]

    def post(self, path: str, body: Any) -> Any:
        """The answer to a body. Raises CallFailed, ConfigError."""
        return self._wait(path, body)

    def _wait(self, path: str, body: Any) -> Any:
        asked = asyncio.run_coroutine_threadsafe(self._upstream.ask(self._request, path, body), self._loop)
        try:
            return asked.result(SECONDS + 5)
        except TimeoutError:
            asked.cancel()
            raise CallFailed(f"{path}: no answer in {SECONDS:.0f} seconds") from None


def failed(fault: CallFailed | ConfigError) -> Response:
    """The answer where the cluster gave none."""
    code = fault.status if isinstance(fault, CallFailed) and fault.status else 502
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": str(fault),
        "reason": "BadGateway" if code == 502 else "",
        "code": code,
    }
    return Response(code, json.dumps(status).encode())
