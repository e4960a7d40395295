"""After an outage, however long, a server that is reachable again is found soon, and not by everybody at once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

import pytest
from tests.client.test_wire import MAPS, QUICK
from tests.client.wires import ScriptedServer, answer

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.bodies import TransportError
from apimachinery.client.calls import UNSTRUCTURED, ListOptions, Target
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.errors import ServiceUnavailable
from apimachinery.client.reflector import RECONNECT_SECONDS, ReflectorOptions, ReflectorPlan
from apimachinery.client.resource import DynamicResource

SLOW = ReflectorOptions(patient=True, first_wait=1000.0, longest_wait=1000.0)
LIST = answer(200, b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}')


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_port_that_accepts_again_is_found(mode: str) -> None:
    """Any other failure would be waited out for 500 s here."""
    port = closed_port()
    config = Config(server=f"http://127.0.0.1:{port}")
    with contextlib.ExitStack() as stack:

        def open_again() -> ScriptedServer:
            return stack.enter_context(ScriptedServer([LIST, 60.0], port=port))

        async def story() -> list[Any]:
            async with AsyncClient(config, retry=QUICK) as client:
                informer = AsyncDynamicResource(client, MAPS).informer(options=SLOW)
                async with informer:
                    while informer.last_error is None:
                        await asyncio.sleep(0.01)
                    open_again()
                    await informer.wait_until_synced(60)
                    return informer.store.list()

        if mode == "async":
            found = asyncio.run(story())
        else:
            with (
                Client(config, retry=QUICK) as client,
                DynamicResource(client, MAPS).informer(options=SLOW) as informer,
            ):
                while informer.last_error is None:
                    time.sleep(0.01)
                open_again()
                informer.wait_until_synced(60)
                found = informer.store.list()
    assert [obj["metadata"]["name"] for obj in found] == ["a"]


def plan(failures: int) -> ReflectorPlan[Any]:
    made = ReflectorPlan(Target(MAPS), UNSTRUCTURED, ListOptions(), ReflectorOptions(patient=True))
    made.pause.failures = failures
    return made


def test_those_who_wait_come_one_after_the_other() -> None:
    unreachable = TransportError("refused", sent=False)
    waits = sorted(plan(failures=50).failed(unreachable) for _ in range(1000))
    assert waits[0] >= RECONNECT_SECONDS / 2 and waits[-1] <= RECONNECT_SECONDS
    begins = [wait - RECONNECT_SECONDS / 2 for wait in waits]
    tenths = [sum(n / 10 <= begin < (n + 1) / 10 for begin in begins) for n in range(10)]
    assert max(tenths) < 200  # of 1000 informers no more than a fifth in any tenth of a second


def test_a_server_in_trouble_is_still_left_alone() -> None:
    for error in (ServiceUnavailable(503, "", "busy"), TransportError("cut", sent=True)):
        assert plan(failures=50).failed(error) >= 15.0
