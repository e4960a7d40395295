"""Whether etcd answers, and what its members say of themselves.

Theory. Every ``PROBE_SECONDS`` a consistent read is made. Where none has succeeded for ``STALE_SECONDS`` this server
is cut off: it serves what it has, ``trouble`` says so, and reads that must be consistent fail. Now and then every
member is asked for its status: the alarms that stop writes (no space, corruption), and the releases, of which the
oldest decides what can be relied on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection
from apimachinery.storage.interface import StorageError

log = logging.getLogger("kubewright.storage")

STALE_SECONDS = 5.0
PROBE_SECONDS = 2.0
MEMBERS_SECONDS = 10.0


class Members:
    """The members' statuses, as of the last ``look``."""

    def __init__(self, connection: EtcdConnection) -> None:
        self.trouble = ""  # why etcd takes no writes; empty while all is well
        self.ordered_progress = False  # whether notifications of progress never overtake events
        self._connection = connection
        self._silent: set[str] = set()

    async def look(self) -> None:
        """Asks every member. Does not raise for one that does not answer."""
        endpoints = self._connection.options.endpoints
        answers = await asyncio.gather(
            *(self._connection.ask(messages.STATUS, messages.StatusRequest(), one) for one in endpoints),
            return_exceptions=True,
        )
        troubles: list[str] = []
        ordered = True
        for endpoint, answer in zip(endpoints, answers, strict=True):
            if isinstance(answer, BaseException):
                ordered = False  # it may be of any release
                # Once, not every ten seconds.
                if endpoint not in self._silent:
                    log.warning(
                        "a member does not answer", extra={"endpoint": endpoint, "reason": str(answer)}
                    )
                self._silent.add(endpoint)
                continue
            if endpoint in self._silent:
                log.warning("a member answers again", extra={"endpoint": endpoint})
                self._silent.discard(endpoint)
            ordered = ordered and reports_progress_in_order(answer.version)
            troubles += [f"etcd: {text}" for text in answer.errors if "NOSPACE" in text or "CORRUPT" in text]
        self.ordered_progress = ordered
        self.trouble = troubles[0] if troubles else ""


class EtcdHealth:
    """The loop that asks; ``catch_up`` is the consistent read."""

    def __init__(self, members: Members, catch_up: Callable[[], Awaitable[None]]) -> None:
        self._members = members
        self._catch_up = catch_up
        self._answered = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """Why this server cannot vouch for what it serves, or why etcd takes no writes; empty while all is well."""
        silent = time.monotonic() - self._answered
        if silent > STALE_SECONDS:
            return f"etcd has not answered for {silent:.0f} seconds; what is served from memory may be older than that"
        return self._members.trouble

    def start(self) -> None:
        """Starts the loop."""
        self._task = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        looked = time.monotonic()
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            began = time.monotonic()
            with contextlib.suppress(StorageError):
                await self._catch_up()
                # When it was asked, not when it was answered: what is older than that may be missing.
                self._answered = began
            if time.monotonic() - looked > MEMBERS_SECONDS:
                looked = time.monotonic()
                await self._members.look()

    async def close(self) -> None:
        """Ends the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def reports_progress_in_order(version: str) -> bool:
    """Whether a release's progress notifications never overtake events (etcd issue 15220)."""
    numbers = [int(text) for text in version.split("-")[0].split(".") if text.isdigit()]
    if len(numbers) < 3:
        return False
    if numbers[:2] == [3, 4]:
        return numbers[2] >= 25
    if numbers[:2] == [3, 5]:
        return numbers[2] >= 8
    return numbers[:2] > [3, 5]
