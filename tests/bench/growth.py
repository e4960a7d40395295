"""How costs grow: each line at growing numbers of objects, watches, policies or definitions, in one run.

    python tests/bench/growth.py [WORD …] [--largest N]

Prints microseconds of CPU at each number and the exponent of the growth between the first and the last one: 0 where the
number does not matter, 1 where the cost grows with it. The API runs in this process, on memory storage. The last line
is about a SQLite database that is opened: the memory and the CPU that one of its objects takes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.http.messages import Request, Response, User
from apimachinery.server.assembly.api import build_api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.process import Backend, ServerOptions
from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.watch_cache import WatchCache

HEADERS = {"host": "x", "user-agent": "bench/1", "content-type": "application/json"}
MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROUNDS = 60
Step = Callable[[int], Awaitable[object]]


class World:
    """An API on memory storage."""

    storage: MemoryStorage | SqliteStorage

    async def open(self) -> World:
        self.storage = MemoryStorage()
        cache = await WatchCache.open(self.storage)
        backend = Backend(cache, OPEN_TO_LOOPBACK, ServerOptions(fairness=False))
        self.api = build_api(backend, ApiOptions(controllers=frozenset({"definitions"})))
        await self.api.start()
        return self

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """An answer of 2xx. Asks as a user, whom policies are about."""
        path, _, query = path.partition("?")
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, HEADERS, data)
        request.user = User("bench", groups=("system:masters", "system:authenticated"))
        answer = await self.api.handle(request)
        if isinstance(answer, Response):
            assert answer.status < 300, (answer.status, answer.body)
        return answer

    async def fill(self, count: int) -> None:
        """Stores ConfigMaps below the API, where that is quick."""
        for low in range(0, count, 1_000):
            numbers = range(low, min(low + 1_000, count))
            await asyncio.gather(*(self.store(f"cm-{number:07}") for number in numbers))

    async def store(self, name: str) -> None:
        """Stores a ConfigMap."""
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": REVISION_MARK}
        obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"k": "v" * 300}}
        value = Value.cut(json.dumps(obj, separators=(",", ":")).encode())
        await self.storage.create(f"/core/configmaps/default/{name}", value)


def config_map(name: str, value: str = "v") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}


async def list_after_write(world: World, count: int) -> Step:
    await world.fill(count)

    async def step(number: int) -> None:
        await world.ask("POST", MAPS, config_map(f"new-{number}"))
        await world.ask("GET", f"{MAPS}?limit=50")

    return step


async def create(world: World, count: int) -> Step:
    await world.fill(count)
    return lambda number: world.ask("POST", MAPS, config_map(f"cm-{number * 7919 % count:07}-{number}"))


async def name_in_all_namespaces(world: World, count: int) -> Step:
    await world.fill(count)
    return lambda _: world.ask("GET", f"/api/v1/configmaps?fieldSelector=metadata.name%3Dcm-{count // 2:07}")


async def watches_of_other_values(world: World, count: int) -> Step:
    base = "/api/v1/namespaces/default/pods?watch=1&resourceVersion=1&fieldSelector=spec.nodeName%3D"
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.ask("POST", "/api/v1/namespaces/default/pods", {**pod, "metadata": {"name": "first"}})

    async def watch(number: int) -> None:
        answer = await world.ask("GET", f"{base}node-{number}")
        async for _ in answer.parts:
            pass

    world.watching = [asyncio.ensure_future(watch(number)) for number in range(count)]  # type: ignore[attr-defined]
    await asyncio.sleep(0.1)
    return lambda number: world.ask(
        "POST", "/api/v1/namespaces/default/pods", {**pod, "metadata": {"name": f"p-{number}"}}
    )


async def policies_about_others(world: World, count: int) -> Step:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
    for number in range(count):
        name = {"name": f"p-{number}"}
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
        await world.ask("POST", POLICIES, {"metadata": name, "spec": spec})
        bound = {"policyName": name["name"], "validationActions": ["Deny"]}
        await world.ask("POST", f"{POLICIES.removesuffix('ies')}ybindings", {"metadata": name, "spec": bound})
    return lambda number: world.ask("POST", MAPS, config_map(f"cm-{number}"))


def definition(number: int, generation: int = 0) -> dict[str, Any]:
    names = {"plural": f"things{number}", "kind": f"Thing{number}"}
    fields = {f"f{n}": {"type": "string", "description": "a field " * 8} for n in range(12)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    schema["description"] = f"generation {generation}"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{number}.g{number % 20}.example.com"},
        "spec": {
            "group": f"g{number % 20}.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


async def openapi_after_a_change(world: World, count: int) -> Step:
    for number in range(count):
        await world.ask("POST", CRDS, definition(number))
    while b"g0.example.com" not in (await world.ask("GET", "/apis")).body:
        await asyncio.sleep(0.05)
    await world.ask("GET", "/openapi/v2")

    async def step(number: int) -> None:
        changed = definition(0, number + 1)
        path = f"{CRDS}/{changed['metadata']['name']}"
        stored = json.loads((await world.ask("GET", path)).body)
        changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        await world.ask("PUT", path, changed)
        shown = f"generation {number + 1}".encode()
        while shown not in (await world.ask("GET", "/openapi/v3/apis/g0.example.com/v1")).body:
            await asyncio.sleep(0)  # the controller of definitions has not seen the change
        await world.ask("GET", "/openapi/v2")

    return step


LINES: dict[str, tuple[Callable[[World, int], Awaitable[Step]], tuple[int, ...]]] = {
    "a page of 50 right after a create, among N objects": (
        list_after_write,
        (1_000, 10_000, 100_000, 1_000_000),
    ),
    "a create among N objects": (create, (1_000, 10_000, 100_000, 1_000_000)),
    "metadata.name= in all namespaces, among N objects": (
        name_in_all_namespaces,
        (1_000, 10_000, 100_000, 1_000_000),
    ),
    "a create of a Pod beside N watches of other nodes": (watches_of_other_values, (10, 100, 1_000, 5_000)),
    "a create beside N policies about other resources": (policies_about_others, (10, 100, 1_000)),
    "OpenAPI after a change of one of N definitions": (openapi_after_a_change, (10, 100, 1_000)),
}


OPENED = "memory of one of N objects of a database, and opening it"


async def opened(count: int) -> str:
    """What an object takes that is in memory after a start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.db")
        world = World()
        world.storage = await SqliteStorage.open(path)
        await world.fill(count)
        await world.storage.close()
        began = time.process_time()
        storage = await SqliteStorage.open(path)
        await WatchCache.open(storage)
        took = time.process_time() - began
        await storage.close()
        tracemalloc.start()
        storage = await SqliteStorage.open(path)
        cache = await WatchCache.open(storage)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        stored = sum(
            len(each.value)
            for each in cache.resource("/core/configmaps/").snapshot("/core/configmaps/").records
        )
        await storage.close()
    return f"{count:,}: {held / count:,.0f} B for {stored / count:,.0f}, {took / count * 1e6:.1f} us"


