"""What handlers heard, held against the laws of informers and against the server.

The laws: an object is ADDED when it is not there, MODIFIED and DELETED when it is; versions only grow; a new uid is
another object. And when all is quiet, what handlers heard, what the cache holds and what the server lists is the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from apimachinery.client.access import Key, key_of, resource_version_of, uid_of
from apimachinery.client.reflector import Change

T = TypeVar("T")


class HistoryError(AssertionError):
    """A law was broken; the text has every case."""


class History(Generic[T]):
    """A handler that keeps and checks what it hears: ``informer.add_handler(history.hear)``."""

    def __init__(self) -> None:
        self.state: dict[Key, T] = {}
        self.changes: list[Change[T]] = []
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def hear(self, change: Change[T]) -> None:
        """Takes note of one change."""
        with self._lock:
            self.changes.append(change)
            key, known = key_of(change.object), self.state.get(key_of(change.object))
            what = f"{change.kind} of {'/'.join(key)} at {resource_version_of(change.object)}"
            if change.kind == "ADDED":
                if known is not None:
                    self.problems.append(f"{what}: it was there already")
                self.state[key] = change.object
            elif known is None:
                self.problems.append(f"{what}: it was not there")
            elif change.kind == "DELETED":
                del self.state[key]
            else:
                self._check_modified(what, known, change)
                self.state[key] = change.object

    async def hear_awaited(self, change: Change[T]) -> None:
        """``hear``, for informers of asyncio programs."""
        self.hear(change)

    def _check_modified(self, what: str, known: T, change: Change[T]) -> None:
        if change.old is change.object:
            return  # a resync tells of what is there
        before, after = resource_version_of(known), resource_version_of(change.object)
        if uid_of(known) != uid_of(change.object):
            self.problems.append(f"{what}: another object of that name, without DELETED and ADDED")
        if before.isdigit() and after.isdigit() and int(after) <= int(before):
            self.problems.append(f"{what}: version {before} was heard before")

    def differences(self, listed: Iterable[Any], cached: Iterable[Any] | None = None) -> list[str]:
        """How what was heard, and the cache, differ from a list of the server."""
        with self._lock:
            heard = {key: resource_version_of(obj) for key, obj in self.state.items()}
        server = {key_of(obj): resource_version_of(obj) for obj in listed}
        found = [f"handlers: {line}" for line in _compare(heard, server)]
        if cached is not None:
            found += [
                f"cache: {line}"
                for line in _compare({key_of(o): resource_version_of(o) for o in cached}, server)
            ]
        return found

    def check(
        self,
        listed: Callable[[], Iterable[Any]],
        cached: Callable[[], Iterable[Any]] | None = None,
        *,
        seconds: float = 10.0,
    ) -> None:
        """Waits until handlers, cache and server agree. Raises ``HistoryError`` where they do not in time, or where
        a law was broken on the way."""
        ends = time.monotonic() + seconds
        while left := self.differences(listed(), None if cached is None else cached()):
            if time.monotonic() > ends:
                raise HistoryError("\n".join([*left, *self.problems]))
            time.sleep(0.02)
        if self.problems:
            raise HistoryError("\n".join(self.problems))


def _compare(found: dict[Key, str], wanted: dict[Key, str]) -> list[str]:
    lines = [f"{'/'.join(key)} is missing" for key in wanted if key not in found]
    lines += [f"{'/'.join(key)} is there, but not on the server" for key in found if key not in wanted]
    lines += [
        f"{'/'.join(key)} is of version {found[key]}, not {version}"
        for key, version in wanted.items()
        if key in found and found[key] != version
    ]
    return lines
