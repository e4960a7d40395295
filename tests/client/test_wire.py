"""What the client does when a server is busy, slow, gone, or asks for proof: on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
import socket
import ssl
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.client.wires import Answer, Listening, ScriptedServer, answer

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.errors import (
    ConfigError,
    RequestEntityTooLarge,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from apimachinery.client.links import Wire
from apimachinery.client.resource import DynamicResource
from apimachinery.client.retry import NO_RETRIES, RetryPolicy
from apimachinery.meta.resources import Resource
from kubewright.testing import ApiServer

MAPS = Resource(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    singular="configmap",
    namespaced=True,
    verbs=(),
)
QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.002)
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
BODY = json.dumps(OBJECT).encode()
BUSY = answer(429, b'{"kind":"Status","code":429,"reason":"TooManyRequests"}', Retry_After="1")


def run(
    mode: str,
    config: Config,
    call: str,
    *arguments: Any,
    timeout: float = 5.0,
    within: float | None = None,
    retry: RetryPolicy = QUICK,
) -> Any:
    """One call of one client, sync or async."""

    async def awaited() -> Any:
        async with AsyncClient(config, timeout=timeout, retry=retry) as client:
            api = AsyncDynamicResource(client, MAPS)
            return await getattr(api.within(within) if within else api, call)(*arguments)

    if mode == "async":
        return asyncio.run(awaited())
    with Client(config, timeout=timeout, retry=retry) as client:
        api = DynamicResource(client, MAPS)
        return getattr(api.within(within) if within else api, call)(*arguments)


def config_of(server: ScriptedServer) -> Config:
    return Config(server=f"http://127.0.0.1:{server.port}")


both = pytest.mark.parametrize("mode", ["sync", "async"])


@both
@pytest.mark.parametrize(("call", "argument"), [("get", "a"), ("create", OBJECT), ("delete", "a")])
def test_a_busy_server_is_asked_again_when_it_said(mode: str, call: str, argument: Any) -> None:
    with ScriptedServer([BUSY, answer(200, BODY)]) as server:
        assert run(mode, config_of(server), call, argument) == OBJECT
    assert len(server.requests) == 2
    assert server.times[1] - server.times[0] >= 1.0


@both
def test_patience_ends(mode: str) -> None:
    busy = answer(429, b"slow down", Retry_After="0")
    with ScriptedServer([busy] * 9) as server, pytest.raises(TooManyRequests, match="slow down"):
        run(mode, config_of(server), "get", "a")
    assert len(server.requests) == QUICK.attempts


@both
@pytest.mark.parametrize("fault", [answer(503, b""), answer(502, b""), answer(504, b""), None])
def test_reads_are_repeated_after_what_may_have_been_done_and_writes_are_not(
    mode: str, fault: Answer
) -> None:
    with ScriptedServer([fault, answer(200, BODY)]) as server:
        assert run(mode, config_of(server), "get", "a") == OBJECT
    with ScriptedServer([fault, answer(200, BODY)]) as server:
        with pytest.raises(Exception) as refused:
            run(mode, config_of(server), "create", OBJECT)
        assert getattr(refused.value, "code", 0) >= 500 or isinstance(refused.value, TransportError)
    assert len(server.requests) == 1


@both
def test_a_call_within_a_limit_ends_there(mode: str) -> None:
    began = time.monotonic()
    with ScriptedServer([200.0]) as server, pytest.raises(TransportError, match="no answer within"):
        run(mode, config_of(server), "get", "a", within=0.3)
    assert 0.25 < time.monotonic() - began < 100


@both
def test_the_limit_of_a_call_is_that_of_all_its_tries(mode: str) -> None:
    script = [answer(503, b""), answer(503, b""), 200.0]
    patient = RetryPolicy(first_wait=0.1)
    began = time.monotonic()
    with ScriptedServer(script) as server, pytest.raises(TransportError, match="no answer within"):
        run(mode, config_of(server), "get", "a", within=3.0, retry=patient)
    assert len(server.requests) == 3
    assert 2.9 < time.monotonic() - began < 100
    with ScriptedServer([BUSY]) as server, pytest.raises(TooManyRequests):
        run(mode, config_of(server), "get", "a", within=0.5)
    assert len(server.requests) == 1


def test_a_client_within_a_limit_shares_connections_and_makes_its_own_groups() -> None:
    from kubernetes_api.client import Client as Generated

    with ScriptedServer([answer(200, BODY)] * 2) as server, Generated(config_of(server)) as client:
        client.core_v1.configmaps.get("a")
        quick = client.within(2)
        assert quick.core_v1 is not client.core_v1
        quick.core_v1.configmaps.get("a")
        with pytest.raises(ValueError, match="within 0 seconds"):
            client.within(0)


@both
def test_a_server_that_is_not_there_is_not_a_request_sent(mode: str) -> None:
    with ScriptedServer([]) as server:
        config = config_of(server)
    with pytest.raises(TransportError) as refused:
        run(mode, config, "create", OBJECT)
    assert not refused.value.sent


@both
def test_a_silent_server_times_out(mode: str) -> None:
    with ScriptedServer([200.0]) as server:
        began = time.monotonic()
        with pytest.raises(
            TransportError, match=r"GET /api/v1/namespaces/default/configmaps/a: no answer"
        ) as late:
            run(mode, config_of(server), "get", "a", timeout=0.2)
        assert time.monotonic() - began < 100
    assert late.value.timed_out


@both
def test_a_server_that_drips_times_out_too(mode: str) -> None:
    class Dripping(ScriptedServer):
        def _serve(self, connection: Any) -> None:
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b"1\r\n \r\n")
                        time.sleep(0.02)
                except OSError:
                    return

    with Dripping([]) as server, pytest.raises(TransportError) as late:
        run(mode, config_of(server), "get", "a", timeout=0.3)
    assert late.value.timed_out


@both
@pytest.mark.parametrize(
    "cut",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}",
    ],
)
def test_half_an_answer_is_no_answer(mode: str, cut: bytes) -> None:
    class Cutting(ScriptedServer):
        def _serve(self, connection: Any) -> None:
            with connection:
                connection.recv(65536)
                connection.sendall(cut)

    with Cutting([]) as server, pytest.raises(TransportError) as half:
        run(mode, config_of(server), "create", OBJECT)
    assert half.value.sent


def test_cancelling_a_task_ends_its_request() -> None:
    async def story(server: ScriptedServer) -> None:
        async with AsyncClient(config_of(server), retry=QUICK) as client:
            task = asyncio.create_task(AsyncDynamicResource(client, MAPS).get("a"))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.broken.wait, 5)

    with ScriptedServer([20.0]) as server:
        asyncio.run(story(server))


def test_closing_a_watch_from_another_thread_ends_it(server: ApiServer, config: Config) -> None:
    with Client(config) as client:
        watch = DynamicResource(client, MAPS).watch(bookmarks=False)
        threading.Timer(0.2, watch.close).start()
        assert list(watch) == []


class OneCaller:
    """A socket that notes when two threads are in it, as OpenSSL must not have them."""

    def __init__(self, inner: socket.socket) -> None:
        self.inner = inner
        self.callers: list[int] = []
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if name not in ("recv", "send", "sendall"):
            return method

        def call(*arguments: Any) -> Any:
            self.callers.append(threading.get_ident())
            self.most = max(self.most, len(self.callers))
            try:
                return method(*arguments)
            finally:
                self.callers.remove(threading.get_ident())

        return call


def test_one_thread_at_a_time_is_in_the_socket_of_a_wire() -> None:
    ours, theirs = socket.socketpair()
    guarded: Any = OneCaller(ours)
    wire = Wire(guarded, "", "", [])
    got: list[bytes] = []
    with ours, theirs:
        reader = threading.Thread(target=lambda: got.extend(iter(wire.read, b"")), daemon=True)
        reader.start()
        writer = threading.Thread(
            target=wire.write, args=(bytes(4_000_000),), daemon=True
        )  # more than is buffered
        writer.start()
        theirs.sendall(b"hello")
        left = 4_000_000
        while left:
            left -= len(theirs.recv(1 << 20))
        writer.join(60)
        theirs.shutdown(socket.SHUT_WR)
        reader.join(60)
        assert b"".join(got) == b"hello"
        wire.close()
        with pytest.raises(TransportError, match="the connection broke"):
            wire.write(b"more")
    assert guarded.most == 1


def test_a_wire_that_is_closed_wakes_its_reader() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        wire = Wire(ours, "", "", [])

        def read() -> None:
            with contextlib.suppress(TransportError):
                wire.read()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        wire.close()
        reader.join(60)
        assert not reader.is_alive() and ours.fileno() == -1


def test_a_wire_that_is_closed_before_it_is_waited_for_wakes_its_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = socket.socketpair()
    woken: list[bool] = []

    class Late(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            wire.close()
            events = super().select(60.0)
            woken.append(bool(events))
            return events

    monkeypatch.setattr("apimachinery.client.links.selectors.DefaultSelector", Late)
    with theirs:
        wire = Wire(ours, "", "", [])
        with pytest.raises(TransportError):
            wire.read()
        assert woken == [True] and ours.fileno() == -1


@pytest.mark.parametrize("last", ["keep-alive", "close"])
def test_closing_a_watch_closes_its_socket(last: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: {last}\r\n\r\n".encode()
    with ScriptedServer([head]) as server, Client(config_of(server)) as client:
        watch = DynamicResource(client, MAPS).watch(bookmarks=False)
        wire = watch._stream._exchange.link.sock  # type: ignore[attr-defined]
        watch.close()
        assert wire.fileno() == -1


def test_a_silent_watch_is_broken_when_it_may_not_be_silent(config: Config) -> None:
    with Client(config) as client, pytest.raises(TransportError) as late:
        list(DynamicResource(client, MAPS).watch(silence=0.2, bookmarks=False))
    assert late.value.timed_out


# ------------------------------------------------------------------ proof of who asks


@pytest.fixture(scope="module")
def tls_server() -> Any:
    with ApiServer(tls=True) as running:
        yield running


@both
def test_tls_with_a_token(mode: str, tls_server: ApiServer) -> None:
    config = Config.load(tls_server.kubeconfig)
    assert config.is_tls
    assert run(mode, config, "create", {"metadata": {"generateName": "a-"}})["metadata"]["uid"]
    with pytest.raises(Unauthorized):
        run(mode, replace(config, token="wrong"), "get", "a")


@both
def test_a_server_of_another_authority_or_name_is_not_trusted(mode: str, tls_server: ApiServer) -> None:
    config = Config.load(tls_server.kubeconfig)
    for bad in (
        replace(config, certificate_authority=b""),
        replace(config, tls_server_name="other.example"),
    ):
        with pytest.raises(TransportError, match="certificate") as refused:
            run(mode, bad, "get", "a")
        assert not refused.value.sent
    blind = replace(config, certificate_authority=b"", insecure_skip_tls_verify=True)
    assert run(mode, blind, "create", {"metadata": {"generateName": "a-"}})["metadata"]["uid"]


@both
def test_a_client_certificate_is_shown(mode: str, tmp_path: Path) -> None:
    from apimachinery.http.tls import ensure_certificate

    (tmp_path / "server").mkdir()
    (tmp_path / "client").mkdir()
    server_pair = ensure_certificate(tmp_path / "server", "127.0.0.1")
    certificate, key = ensure_certificate(tmp_path / "client", "127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*server_pair)
    tls.load_verify_locations(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("")
    with ScriptedServer([answer(200, BODY)], tls=tls) as server:
        document = {
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [
                {
                    "name": "k",
                    "cluster": {
                        "server": f"https://127.0.0.1:{server.port}",
                        "certificate-authority": str(server_pair[0].relative_to(tmp_path)),
                    },
                }
            ],
            "users": [
                {
                    "name": "u",
                    "user": {"client-certificate": "client/" + certificate.name, "client-key": str(key)},
                }
            ],
        }
        kubeconfig.write_text(json.dumps(document))
        assert run(mode, Config.load(kubeconfig), "get", "a") == OBJECT
        assert server.peers[0]


@both
def test_an_exec_plugin_of_a_kubeconfig_is_asked_again_after_a_401(
    mode: str, tls_server: ApiServer, tmp_path: Path
) -> None:
    """Its first token is refused; the second is the right one."""
    document = json.loads(tls_server.kubeconfig.read_text())
    user = document["users"][0]["user"]
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, os, pathlib, sys\n"
        "count = pathlib.Path(__file__).with_suffix('.count')\n"
        "asked = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(asked + 1))\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'],\n"
        "  'status': {'token': sys.argv[1] if asked else 'stale'}}))\n"
    )
    document["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(plugin), user["token"]],
            "interactiveMode": "Never",
        }
    }
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(json.dumps(document))
    assert run(mode, Config.load(kubeconfig), "create", {"metadata": {"generateName": "a-"}})
    assert plugin.with_suffix(".count").read_text() == "2"


def test_a_certificate_without_its_key_is_refused_in_words(tls_server: ApiServer, tmp_path: Path) -> None:
    config = replace(Config.load(tls_server.kubeconfig), certificate=b"x", key=b"y")
    with pytest.raises(ConfigError, match="client-certificate and client-key do not fit"):
        run("sync", config, "get", "a")


@both
def test_a_write_on_a_kept_connection_that_breaks_is_not_sent_again(mode: str) -> None:
    async def awaited(config: Config) -> None:
        async with AsyncClient(config) as client:
            api = AsyncDynamicResource(client, MAPS)
            await api.get("a")
            await api.replace(OBJECT)

    def called(config: Config) -> None:
        with Client(config) as client:
            api = DynamicResource(client, MAPS)
            api.get("a")
            api.replace(OBJECT)

    with ScriptedServer([answer(200, BODY), None, answer(200, BODY)]) as server:
        config = config_of(server)
        with pytest.raises(TransportError) as broken:
            asyncio.run(awaited(config)) if mode == "async" else called(config)
        assert broken.value.sent
    assert [request.split()[0] for request in server.requests] == [b"GET", b"PUT"]


class ClosingServer(Listening):
    """Answers one request on each connection and closes it, without having said so."""

    def __init__(self) -> None:
        self.closed = threading.Semaphore(0)
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            connection.sendall(answer(200, BODY))
        self.closed.release()


@both
def test_a_connection_that_was_closed_in_the_pool_is_not_used(mode: str) -> None:
    async def awaited(config: Config) -> None:
        async with AsyncClient(config, retry=NO_RETRIES) as client:
            for _ in range(3):
                await AsyncDynamicResource(client, MAPS).create(OBJECT)
                assert server.closed.acquire(timeout=60)  # without a turn of the loop, which would hear of it

    def called(config: Config) -> None:
        with Client(config, retry=NO_RETRIES) as client:
            for _ in range(3):
                DynamicResource(client, MAPS).create(OBJECT)
                assert server.closed.acquire(timeout=60)

    with ClosingServer() as server:
        config = Config(server=f"http://127.0.0.1:{server.port}")
        asyncio.run(awaited(config)) if mode == "async" else called(config)


def test_nothing_is_left_of_calls_that_were_cancelled_and_streams_that_were_dropped(
    tls_server: ApiServer,
) -> None:
    async def story() -> None:
        async with AsyncClient(Config.load(tls_server.kubeconfig)) as client, asyncio.timeout(60):
            api = AsyncDynamicResource(client, MAPS)
            made = await api.create({"metadata": {"generateName": "a-"}})
            for pause in (0.0, 0.0, 0.001, 0.002, 0.004):
                tasks = [asyncio.create_task(api.get(made["metadata"]["name"])) for _ in range(20)]
                await asyncio.sleep(pause)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            pool = client._transport._pool
            assert len(pool._links) == len(pool.idle)
            watch = await api.watch()
            assert len(pool._links) == len(pool.idle) + 1
            async for _ in watch:
                break
            links = [*pool._links]
        assert all(link._transport is not None and link._transport.is_closing() for link in links)

    asyncio.run(story())


@both
@pytest.mark.parametrize("tls", [False, True])
def test_a_server_may_refuse_a_body_before_it_has_read_it(
    mode: str, tls: bool, config: Config, tls_server: ApiServer
) -> None:
    large = {"metadata": {"name": "a"}, "data": {"a": "b" * 20_000_000}}
    with pytest.raises(RequestEntityTooLarge, match="limit is 3145728"):
        run(mode, Config.load(tls_server.kubeconfig) if tls else config, "create", large, timeout=60.0)
