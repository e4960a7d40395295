"""Peers that fall silent, limits of calls, and what a server says beside its answer: on real sockets."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.test_wire import BODY, MAPS, OBJECT, both, config_of, run
from tests.client.wires import ScriptedServer, SilencingProxy, answer

from apimachinery.client import endpoint
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config
from apimachinery.client.connection import Client, warnings_of
from apimachinery.client.errors import TransportError
from apimachinery.client.reflector import ReflectorOptions
from apimachinery.client.resource import DynamicResource
from apimachinery.client.throttle import Limits
from apimachinery.queue.bucket import TokenBucket
from kubewright.testing import ApiServer


def put(server: ApiServer, namespace: str, name: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    server.request("POST", path, {"metadata": {"name": name}})


@pytest.fixture
def silencing(server: ApiServer) -> Iterator[SilencingProxy]:
    with SilencingProxy(server.port) as proxy:
        yield proxy


def through(proxy: SilencingProxy, config: Config) -> Config:
    return Config(server=f"http://127.0.0.1:{proxy.port}", namespace=config.namespace)


def test_the_default_is_about_that_of_client_go() -> None:
    assert ReflectorOptions().silence == 45.0


def test_an_informer_finds_a_half_open_watch(
    server: ApiServer, silencing: SilencingProxy, config: Config
) -> None:
    with Client(through(silencing, config)) as client:
        informer = DynamicResource(client, MAPS).informer(options=ReflectorOptions(silence=0.5))
        with informer:
            informer.wait_until_synced(60)
            put(server, config.namespace, "before")
            until(lambda: informer.store.get("before", namespace=config.namespace))
            silencing.silence()  # all that is open falls silent; what is opened later works
            put(server, config.namespace, "after")
            until(lambda: informer.store.get("after", namespace=config.namespace))


def test_an_informer_of_tasks_finds_a_half_open_watch(
    server: ApiServer, silencing: SilencingProxy, config: Config
) -> None:
    async def story() -> None:
        async with AsyncClient(through(silencing, config)) as client, asyncio.timeout(60):
            informer = AsyncDynamicResource(client, MAPS).informer(options=ReflectorOptions(silence=0.5))
            async with informer:
                await informer.wait_until_synced(60)
                silencing.silence()
                await asyncio.to_thread(put, server, config.namespace, "after")
                while informer.store.get("after", namespace=config.namespace) is None:
                    await asyncio.sleep(0.01)

    asyncio.run(story())


def test_a_quiet_watch_is_not_unhealthy(server: ApiServer, config: Config) -> None:
    heard: list[Exception] = []
    options = ReflectorOptions(silence=2.0, on_error=heard.append)
    with Client(config) as client, DynamicResource(client, MAPS).informer(options=options) as informer:
        informer.wait_until_synced(60)
        time.sleep(5)
        assert heard == []
        assert informer.healthy


@both
def test_the_head_of_a_watch_does_not_take_for_ever(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "OPENING_SECONDS", 0.2)
    began = time.monotonic()
    with ScriptedServer([200.0]) as server, pytest.raises(TransportError, match="no answer") as late:
        open_watch(mode, config_of(server))
    assert late.value.timed_out
    assert time.monotonic() - began < 100


def open_watch(mode: str, config: Config) -> None:
    async def awaited() -> None:
        async with AsyncClient(config) as client:
            await AsyncDynamicResource(client, MAPS).watch()

    if mode == "async":
        asyncio.run(awaited())
    else:
        with Client(config) as client:
            DynamicResource(client, MAPS).watch()


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="a platform without these options")
def test_connections_are_probed_by_the_kernel(server: ApiServer, config: Config) -> None:
    with Client(config) as client:
        watch = DynamicResource(client, MAPS).watch()
        wire = watch._stream._exchange.link.sock  # type: ignore[attr-defined]
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            wire.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        )
        assert idle + interval * count == 45
        watch.close()


def test_a_watch_that_ended_by_itself_gives_its_connection_back(config: Config) -> None:
    with Client(config) as client:
        maps = DynamicResource(client, MAPS)
        for _ in range(2):
            assert [e.type for e in maps.watch(timeout_seconds=1)] == ["BOOKMARK"]
        assert len(client._transport._pool.idle) == 1


# ------------------------------------------------------------------ how many at once, how fast


def test_gathered_calls_share_few_sockets(server: ApiServer, config: Config) -> None:
    put(server, config.namespace, "a")

    async def story(limits: Limits) -> int:
        async with AsyncClient(config, limits=limits) as client:
            api = AsyncDynamicResource(client, MAPS)
            await asyncio.gather(*(api.get("a") for _ in range(300)))
            return len(client._transport._pool.idle)

    assert asyncio.run(story(Limits())) <= 32
    assert asyncio.run(story(Limits(connections=3))) <= 3


def test_watches_do_not_take_the_places_of_calls(server: ApiServer, config: Config) -> None:
    put(server, config.namespace, "a")

    async def story() -> None:
        async with AsyncClient(config, limits=Limits(connections=1)) as client, asyncio.timeout(60):
            api = AsyncDynamicResource(client, MAPS)
            watches = [await api.watch() for _ in range(3)]
            await api.get("a")
            for watch in watches:
                await watch.close()

    asyncio.run(story())


def test_a_bucket_gives_a_burst_and_then_so_many_a_second() -> None:
    bucket = TokenBucket(5.0, 3)
    now = time.monotonic()
    waits = [bucket.reserve(now) for _ in range(5)]
    assert waits[:3] == [0.0] * 3
    assert [round(wait, 2) for wait in waits[3:]] == [0.2, 0.4]
    assert bucket.reserve(now + 60) == 0.0
    assert TokenBucket(0.0, 10).reserve() == 0.0


@both
def test_calls_are_held_back(mode: str) -> None:
    with ScriptedServer([answer(200, BODY)] * 4) as server:

        async def awaited() -> None:
            async with AsyncClient(config_of(server), limits=limits) as client:
                await asyncio.gather(*(AsyncDynamicResource(client, MAPS).get("a") for _ in range(4)))

        limits = Limits(qps=10, burst=1)
        began = time.monotonic()
        if mode == "async":
            asyncio.run(awaited())
        else:
            with Client(config_of(server), limits=limits) as client:
                for _ in range(4):
                    DynamicResource(client, MAPS).get("a")
        assert time.monotonic() - began >= 0.29


# ------------------------------------------------------------------ what is said beside an answer


WARNING = '299 - "batch/v1beta1 CronJob is deprecated \\"soon\\"", 299 - "another"'


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        (WARNING, ['batch/v1beta1 CronJob is deprecated "soon"', "another"]),
        ('299 - "one"\n299 - "two"', ["one", "two"]),
        ("199 - nothing", []),
        ("", []),
    ],
)
def test_warnings_are_read(header: str, texts: list[str]) -> None:
    assert warnings_of(header) == texts


@both
def test_warnings_are_logged_once_or_handed_on(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    said = answer(200, BODY, Warning='299 - "old kind"')
    with ScriptedServer([said, said]) as server:
        run(mode, config_of(server), "get", "a")
    assert caplog.text.count("the server warns: old kind") == 1
    heard: list[str] = []
    with ScriptedServer([said, said]) as server, Client(config_of(server), on_warning=heard.append) as client:
        assert DynamicResource(client, MAPS).get("a") == OBJECT
        assert DynamicResource(client, MAPS).get("a") == OBJECT
    assert heard == ["old kind"] * 2


@both
def test_the_user_agent_says_version_and_platform(mode: str) -> None:
    with ScriptedServer([answer(200, BODY)]) as server:
        run(mode, config_of(server), "get", "a")
    agent = next(line for line in server.requests[0].decode().split("\r\n") if line.startswith("User-Agent"))
    name, _, rest = agent.removeprefix("User-Agent: ").partition("/")
    assert name == "kubewright"
    assert rest[0].isdigit()
    assert sys.platform in rest


def test_a_platform_without_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll")
    with ScriptedServer([answer(200, BODY)] * 2) as server, Client(config_of(server)) as client:
        for _ in range(2):
            assert DynamicResource(client, MAPS).get("a") == OBJECT


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


# ------------------------------------------------------------------ proxies


class Socks5Server:
    """RFC 1928 and 1929, as much as a client that connects by name with a password needs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.password = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        methods = client.recv(2)[1]
        client.recv(methods)
        client.sendall(b"\x05\x02")
        user = client.recv(client.recv(2)[1])
        self.password = user + b":" + client.recv(client.recv(1)[0])
        client.sendall(b"\x01\x00")
        assert client.recv(4)[3] == 3  # by name
        name = client.recv(client.recv(1)[0]).decode()
        port = int.from_bytes(client.recv(2), "big")
        self.asked.append((name, port))
        server = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for side in (source, sink):
                side.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@both
