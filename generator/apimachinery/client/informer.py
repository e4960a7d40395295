"""A local, indexed copy of a selection, and handlers that hear of every change to it.

One stream feeds any number of handlers. Each handler has a queue and a worker of its own, so a slow one delays
nobody; a handler added late first hears ADDED for everything that is there. Objects handed out are shared: treat
them as read-only. Resync tells a handler of every object again, as MODIFIED with ``old is object``, at its own period.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from apimachinery.client.access import Key, key_of, namespace_of
from apimachinery.client.errors import UnreadableObject
from apimachinery.client.reflector import Change, Reflector

T = TypeVar("T")

IndexFunction: TypeAlias = Callable[[T], Iterable[str]]
Handler: TypeAlias = Callable[[Change[T]], None]

_log = logging.getLogger("kubewright.client")


def by_namespace(obj: object) -> Iterable[str]:
    """The index function of namespaces."""
    return (namespace_of(obj) or "",)


class Store(Generic[T]):
    """Objects by (namespace, name) and by the values of index functions. Reads are safe from any thread. ``version`` is
    that of the last change it has, ``namespace`` the only one that it has objects of (empty: all)."""

    def __init__(self, indexers: Mapping[str, IndexFunction[T]] | None = None, namespace: str = "") -> None:
        self.namespace = namespace
        self._lock = threading.Lock()
        self._items: dict[Key, T] = {}
        self.version = ""
        self._functions: dict[str, IndexFunction[T]] = {"namespace": by_namespace, **(indexers or {})}
        # That of namespaces is made when it is first asked for: many stores are of one namespace.
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in indexers or ()}

    def get(self, name: str, *, namespace: str = "") -> T | None:
        """One object, or None."""
        return self._items.get((namespace, name))

    def list(self) -> list[T]:
        """All objects."""
        with self._lock:
            return [*self._items.values()]

    def by_index(self, index: str, value: str) -> Iterable[T]:
        """The objects for which the index function gave ``value``. Raises ``KeyError`` for an unknown index."""
        with self._lock:
            if index not in self._indexes:
                self._build(index, self._functions[index])
            # A list, made under the lock: an iterator would see later changes.
            return [self._items[key] for key in self._indexes[index].get(value, ())]

    def index_function(self, name: str) -> IndexFunction[T]:
        """The function of an index. Raises ``KeyError`` for an unknown one."""
        return self._functions[name]

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Another index, over what is there and what comes. Raises ``ValueError`` where the name is taken."""
        with self._lock:
            if name in self._functions and self._functions[name] is not function:
                raise ValueError(f'there is an index "{name}" already')
            if name in self._functions:
                return
            self._functions[name] = function
            self._build(name, function)

    def _build(self, name: str, function: IndexFunction[T]) -> None:
        index: dict[str, dict[Key, None]] = {}
        for key, obj in self._items.items():
            for value in _values(name, function, obj):
                index.setdefault(value, {})[key] = None
        self._indexes[name] = index

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.list())

    def take(self, change: Change[T]) -> None:
        """Makes one change; for the informer alone."""
        key = change.key  # the mirror's own: one tuple for both
        with self._lock:
            old = self._items.get(key)
            if old is not None:
                self._index(key, old, add=False)
            if change.kind == "DELETED":
                self._items.pop(key, None)
            else:
                self._items[key] = change.object  # in one step: ``get`` takes no lock
                self._index(key, change.object, add=True)

    def _index(self, key: Key, obj: T, *, add: bool) -> None:
        for name, index in self._indexes.items():
            for value in _values(name, self._functions[name], obj):
                if add:
                    index.setdefault(value, {})[key] = None
                elif value in index:
                    index[value].pop(key, None)
                    # Values come and go with objects; empty entries would pile up.
                    if not index[value]:
                        del index[value]


def _values(name: str, function: IndexFunction[T], obj: T) -> list[str]:
    try:
        return [*function(obj)]
    except Exception:  # an index that fails on one object must not freeze the store
        _log.exception('index "%s" failed on %s/%s', name, *key_of(obj))
        return []


