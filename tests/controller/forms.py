"""One way to tell a story to operators of threads and of asyncio: reconcile functions as if they were to be awaited."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.reflector import ReflectorOptions
from apimachinery.controller.async_controller import AsyncController
from apimachinery.controller.async_election import AsyncElection
from apimachinery.controller.async_operator import AsyncOperator
from apimachinery.controller.cached import Cached
from apimachinery.controller.controller import Controller
from apimachinery.controller.election import Election
from apimachinery.controller.operator import Operator
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Observer
from apimachinery.typed.object import Object

Form: TypeAlias = Literal["threads", "asyncio"]
Use: TypeAlias = Literal["run", "with"]
FORMS: tuple[Form, ...] = ("threads", "asyncio")
QUICK = ReflectorOptions(patient=True, first_wait=0.01, longest_wait=0.2, silence=2.0)

Reconcile: TypeAlias = Callable[[Any, Any], Coroutine[Any, Any, float | None]]


class Awaited:
    """A context of threads, whose writing methods are awaited."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._context, name)
        if name not in ("apply", "write_status", "event", "synced_lister"):
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            return found(*arguments, **options)

        return call


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine gives that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waited")


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits for what others do."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def controller(form: Form, reconcile: Reconcile, for_: type[Object] | Cached[Any], **options: Any) -> Any:
    """A controller of either form."""
    if form == "asyncio":
        return AsyncController(for_=for_, reconcile=reconcile, **options)
    return Controller(for_=for_, reconcile=lambda c, obj: drive(reconcile(Awaited(c), obj)), **options)


@dataclass
class Copy:
    """One copy of an operator, in a thread of its own; used in a ``with`` block, or by its ``run``."""

    form: Form
    config: Config
    controllers: list[Any]
    namespace: str
    use: Use = "with"
    election: dict[str, Any] | None = None
    clock: Clock = SYSTEM_CLOCK
    observer: Observer | None = None
    client_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    clusters: dict[str, Config] = field(default_factory=dict)
    operator: Any = None
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self._ready = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def __enter__(self) -> Copy:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()
        self.join()

    def leave(self) -> None:
        """Ends the block, or has ``run`` end."""
        self._leave.set()
        if self.operator is not None:
            self.operator.stop()

    def join(self) -> None:
        """Waits for the end; ``error`` is what it raised."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "the operator did not end"

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def _main(self) -> None:
        try:
            if self.form == "asyncio":
                asyncio.run(self._await())
            else:
                with contextlib.ExitStack() as stack:
                    clusters = {name: stack.enter_context(Client(c)) for name, c in self.clusters.items()}
                    client = stack.enter_context(Client(self.config, **self.client_options))
                    self._work(client, clusters)
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()

    def _arguments(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "clock": self.clock,
            "observer": self.observer,
            "options": QUICK,
            **self.options,
        }

    def _work(self, client: Client, clusters: dict[str, Client]) -> None:
        election = Election(**self.election) if self.election is not None else None
        arguments = self._arguments()
        self.operator = Operator(client, self.controllers, election=election, clusters=clusters, **arguments)
        self._ready.set()
        if self.use == "run":
            self.operator.run(signals=False)
            return
        with self.operator:
            self._leave.wait()

    async def _await(self) -> None:
        election = AsyncElection(**self.election) if self.election is not None else None
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(AsyncClient(self.config, **self.client_options))
            others = self.clusters.items()
            clusters = {name: await stack.enter_async_context(AsyncClient(c)) for name, c in others}
            self.operator = AsyncOperator(
                client, self.controllers, election=election, clusters=clusters, **self._arguments()
            )
            self._ready.set()
            if self.use == "run":
                await self.operator.run(signals=False)
                return
            async with self.operator:
                await asyncio.to_thread(self._leave.wait)