def test_a_socks_proxy_is_asked_by_name_and_with_a_password(mode: str) -> None:
    pytest.importorskip("python_socks")
    proxy = Socks5Server()
    with ScriptedServer([answer(200, BODY)]) as server:
        config = Config(
            server=f"http://api.invalid:{server.port}", proxy_url=f"socks5://me:p%40ss@127.0.0.1:{proxy.port}"
        )
        assert run(mode, config, "get", "a") == OBJECT
    assert proxy.asked == [("api.invalid", server.port)]
    assert proxy.password == b"me:p@ss"
    proxy.close()


@both
def test_a_proxy_gets_its_password_and_the_server_does_not(mode: str) -> None:
    with ScriptedServer([answer(200, BODY)]) as proxy:
        config = Config(server="http://api.invalid:80", proxy_url=f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        assert run(mode, config, "get", "a") == OBJECT
    head = proxy.requests[0].decode()
    assert head.startswith("GET http://api.invalid")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==" in head


def test_another_proxy_is_refused_without_its_password() -> None:
    with pytest.raises(Exception, match=r'^proxy "ftp://proxy:1": only http, https and socks5'):
        Client(Config(server="http://a", proxy_url="ftp://me:secret@proxy:1"))


# ------------------------------------------------------------------ OIDC


def token_until(seconds: float) -> str:
    import base64

    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode()
    return f"header.{claims.rstrip('=')}.s{int(seconds)}"


def test_an_expired_id_token_is_refreshed_and_kept(tmp_path: Any) -> None:
    fresh, old = token_until(600), token_until(-600)
    kubeconfig = tmp_path / "config"
    with ScriptedServer([]) as provider:
        discovery = {"token_endpoint": f"http://127.0.0.1:{provider.port}/token"}
        told = {"id_token": fresh, "refresh_token": "rotated"}
        script = [answer(200, json.dumps(body).encode(), Connection="close") for body in (discovery, told)]
        provider._script = iter(script)
        settings = {
            "idp-issuer-url": f"http://127.0.0.1:{provider.port}",
            "client-id": "kube",
            "client-secret": "hush",
            "id-token": old,
            "refresh-token": "first",
        }
        user = {"auth-provider": {"name": "oidc", "config": settings}}
        with ScriptedServer([answer(200, BODY)]) as server:
            document = {
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
                "users": [{"name": "u", "user": user}],
            }
            kubeconfig.write_text("# mine\n" + json.dumps(document))
            kubeconfig.chmod(0o600)
            assert run("sync", Config.load(kubeconfig, environment={}), "get", "a") == OBJECT
    assert f"Authorization: Bearer {fresh}" in server.requests[0].decode()
    assert b"grant_type=refresh_token" in provider.requests[1]
    assert b"client_secret=hush" in provider.requests[1]
    kept = kubeconfig.read_text()
    assert kept.startswith("# mine\n")
    assert "rotated" in kept
    assert fresh in kept
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
