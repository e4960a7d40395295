"""HTTP proxies before a server with TLS: a tunnel is asked for, and TLS is spoken with the server alone."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.test_wire import BODY, OBJECT, both, run
from tests.client.wires import Listening, ScriptedServer, answer, pass_on

from apimachinery.client.config import Config
from apimachinery.client.errors import ConfigError, TransportError
from apimachinery.http.tls import ensure_certificate


class TunnelProxy(Listening):
    """Answers CONNECT as ``said``, and then passes bytes on to a port of this machine."""

    def __init__(self, port: int, said: bytes, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._said, self._tls = port, said, tls
        self.heads: list[str] = []
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += connection.recv(1) or b"\r\n\r\n"
                self.heads.append(head.decode())
                connection.sendall(self._said)
                with socket.create_connection(("127.0.0.1", self._target)) as server:
                    back = threading.Thread(target=pass_on, args=(server, connection), daemon=True)
                    back.start()
                    pass_on(connection, server)


ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, bytes]:
    """What a server needs, and the authority that its clients trust."""
    certificate, key = ensure_certificate(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate.read_bytes()


@pytest.fixture
def server(tls: tuple[ssl.SSLContext, bytes]) -> Iterator[ScriptedServer]:
    with ScriptedServer([answer(200, BODY)], tls=tls[0]) as running:
        yield running


def through(proxy: TunnelProxy, server: ScriptedServer, authority: bytes, scheme: str = "http") -> Config:
    return Config(
        server=f"https://127.0.0.1:{server.port}",
        certificate_authority=authority,
        proxy_url=f"{scheme}://me:p%40ss@127.0.0.1:{proxy.port}",
    )


@both
def test_a_tunnel_is_asked_for_with_the_password(
    mode: str, server: ScriptedServer, tls: tuple[ssl.SSLContext, bytes]
) -> None:
    with TunnelProxy(server.port, ESTABLISHED) as proxy:
        assert run(mode, through(proxy, server, tls[1]), "get", "a") == OBJECT
    assert proxy.heads == [
        f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        "Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
    ]
    assert b"Proxy-Authorization" not in server.requests[0]


@both
def test_a_proxy_that_refuses_is_no_request_sent(
    mode: str, server: ScriptedServer, tls: tuple[ssl.SSLContext, bytes]
) -> None:
    refusal = b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"
    with TunnelProxy(server.port, refusal) as proxy:
        with pytest.raises(TransportError, match="the proxy refused to connect: it answered 407") as refused:
            run(mode, through(proxy, server, tls[1]), "create", OBJECT)
        assert not refused.value.sent


@both
def test_a_proxy_that_says_nothing_does_not_hold_a_call(
    mode: str, server: ScriptedServer, tls: tuple[ssl.SSLContext, bytes]
) -> None:
    with TunnelProxy(server.port, b"HTTP/1.1 200") as proxy:
        with pytest.raises(TransportError) as late:
            run(mode, through(proxy, server, tls[1]), "create", OBJECT, timeout=0.3)
        assert late.value.timed_out and not late.value.sent


def test_tls_within_tls(server: ScriptedServer, tls: tuple[ssl.SSLContext, bytes]) -> None:
    with TunnelProxy(server.port, ESTABLISHED, tls[0]) as proxy:
        config = through(proxy, server, tls[1], "https")
        assert run("async", config, "get", "a") == OBJECT
        with pytest.raises(
            ConfigError, match="TLS within TLS, which an https proxy needs, is for AsyncClient"
        ):
            run("sync", config, "get", "a")