async def measured(prepare: Callable[[World, int], Awaitable[Step]], count: int) -> float:
    """Microseconds of CPU of one step: the least of three runs."""
    world = await World().open()
    step = await prepare(world, count)
    number, best = 0, math.inf
    rounds = ROUNDS if prepare is not openapi_after_a_change else 4
    for _ in range(4):
        gc.collect()
        began = time.process_time()
        for _ in range(rounds):
            await step(number)
            number += 1
        best = min(best, (time.process_time() - began) / rounds)
    for task in getattr(world, "watching", ()):
        task.cancel()
    await world.api.stop()
    return best * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only lines that hold one of these")
    parser.add_argument(
        "--largest", type=int, default=100_000, help="no more than this (default %(default)s)"
    )
    options = parser.parse_args()
    for line, (prepare, counts) in LINES.items():
        if options.words and not any(word in line for word in options.words):
            continue
        chosen = [count for count in counts if count <= options.largest]
        costs = [asyncio.run(measured(prepare, count)) for count in chosen]
        exponent = math.log(costs[-1] / costs[0]) / math.log(chosen[-1] / chosen[0])
        shown = "  ".join(f"{count:,}: {cost:,.0f}" for count, cost in zip(chosen, costs, strict=True))
        print(f"{line:52} {shown} us; exponent {exponent:.2f}", flush=True)
    if not options.words or any(word in OPENED for word in options.words):
        sizes = [count for count in (10_000, 100_000, 1_000_000) if count <= options.largest]
        print(f"{OPENED:52} {'  '.join(asyncio.run(opened(count)) for count in sizes)}", flush=True)


if __name__ == "__main__":
    main()
