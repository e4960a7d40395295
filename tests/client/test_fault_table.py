"""Whatever goes wrong on the way: cache = list = what handlers heard. For threads, tasks and streaming lists.

Each row is a fault; objects are made, changed and deleted before, during and after it. FAULT_SECONDS is how long faults
that last do so (3 in the published table).
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.client.test_unreadable import AsyncLights, Lights
from tests.client.test_wire import MAPS

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.config import Config, ConfigError, ExecPlugin
from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError, NotFound
from apimachinery.client.reflector import ReflectorOptions
from apimachinery.client.resource import DynamicResource
from kubewright.testing import ApiServer, FaultProxy, History
from kubewright.testing.faults import watches

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("FAULT_SECONDS", "0.3"))
Mode = Literal["sync", "async", "streaming"]
MODES: tuple[Mode, ...] = ("sync", "async", "streaming")


class World:
    """Objects that change, on the server itself: no fault is in the way of the one who changes them."""

    def __init__(self, server: ApiServer, namespace: str, seed: int) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._random = random.Random(seed)
        self._names: set[str] = set()
        self._count = 0

    def change(self, times: int = 5) -> None:
        for _ in range(times):
            self._count += 1
            dice = self._random.random()
            if self._names and dice < 0.25:
                name = self._random.choice(sorted(self._names))
                self._names.discard(name)
                self._server.request("DELETE", f"{self._path}/{name}")
            elif self._names and dice < 0.6:
                name = self._random.choice(sorted(self._names))
                body = {"data": {"colour": self._random.choice(["red", "green"]), "n": str(self._count)}}
                self._server.request("PATCH", f"{self._path}/{name}", body, "application/merge-patch+json")
            else:
                name = f"m{self._random.randrange(10)}"
                if name not in self._names:
                    self._names.add(name)
                    self.put(name, "red")

    def put(self, name: str, colour: str) -> None:
        data = {"colour": colour, "n": str(self._count)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        path = f"{self._path}/{name}?fieldManager=w&force=true"
        self._server.request("PATCH", path, body, "application/apply-patch+yaml")

    def list(self) -> list[Any]:
        items: list[Any] = self._server.request("GET", self._path)["items"]
        return items


@contextmanager
def following(config: Config, mode: Mode, typed: bool = False) -> Iterator[tuple[History[Any], Any]]:
    """An informer of a kind, with a history that listens."""
    options = ReflectorOptions(streaming=mode == "streaming", silence=1.0, first_wait=0.02, longest_wait=0.2)
    history: History[Any] = History()
    if mode != "async":
        with Client(config) as client:
            informer = (Lights(client) if typed else DynamicResource(client, MAPS)).informer(options=options)
            informer.add_handler(history.hear)
            with informer:
                informer.wait_until_synced(60)
                yield history, informer
        return
    loop = asyncio.new_event_loop()
    ready, ending = threading.Event(), asyncio.Event()
    held: list[Any] = []

    async def run() -> None:
        from apimachinery.client.async_resource import AsyncDynamicResource

        async with AsyncClient(config) as client:
            api = AsyncLights(client) if typed else AsyncDynamicResource(client, MAPS)
            informer = api.informer(options=options)
            informer.add_handler(history.hear_awaited)
            async with informer:
                await informer.wait_until_synced(60)
                held.append(informer)
                ready.set()
                await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield history, held[0]
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(60)
        loop.close()


@pytest.fixture(scope="module")
def private() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def proxy(private: ApiServer) -> Iterator[FaultProxy]:
    with FaultProxy(lambda: private.port) as running:
        yield running


def lasting(fault: Any) -> Callable[[FaultProxy, World], None]:
    def story(proxy: FaultProxy, world: World) -> None:
        with proxy.during(fault):
            proxy.break_open("reset")
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends:
                world.change()
                time.sleep(SECONDS / 5)

    return story


def cut(how: Any) -> Callable[[FaultProxy, World], None]:
    def story(proxy: FaultProxy, world: World) -> None:
        for _ in range(5):
            proxy.break_open(how)
            world.change()
            time.sleep(0.03)

    return story


def of_watches(fault: Any) -> Callable[[FaultProxy, World], None]:
    def story(proxy: FaultProxy, world: World) -> None:
        proxy.inject(fault, times=3, when=watches)
        proxy.break_open("reset")
        world.change()

    return story


def refused(proxy: FaultProxy, world: World) -> None:
    proxy.refuse()
    world.change()
    time.sleep(SECONDS)
    world.change()
    proxy.refuse(False)


def anything(proxy: FaultProxy, world: World) -> None:
    proxy.random(seed=11, rate=0.5)
    for _ in range(10):
        proxy.break_open("reset")
        world.change(2)
        time.sleep(0.05)
    proxy.calm()


STORIES: dict[str, Callable[[FaultProxy, World], None]] = {
    "RST": cut("reset"),
    "refused": refused,
    "401 for a while": lasting("unauthorized"),
    "403 for a while": lasting("forbidden"),
    "404 for a while": lasting("not-found"),
    "410 as answer": of_watches("gone"),
    "410 as event": of_watches("gone-event"),
    "429": lasting("too-many"),
    "500": lasting("internal-error"),
    "503": lasting("unavailable"),
    "truncated": cut("truncate"),
    "half-open": cut("half-open"),
    "slow": lasting("delay"),
    "anything, by seed": anything,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STORIES)
def test_fault_table(name: str, mode: Mode, private: ApiServer, proxy: FaultProxy) -> None:
    with private.namespace() as namespace:
        world = World(private, namespace, seed=len(name))
        world.change(10)
        config = Config(server=proxy.url, namespace=namespace)
        with following(config, mode) as (history, informer):
            world.change()
            STORIES[name](proxy, world)
            world.change()
            history.check(world.list, informer.store.list)
            assert history.changes  # how many depends on which of them lists made one


@pytest.mark.parametrize("mode", MODES)
def test_one_unreadable_object(mode: Mode, private: ApiServer, proxy: FaultProxy) -> None:
    def readable() -> list[Any]:
        return [obj for obj in world.list() if obj["data"]["colour"] in ("red", "green")]

    with private.namespace() as namespace:
        world = World(private, namespace, seed=5)
        world.change(10)
        world.put("odd", "blue")
        with following(Config(server=proxy.url, namespace=namespace), mode, typed=True) as (
            history,
            informer,
        ):
            world.change()
            world.put("odder", "red")
            world.put("odder", "mauve")
            world.change()
            history.check(readable, informer.store.list)
            assert {key[1] for key in informer.unreadable} == {"odd", "odder"}
            proxy.break_open("reset")
            world.put("odd", "green")
            history.check(readable, informer.store.list)


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.fault.example.com"},
    "spec": {
        "group": "fault.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/fault.example.com/v1/namespaces/default/things"


def test_a_definition_deleted_and_made_again() -> None:
    with ApiServer() as server:

        def make(*names: str) -> None:
            server.request("POST", CRDS, CRD)
            server._wait_until_served(CRD)
            for name in names:
                body = {"apiVersion": "fault.example.com/v1", "kind": "Thing", "metadata": {"name": name}}
                server.request("POST", THINGS, body)

        def listed() -> list[Any]:
            try:
                return list(server.request("GET", THINGS)["items"])
            except ApiError:
                return [None]  # not served: nothing can be the same

        make("a", "b")
        options = ReflectorOptions(first_wait=0.02, longest_wait=0.2, silence=1.0)
        history: History[Any] = History()
        with server.client() as client:
            informer = DynamicResource.of(client, "fault.example.com/v1", "Thing").informer(options=options)
            informer.add_handler(history.hear)
            with informer:
                informer.wait_until_synced(60)
                server.request("DELETE", f"{CRDS}/{CRD['metadata']['name']}")
                ends = time.monotonic() + 60
                while not isinstance(informer.last_error, NotFound):
                    assert time.monotonic() < ends
                    time.sleep(0.01)
                make("b", "c")
                history.check(listed, informer.store.list)


@pytest.mark.parametrize("mode", MODES)
def test_an_exec_plugin_that_fails_for_a_while(
    mode: Mode, private: ApiServer, proxy: FaultProxy, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, os, pathlib, sys\n"
        f"if pathlib.Path({str(broken)!r}).exists(): sys.exit('no network')\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "status = {'token': sys.argv[1], 'expirationTimestamp': '2020-01-01T00:00:00Z'}\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'], 'status': status}))\n"
    )
    token = Config.load(private.kubeconfig).token or "none"
    login = ExecPlugin(
        api_version="client.authentication.k8s.io/v1",
        command=sys.executable,
        args=(str(plugin), token),
        interactive_mode="Never",
    )
    with private.namespace() as namespace:
        world = World(private, namespace, seed=3)
        world.change(10)
        config = Config(server=proxy.url, namespace=namespace, exec_plugin=login)
        with following(config, mode) as (history, informer):
            broken.touch()
            proxy.break_open("reset")
            world.change()
            ends = time.monotonic() + 60
            while not isinstance(informer.last_error, ConfigError):
                assert time.monotonic() < ends
                time.sleep(0.01)
            broken.unlink()
            history.check(world.list, informer.store.list)


@pytest.mark.slow
def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """kill -9 of a server on SQLite, and another one on the same file and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "kubewright", "serve", "--storage", f"sqlite:///{tmp_path}/x.db"),
        *("--port", str(port), "--controllers", "none", "--log-level", "error", "--anonymous-admin"),
    ]
    path = os.pathsep.join(str(ROOT / name) for name in ("generator", "generated"))

    def start(turn: int) -> subprocess.Popen[bytes]:
        kubeconfig = tmp_path / f"kubeconfig{turn}"
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 60
        while not kubeconfig.exists():
            assert process.poll() is None
            assert time.monotonic() < ends
            time.sleep(0.05)
        return process

    process = start(0)
    try:
        kubeconfig = Config.load(tmp_path / "kubeconfig0")
        history: History[Any] = History()
        options = ReflectorOptions(first_wait=0.02, longest_wait=0.2, silence=2.0)
        with Client(kubeconfig) as client:
            maps = DynamicResource(client, MAPS)
            informer = maps.informer(options=options)
            informer.add_handler(history.hear)
            with informer:
                informer.wait_until_synced(60)
                for turn in range(1, 3):
                    for number in range(20):
                        maps.create({"metadata": {"name": f"m{turn}-{number}"}})
                    process.kill()
                    process.wait(60)
                    process = start(turn)
                    maps.delete(f"m{turn}-0")
                    history.check(maps.list, informer.store.list, seconds=20)
    finally:
        process.kill()
        process.wait(60)
