"""Informers against our own server: thousands of objects, and hundreds of cut connections."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.client.wires import CuttingProxy

from apimachinery.client.access import name_of, resource_version_of
from apimachinery.client.config import Config
from apimachinery.client.reflector import Change, ReflectorOptions
from kubernetes_api.async_client import AsyncClient
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import ConfigMap
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer

OBJECTS = 2_000
CUTS = [200, pytest.param(1_000, marks=pytest.mark.thorough)]
IMPATIENT = ReflectorOptions(first_wait=0.001, longest_wait=0.005)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


class Heard:
    """What a handler heard, held against what each object went through: no step twice, none after its end."""

    def __init__(self) -> None:
        self.versions: dict[str, list[str]] = {}
        self.alive: dict[str, ConfigMap] = {}
        self.kinds: Counter[str] = Counter()
        self.faults: list[str] = []

    def __call__(self, change: Change[ConfigMap]) -> None:
        name, version = name_of(change.object), resource_version_of(change.object)
        self.kinds[change.kind] += 1
        known = self.alive.get(name)
        if (change.kind == "ADDED") == (known is not None):
            self.faults.append(f"{change.kind} of {name}, which was {'' if known else 'not '}there")
        if change.kind != "DELETED" and version in self.versions.get(name, ()):
            self.faults.append(f"{name} at {version} twice")
        if change.kind == "MODIFIED" and change.old is not known:
            self.faults.append(f"{name}: old is not what was told before")
        self.versions.setdefault(name, []).append(version)
        if change.kind == "DELETED":
            del self.alive[name]
        else:
            self.alive[name] = change.object

    def state(self) -> dict[str, dict[str, str] | None]:
        return {name: obj.data for name, obj in list(self.alive.items())}  # another thread writes


class Writer:
    """Creates, changes and deletes at random, and keeps every version it made."""

    def __init__(self, config: Config, seed: int) -> None:
        self._client = Client(config)
        self._random = random.Random(seed)
        self.made: dict[str, list[str]] = {}
        self.state: dict[str, dict[str, str] | None] = {}

    def step(self, number: int) -> None:
        maps, name = self._client.core_v1.configmaps, f"n{self._random.randrange(20)}"
        if name not in self.state:
            made = maps.create(config_map(name, step=str(number)))
        elif self._random.random() < 0.2:
            maps.delete(name)
            del self.state[name]
            return
        else:
            made = maps.patch(name, {"data": {"step": str(number)}})
        self.state[name] = made.data
        self.made.setdefault(name, []).append(resource_version_of(made))

    def close(self) -> None:
        self._client.close()


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("streaming", [False, True])
def test_cut_connections_lose_and_double_nothing(
    server: ApiServer, config: Config, streaming: bool, cuts: int
) -> None:
    """Every version written is told once and in order, whatever is cut: relisting is never needed here."""
    heard, second, writer = Heard(), Heard(), Writer(config, seed=7)
    with CuttingProxy(server.port, cuts=cuts, seed=3) as proxy:
        through = replace(config, server=f"http://127.0.0.1:{proxy.port}")
        with Client(through) as client:
            informer = client.core_v1.configmaps.informer(options=replace(IMPATIENT, streaming=streaming))
            informer.add_handler(heard)
            informer.add_handler(second)
            with informer:
                informer.wait_until_synced(30)
                number = 0
                until = time.monotonic() + 120
                while not proxy.done.is_set() and time.monotonic() < until:
                    writer.step(number)
                    number += 1
                for _ in range(50):
                    writer.step(number)
                    number += 1
                wait_for(lambda: heard.state() == writer.state == second.state())
        made = proxy.made
    writer.close()
    assert made == cuts
    assert heard.faults == second.faults == []
    told = {
        name: [v for v in versions if v in writer.made[name]] for name, versions in heard.versions.items()
    }
    assert told == writer.made
    assert heard.kinds == second.kinds


def wait_for(condition: object, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise AssertionError("not within the time given")
        time.sleep(0.01)


@pytest.fixture(scope="module")
def crowd() -> Iterator[Config]:
    """A server with thousands of objects: several pages of a list."""
    with ApiServer(controllers="none") as server, Client(Config.load(server.kubeconfig)) as client:
        for number in range(OBJECTS):
            client.core_v1.configmaps.create(config_map(f"m{number:05}", parity=str(number % 2)))
        yield Config.load(server.kubeconfig)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_informer_over_thousands_of_objects(crowd: Config, streaming: bool) -> None:
    threads = threading.active_count()
    with Client(crowd) as client:
        maps = client.core_v1.configmaps
        heard = Heard()
        informer = maps.informer(
            indexers={"parity": lambda obj: [(obj.data or {}).get("parity", "")]},
            options=replace(IMPATIENT, streaming=streaming),
        )
        informer.add_handler(heard)
        with informer:
            informer.wait_until_synced(60)
            assert len(informer.store) == OBJECTS
            assert len(list(informer.store.by_index("parity", "1"))) == OBJECTS // 2
            late = Heard()
            informer.add_handler(late)
            maps.patch("m00001", {"data": {"parity": "0"}})
            maps.delete("m00003")
            maps.create(config_map("m00003", parity="1"))
            wait_for(lambda: late.kinds["DELETED"] and late.state() == heard.state())
            wait_for(lambda: len(list(informer.store.by_index("parity", "1"))) == OBJECTS // 2 - 1)
        assert heard.faults == late.faults == []
        assert len(heard.alive) == len(late.alive) == OBJECTS
        maps.patch("m00001", {"data": {"parity": "1"}})
    wait_for(lambda: threading.active_count() <= threads)


def test_an_async_informer_over_thousands_of_objects(crowd: Config) -> None:
    async def story() -> None:
        async with AsyncClient(crowd) as client:
            heard = Heard()

            async def handle(change: Change[ConfigMap]) -> None:
                heard(change)

            informer = client.core_v1.configmaps.informer(options=IMPATIENT)
            informer.add_handler(handle)
            async with informer:
                await informer.wait_until_synced(60)
                assert len(informer.store) == OBJECTS
                await client.core_v1.configmaps.patch("m00001", {"data": {"seen": "yes"}})
                async with asyncio.timeout(60):
                    while not heard.kinds["MODIFIED"]:
                        await asyncio.sleep(0.01)
            assert heard.faults == []
            assert heard.kinds == {"ADDED": OBJECTS, "MODIFIED": 1}

    asyncio.run(story())
