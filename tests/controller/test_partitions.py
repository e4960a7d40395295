"""Partitions between copies of an operator, by seed: nobody works beyond the deadline, and the last status stays.

Each run has two copies, each behind a proxy of its own, and a supervisor that starts a lost copy again under a new
name. Every status names who wrote it, so the server's own history tells whether an old leader wrote after a new one:
each name must be one block of it. PARTITION_RUNS says how many seeds are tried of each form (``make test-partitions``),
PARTITION_KUBECONFIG names another server than ours. ``test_partitions_in_time`` has a short selection for every day.
"""

from __future__ import annotations

import itertools
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import pytest
import yaml
from tests.client.wires import Listening, hang_up
from tests.controller.forms import FORMS, Copy, Form, Use, controller

from apimachinery.client import links
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.credentials import CredentialSource
from apimachinery.client.errors import AlreadyExists, TransportError
from apimachinery.client.resource import DynamicResource
from apimachinery.client.retry import RetryPolicy
from apimachinery.client.tls import make_tls
from apimachinery.controller.requests import LostLeadership, generation_changed
from apimachinery.queue.backlog import ExponentialBackoff
from apimachinery.queue.clock import SystemClock
from kubewright.testing import ApiServer, FaultProxy
from website_api.example_v1 import Website, WebsiteStatus

RUNS = int(os.environ.get("PARTITION_RUNS", "0"))
KUBECONFIG = os.environ.get("PARTITION_KUBECONFIG", "")
CRD = Path("examples/operator/crds")
TIMES = {"lease_seconds": 2.0, "renew_seconds": 1.2, "retry_seconds": 0.2}
CHANGES = 8

Trouble: TypeAlias = Literal["black-hole", "half-open", "too-many", "internal-error", "delay", "jump"]