class Informer(Generic[T]):
    """A store kept current by a thread, with handlers in threads of their own.

    Use it as a context manager, or ``start`` and ``stop`` it. What makes the first state useless to wait for
    (Forbidden, NotFound, …) is raised by ``wait_until_synced`` and ``stop``; after that state nothing ends the
    informer but ``stop``.
    """

    def __init__(
        self, reflector: Reflector[T], *, indexers: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        self._reflector = reflector
        self.store: Store[T] = Store(indexers, reflector.namespace)
        self._workers: list[_Worker[T]] = []
        self._lock = threading.Lock()
        self._synced = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="kubewright-informer", daemon=True)

    def add_handler(self, handler: Handler[T], *, resync_seconds: float = 0.0) -> None:
        """Calls ``handler`` with every change, one at a time, in order. What it raises is logged."""
        worker = _Worker(handler, self.store, resync_seconds)
        with self._lock:  # no change may fall between the snapshot and the subscription
            for obj in self.store.list():
                # The worker hears of the present state before any later change.
                worker.queue.put(Change("ADDED", obj, initial=True))
            self._workers.append(worker)
        worker.thread.start()

    def start(self) -> Self:
        """Begins to mirror."""
        self._thread.start()
        return self

    def wait_until_synced(self, timeout: float | None = None) -> None:
        """Waits for the first whole state. Raises ``TimeoutError``, or what ended the mirroring."""
        if not self._synced.wait(timeout):
            raise TimeoutError(late(timeout, self.last_error))
        if self._failure is not None:
            raise self._failure

    @property
    def synced(self) -> bool:
        """Whether the store has had a first whole state."""
        return self._synced.is_set() and self._failure is None

    @property
    def healthy(self) -> bool:
        """Whether the store is whole and was kept current at the last try."""
        return self._synced.is_set() and self._failure is None and self._reflector.last_error is None

    @property
    def unreadable(self) -> Mapping[Key, UnreadableObject]:
        """The objects of the selection that do not fit the model, with their JSON: not in the store."""
        return self._reflector.mirror.unreadable

    @property
    def last_error(self) -> Exception | None:
        """What keeps the store from being current; None while it is."""
        return self._failure or self._reflector.last_error

    def stop(self) -> None:
        """Ends everything; changes that handlers have not received yet are given up."""
        self._reflector.stop()
        if self._thread.is_alive():
            self._thread.join()
        for worker in self._workers:
            worker.stop()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            for changes in self._reflector:
                with self._lock:
                    for change in changes:
                        self.store.take(change)
                    self.store.version = self._reflector.mirror.version  # before anybody acts on a change
                    for change in changes:
                        for worker in self._workers:
                            worker.queue.put(change)
                self._synced.set()
        except Exception as error:  # handed to whoever waits: a thread has nobody to raise it to
            self._failure = error
        finally:
            self._synced.set()


def late(timeout: float | None, error: Exception | None) -> str:
    """What a TimeoutError says of a store that has no state yet."""
    return f"not synced within {timeout or 0:g} s" + (f": {error}" if error else "")


class _Worker(Generic[T]):
    def __init__(self, handler: Handler[T], store: Store[T], resync_seconds: float) -> None:
        self.queue: queue.SimpleQueue[Change[T] | None] = queue.SimpleQueue()
        self._handler = handler
        self._store = store
        self._resync = resync_seconds
        self.thread = threading.Thread(target=self._run, name="kubewright-handler", daemon=True)

    def stop(self) -> None:
        self.queue.put(None)
        # A handler may stop its own informer.
        if self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self) -> None:
        due = time.monotonic() + self._resync
        while True:
            try:
                wait = max(0.0, due - time.monotonic()) if self._resync else None
                change = self.queue.get(timeout=wait)
            except queue.Empty:
                for obj in self._store.list():
                    self._call(Change("MODIFIED", obj, obj))
                due = time.monotonic() + self._resync
                continue
            if change is None:
                return
            self._call(change)

    def _call(self, change: Change[T]) -> None:
        try:
            self._handler(change)
        except Exception:  # one bad handler call must not end the stream of the others
            _log.exception("a handler failed on %s of %s/%s", change.kind, *key_of(change.object))
