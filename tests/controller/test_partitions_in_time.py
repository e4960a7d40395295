"""Partitions by seed in a time of their own: a loop whose clock jumps from event to event, and a server in memory.

So a minute of black holes, refusals and slow answers takes milliseconds, and goes the same way each time. The operators
are whole (informers, election, fence, controllers); ``test_partitions`` has the same on sockets, for threads too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import selectors
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

import pytest
from tests.controller.forms import QUICK

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.bodies import TransportError
from apimachinery.client.config import Config
from apimachinery.client.endpoint import Request, TransportResponse
from apimachinery.controller.async_controller import AsyncContext, AsyncController
from apimachinery.controller.async_election import AsyncElection
from apimachinery.controller.async_operator import AsyncOperator
from apimachinery.controller.requests import LostLeadership, generation_changed
from apimachinery.queue.backlog import ExponentialBackoff
from apimachinery.queue.clock import Clock
from website_api.example_v1 import Website, WebsiteStatus

SEEDS = int(os.environ.get("PARTITION_RUNS", "12"))
SECONDS = 240.0
Trouble: TypeAlias = Literal["hole", "busy", "broken", "slow", "half-open", "jump"]
SITE = "/apis/example.kubewright.dev/v1/namespaces/n/websites/site"


class Selector(selectors.SelectSelector):
    """Waits for nothing: what would be waited for has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits for somebody else"
            self.passed += timeout
        return found


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passing = Selector()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.passed