class JumpingClock(SystemClock):
    """A clock that may be ahead, as that of a machine that slept."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class Wire(Listening):
    """A port of ours without TLS to a server with TLS: proxies with faults speak plain HTTP."""

    def __init__(self, config: Config) -> None:
        host, port = config.server.removeprefix("https://").rsplit(":", 1)
        self._target = (host, int(port))
        self._tls = make_tls(config, CredentialSource(config).current())
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            plain = socket.create_connection(self._target)
            with self._tls.wrap_socket(plain, server_hostname=self._target[0]) as tls:
                server = links.Wire(tls, "", "", [])
                threading.Thread(target=self._ask, args=(connection, server), daemon=True).start()
                with suppress(TransportError):
                    while data := server.read():
                        connection.sendall(data)
                hang_up(connection)

    def _ask(self, connection: socket.socket, server: links.Wire) -> None:
        with suppress(OSError, TransportError):
            while data := connection.recv(65536):
                server.write(data)
        server.close()


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Config, int]]:
    """Where the server is: for those who ask it directly, and the plain port behind the proxies."""
    if not KUBECONFIG:
        with ApiServer(crds=[CRD]) as server:
            yield Config.load(server.kubeconfig), server.port
        return
    config = Config.load(KUBECONFIG)
    with Client(config) as client:
        definitions = DynamicResource.of(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
        for path in CRD.glob("*.yaml"):
            with suppress(AlreadyExists):
                definitions.create(yaml.safe_load(path.read_text()))
    with Wire(config) as wire:
        yield config, wire.port


class History:
    """Every status of a website, in order, as the server tells it."""

    def __init__(self, sites: DynamicResource, namespace: str) -> None:
        self.statuses: list[str] = []
        self._watch = sites.watch(namespace=namespace)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        for event in self._watch:
            status = (event.object or {}).get("status") or {}
            if status.get("address") and self.statuses[-1:] != [status["address"]]:
                self.statuses.append(status["address"])

    def end(self) -> None:
        self._watch.close()
        self._thread.join(60)


class Slot:
    """One of two places for copies: when a copy is lost, another one comes, under a name of its own."""

    def __init__(self, form: Form, use: Use, name: str, port: int, config: Config, namespace: str) -> None:
        self._form, self._use, self._name = form, use, name
        self._namespace = namespace
        self.proxy = FaultProxy(lambda: port, delay_seconds=0.6, retry_after=20)
        token = CredentialSource(config).current().authorization.removeprefix("Bearer ")
        self._config = Config(server=self.proxy.url, token=token)
        self._done = threading.Event()
        self._last = threading.Event()
        self.copy: Copy | None = None
        self.losses = 0
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _supervise(self) -> None:
        for number in itertools.count():
            if self._done.is_set() or self._last.is_set():
                return
            with self._copy(f"{self._name}{number}") as copy:
                self.copy = copy
                while not self._done.is_set() and not copy.ended and not copy.operator._lost:
                    time.sleep(0.01)
            if isinstance(copy.error, LostLeadership):
                self.losses += 1
            elif copy.error is not None:
                self.errors.append(copy.error)

    def _copy(self, name: str) -> Copy:
        async def reconcile(context: Any, site: Website) -> None:
            for step in ("working", "ready"):
                site.status = WebsiteStatus(address=f"{name}:{site.metadata.generation}:{step}")
                await context.write_status(site)

        made = controller(
            self._form, reconcile, Website, when=generation_changed, limiter=ExponentialBackoff(0.01, 0.2)
        )
        election = {"name": "lock", "namespace": self._namespace, "identity": name, **TIMES}
        return Copy(
            self._form,
            self._config,
            [made],
            self._namespace,
            self._use,
            election,
            JumpingClock(),
            client_options={"retry": RetryPolicy(attempts=2, first_wait=0.01), "timeout": 3.0},
            options={"grace_seconds": 0.1},
        )

    def meet(self, trouble: Trouble, amount: float) -> None:
        if trouble == "jump":
            if self.copy is not None and isinstance(self.copy.clock, JumpingClock) and self.leading:
                self.copy.clock.ahead += amount * 2
        elif trouble == "black-hole":
            self.proxy.inject("half-open", seconds=amount)
            self.proxy.break_open("half-open")
        elif trouble == "half-open":
            self.proxy.break_open("half-open")
        else:
            self.proxy.inject(trouble, seconds=amount)

    @property
    def leading(self) -> bool:
        copy = self.copy
        return copy is not None and copy.operator is not None and bool(copy.operator.leading)

    @property
    def idle(self) -> bool:
        """Whether its copy leads and has nothing to do."""
        return self.leading and self.copy is not None and self.copy.operator.controllers[0].queue.backlog.idle

    def keep(self) -> None:
        """No more copies: one that begins while this ends would be cut off at its work."""
        self._last.set()

    def end(self) -> None:
        self.proxy.calm()
        self._done.set()
        if self.copy is not None:
            self.copy.leave()
        self._thread.join(60)
        self.proxy.stop()


class Referee:
    """Looks again and again whether two lead at once."""

    def __init__(self, slots: tuple[Slot, Slot]) -> None:
        self._slots = slots
        self._done = threading.Event()
        self.overlaps = 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        one, two = self._slots
        while not self._done.wait(0.001):
            copy = one.copy
            # leadership of a copy ends once: who leads before and after another was seen to, led then
            if one.leading and two.leading and one.leading and one.copy is copy:
                self.overlaps += 1

    def end(self) -> None:
        self._done.set()
        self._thread.join(60)


@contextmanager
def world(form: Form, use: Use, place: tuple[Config, int]) -> Iterator[tuple[Any, str, tuple[Slot, Slot]]]:
    config, port = place
    with Client(config) as client, ExitStack() as stack:
        namespaces = DynamicResource.of(client, "v1", "Namespace")
        namespace = namespaces.create({"metadata": {"generateName": "partition-"}})["metadata"]["name"]
        stack.callback(lambda: namespaces.delete(namespace))
        sites = DynamicResource.of(client, "example.kubewright.dev/v1", "Website")
        body = {"apiVersion": "example.kubewright.dev/v1", "kind": "Website", "metadata": {"name": "site"}}
        sites.create({**body, "spec": {"image": "i"}}, namespace=namespace)
        slots = (
            Slot(form, use, "a", port, config, namespace),
            Slot(form, use, "b", port, config, namespace),
        )
        for slot in slots:
            stack.callback(slot.end)
        yield sites, namespace, slots


def address(sites: DynamicResource, namespace: str) -> str:
    """Who wrote the status, of which generation, and which step."""
    status = sites.get("site", namespace=namespace).get("status") or {}
    return str(status.get("address"))


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(RUNS))
def test_partitions(seed: int, form: Form, place: tuple[Config, int]) -> None:
    dice = random.Random(seed)
    use: Use = dice.choice(["run", "with"])
    with world(form, use, place) as (sites, namespace, slots):
        history, referee = History(sites, namespace), Referee(slots)
        until(lambda: any(slot.leading for slot in slots))
        met: list[Trouble] = []
        for number in range(CHANGES):
            met.append(dice.choice(get_args(Trouble)))
            sick = (
                dice.choice(slots) if dice.random() < 0.3 else next((s for s in slots if s.leading), slots[0])
            )
            sick.meet(met[-1], dice.uniform(0.2, 4.0))
            time.sleep(dice.uniform(0.0, 1.0))
            sites.patch("site", {"spec": {"image": f"i{number}"}}, namespace=namespace)
        for slot in slots:
            slot.proxy.calm()
            slot.proxy.break_open("reset")
        generation = sites.get("site", namespace=namespace)["metadata"]["generation"]
        wanted = f":{generation}:ready"

        def settled() -> bool:
            return any(slot.idle for slot in slots) and address(sites, namespace).endswith(wanted)

        until(settled)
        for slot in slots:
            slot.keep()
        until(settled)
        for slot in slots:
            slot.end()
        last = address(sites, namespace)
        until(lambda: history.statuses[-1:] == [last])
        referee.end()
        history.end()
        writers = [name for name, _ in itertools.groupby(status.split(":")[0] for status in history.statuses)]
        report = f"{form} {use} {met}: {history.statuses}"
        assert not [error for slot in slots for error in slot.errors], report
        assert not referee.overlaps, report
        assert len(writers) == len(set(writers)), report
        assert last.endswith(wanted), report
