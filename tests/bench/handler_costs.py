"""What one request costs in the API alone: no socket, memory storage; microseconds of CPU each, and a profile.

python tests/bench/handler_costs.py [VERB …] [--profile]
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import sys
import time

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.http.messages import Request, Response
from apimachinery.server.api import build_api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.process import Backend, ServerOptions
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

BASE = "/api/v1/namespaces/default/configmaps"
PAD = "v" * 600
HEADERS = {"host": "x", "user-agent": "bench/1", "content-type": "application/json"}


def create(number: int) -> Request:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"key": PAD}}
    return Request("POST", BASE, "", HEADERS, json.dumps(body).encode())


def get(number: int) -> Request:
    return Request("GET", f"{BASE}/x", "", HEADERS)


def patch(number: int) -> Request:
    headers = {**HEADERS, "content-type": "application/merge-patch+json"}
    return Request("PATCH", f"{BASE}/x", "", headers, json.dumps({"data": {"sent": str(number)}}).encode())


def apply(number: int) -> Request:
    headers = {**HEADERS, "content-type": "application/apply-patch+yaml"}
    name = f"applied-{number % 100}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": str(number)}}
    return Request(
        "PATCH", f"{BASE}/{name}", "fieldManager=bench&force=true", headers, json.dumps(body).encode()
    )


def put(number: int) -> Request:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"key": f"{number}{PAD}"},
    }
    return Request("PUT", f"{BASE}/x", "", HEADERS, json.dumps(body).encode())


VERBS = {"get": get, "create": create, "put": put, "patch": patch, "apply": apply}
ROUNDS = 2000


async def main() -> None:
    storage = MemoryStorage()
    cache = await WatchCache.open(storage)
    backend = Backend(cache, OPEN_TO_LOOPBACK, ServerOptions(fairness=False))
    api = build_api(backend, ApiOptions(controllers=frozenset()))
    await api.start()
    made = create(0)
    made.body = made.body.replace(b'"c0"', b'"x"')
    await api.handle(made)
    chosen = [name for name in sys.argv[1:] if name in VERBS] or list(VERBS)
    for name in chosen:
        requests = [VERBS[name](number) for number in range(1, 2 * ROUNDS)]
        for request in requests[:ROUNDS]:
            answer = await api.handle(request)
            assert isinstance(answer, Response) and answer.status < 300, answer
        if "--profile" in sys.argv:
            profile = cProfile.Profile()
            profile.enable()
        began = time.process_time()
        for request in requests[ROUNDS:]:
            await api.handle(request)
        took = time.process_time() - began
        print(f"{name:8s} {took / (len(requests) - ROUNDS) * 1e6:8.1f} us")
        if "--profile" in sys.argv:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
    await api.stop()


asyncio.run(main())