class LoopClock(Clock):
    """The loop's time, ahead of it where the machine of a copy slept."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead

    def real(self, seconds: float | None) -> float | None:
        return seconds


class World:
    """A server: objects by path, with versions and watchers; keeps who wrote which status, and when."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.watchers: set[asyncio.Queue[bytes]] = set()
        self.version = 0
        self.statuses: list[tuple[float, str]] = []

    def put(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        old = self.objects.get(path, {"metadata": {"generation": 0}})
        generation = old["metadata"].get("generation", 0) + (old.get("spec") != obj.get("spec"))
        name = path.rpartition("/")[2]
        meta = {"name": name, "namespace": "n", "uid": name, "generation": generation}
        made = {**obj, "metadata": {**meta, "resourceVersion": str(self.version)}}
        self.objects[path] = made
        if "/websites/" in path:
            line = json.dumps({"type": "MODIFIED", "object": made})
            for watcher in self.watchers:
                watcher.put_nowait(line.encode())
        return made

    def answer(self, request: Request) -> tuple[int, dict[str, Any]]:
        path = request.path
        body = json.loads(request.body) if request.body else {}
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return 409, {"reason": "AlreadyExists"}
            return 201, self.put(path, body)
        of_status = path.endswith("/status")
        path = path.removesuffix("/status")
        old = self.objects.get(path)
        if request.method == "GET" and path.endswith("websites"):
            items = [obj for key, obj in self.objects.items() if key.startswith(path)]
            return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        if old is None:
            return 404, {"reason": "NotFound"}
        if request.method == "GET":
            return 200, old
        if body["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
            return 409, {"reason": "Conflict"}
        if not of_status:
            return 200, self.put(path, body)
        self.statuses.append((asyncio.get_running_loop().time(), body["status"]["address"]))
        return 200, self.put(path, {**old, "status": body["status"]})


class Link:
    """The way of one copy to the server, and what is wrong with it."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world = world
        self.trouble: Trouble | None = None
        self.streams: set[Stream] = set()
        self._dice = dice

    async def send(self, request: Request) -> TransportResponse:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._exchange(request)
        except TimeoutError:
            raise TransportError("no answer", sent=True, timed_out=True) from None

    async def _exchange(self, request: Request) -> TransportResponse:
        await self._travel()
        if self.trouble == "busy":
            return TransportResponse(429, {"retry-after": "20"}, b"")
        if self.trouble == "broken":
            return TransportResponse(500, {}, b"")
        code, answer = self.world.answer(request)
        if code >= 400:
            answer = {"kind": "Status", "code": code, **answer}
        await self._travel()
        return TransportResponse(code, {}, json.dumps(answer).encode())

    async def _travel(self) -> None:
        if self.trouble == "hole":
            await asyncio.sleep(1e6)  # what is lost is lost: timeouts end it
        await asyncio.sleep(self._dice.uniform(0.5, 6.0) if self.trouble == "slow" else 0.005)

    async def stream(self, request: Request) -> Stream:
        async with asyncio.timeout(10):
            await self._travel()
        return Stream(self, request.timeout)

    async def close(self) -> None: ...


class Stream:
    """A watch; silent where its connection is half open."""

    def __init__(self, link: Link, silence: float | None) -> None:
        self.code = 200
        self.headers: Mapping[str, str] = {}
        self.dead = False
        self._link, self._silence = link, silence
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        for obj in (obj for path, obj in link.world.objects.items() if "/websites/" in path):
            self._lines.put_nowait(json.dumps({"type": "MODIFIED", "object": obj}).encode())
        link.world.watchers.add(self._lines)
        link.streams.add(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    line = await self._lines.get()
                    if self.dead or self._link.trouble == "hole":
                        self.dead = True
                        await asyncio.sleep(1e6)
            except TimeoutError:
                raise TransportError("silence", sent=True, timed_out=True) from None
            yield line

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        self._link.world.watchers.discard(self._lines)
        self._link.streams.discard(self)


class Place:
    """Where copies run, one after the other: a lost one is followed by another, under a name of its own."""

    def __init__(self, world: World, use: str, name: str, dice: random.Random) -> None:
        self.link = Link(world, dice)
        self.clock = LoopClock()
        self.operator: AsyncOperator | None = None
        self.losses = 0
        self._use, self._name = use, name
        self._stop = asyncio.Event()

    @property
    def leading(self) -> bool:
        return self.operator is not None and self.operator.leading

    async def run(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            try:
                await self._once(f"{self._name}{number}")
            except LostLeadership:
                self.losses += 1

    async def end(self) -> None:
        self._stop.set()
        if self.operator is not None:
            self.operator.stop()

    async def _once(self, name: str) -> None:
        link = self.link

        class LinkedClient(AsyncClient):
            def _open(self) -> None:
                self._transport = link  # type: ignore[assignment]

        async def reconcile(context: AsyncContext[Website], site: Website) -> None:
            for step in ("working", "ready"):
                site.status = WebsiteStatus(address=f"{name}:{site.metadata.generation}:{step}")
                await context.write_status(site)
                await asyncio.sleep(random.Random(name).uniform(0, 3))

        made = AsyncController(
            for_=Website,
            reconcile=reconcile,
            when=generation_changed,
            limiter=ExponentialBackoff(0.1, 5.0),
            clock=self.clock,
        )
        election = AsyncElection(name="lock", namespace="n", identity=name)
        client = LinkedClient(Config(server="http://nowhere", namespace="n"))
        self.operator = operator = AsyncOperator(
            client,
            [made],
            namespace="n",
            election=election,
            options=QUICK,
            clock=self.clock,
            sync_seconds=1e9,
        )
        if self._use == "run":
            await operator.run(signals=False)
            return
        async with operator:
            while not self._stop.is_set() and not operator._lost:
                await asyncio.sleep(0.5)


async def trouble(places: list[Place], world: World, dice: random.Random) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() < SECONDS:
        await asyncio.sleep(dice.uniform(1, 8))
        leader = next((place for place in places if place.leading), places[0])
        place = leader if dice.random() < 0.7 else dice.choice(places)
        kind = dice.choice(get_args(Trouble))
        spec = {"image": f"i{loop.time():g}"}
        world.put(SITE, {**world.objects[SITE], "spec": spec})
        if kind == "jump":
            place.clock.ahead += dice.uniform(1, 20) if place.leading else 0
        elif kind == "half-open":
            for stream in place.link.streams:
                stream.dead = True
        else:
            place.link.trouble = kind
            await asyncio.sleep(dice.choice([0.5, 3, 9, 16, 45]))
            place.link.trouble = None


async def story(seed: int) -> None:
    dice, world, overlaps = random.Random(seed), World(), 0
    site = {"apiVersion": "example.kubewright.dev/v1", "kind": "Website", "spec": {"image": "i"}}
    world.put(SITE, site)
    use = dice.choice(["run", "with"])
    places = [Place(world, use, name, dice) for name in "ab"]
    runs = [asyncio.create_task(place.run()) for place in places]
    troubles = asyncio.create_task(trouble(places, world, dice))
    while not troubles.done():
        overlaps += all(place.leading for place in places)
        await asyncio.sleep(0.05)
    await troubles
    wanted = f":{world.objects[SITE]['metadata']['generation']}:ready"
    ends = asyncio.get_running_loop().time() + 120
    while not world.objects[SITE].get("status", {}).get("address", "").endswith(wanted):
        assert asyncio.get_running_loop().time() < ends, world.statuses[-5:]
        await asyncio.sleep(0.1)
    for place in places:
        await place.end()
    await asyncio.gather(*runs)
    assert not overlaps
    writers = [name for name, _ in itertools.groupby(status.split(":")[0] for _, status in world.statuses)]
    assert len(writers) == len(set(writers)), world.statuses
    assert world.statuses[-1][1].endswith(wanted)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_partitions_in_time(seed: int) -> None:
    loop = Loop()
    try:
        loop.run_until_complete(story(seed))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
