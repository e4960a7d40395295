"""A controller: makes the world as the objects of one kind say, one object at a time, for threads.

Theory. A reconcile function gets an object as it is now, not what happened to it: it compares and corrects, so events
that were missed, doubled or seen late do no harm. The controller watches the kind itself (``for_``), the kinds that it
creates for it (``owns``: an event on an owned object is work on its owner) and others (``watches``, by a function that
names the objects to work on). An object is worked on by one worker at a time; what raises is tried again, later each
time. Objects come out of a cache, so they may be a moment old: writes that carry the version they are of meet
``Conflict`` then, and the object is worked on again when the cache has caught up.

Made of ``async_controller`` by ``make golden``: edit that one.
"""

from __future__ import annotations

import copy
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from apimachinery.client.access import key_of, name_of, namespace_of, resource_version_of
from apimachinery.client.connection import Client
from apimachinery.client.errors import Conflict, NotFound, TransportError
from apimachinery.client.informer import Informer
from apimachinery.client.reflector import Change
from apimachinery.controller.caches import SharedInformers
from apimachinery.controller.event_series import EventKind
from apimachinery.controller.kinds import as_json, finalizers_of, is_deleting, meta_of, owner_of, resource_of
from apimachinery.controller.lister import CacheNotSynced, Lister
from apimachinery.controller.objects import (
    add_finalizer,
    apply,
    remove_finalizer,
    write_status,
)
from apimachinery.controller.recorder import Recorder
from apimachinery.controller.requests import LostLeadership as LostLeadership
from apimachinery.controller.requests import Refused as Refused
from apimachinery.controller.requests import Request as Request
from apimachinery.controller.requests import Watch as Watch
from apimachinery.controller.requests import generation_changed as generation_changed
from apimachinery.queue.backlog import RateLimiter
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Observer, Outcome
from apimachinery.queue.running import Group
from apimachinery.queue.work_queue import WorkQueue
from apimachinery.typed.object import Object

T = TypeVar("T", bound=Object)
O = TypeVar("O", bound=Object)  # noqa: E741 - an object

UNREACHABLE_SECONDS: Final = (1.0, 2.0)
"""After how long an object is tried again whose server could not be reached: soon, for it is not the object's fault,
and not all at once."""
_UNKNOWN: Final = object()

_log = logging.getLogger("kubewright.controller")


class Context(Generic[T]):
    """What a reconcile function works with, for the object it was called for."""

    def __init__(self, controller: Controller[T], runtime: Runtime, request: Request, obj: T | None) -> None:
        self.request = request
        self.client = runtime.client
        self.log = logging.LoggerAdapter(_log, {"controller": controller.name, "object": str(request)})
        self._controller = controller
        self._runtime = runtime
        self._object = obj
        self._before = None if obj is None else controller.status_before(request, obj)

    @property
    def leading(self) -> bool:
        """Whether this copy may still work. Ask it in loops and before effects elsewhere; writes through ``client``
        are refused by themselves."""
        return self._runtime.leading()

    def apply(self, obj: O, *, owned: bool = True, force: bool = True) -> O:
        """Server-side apply of what is set in ``obj``, as this controller; ``owned``: in the namespace of the object
        worked on, and deleted with it. Writes nothing new where all of it is so already."""
        owner = self._object if owned else None
        manager = self._controller.name
        return apply(self.client, obj, field_manager=manager, owner=owner, force=force)

    def write_status(self, obj: T) -> T:
        """Writes the status of the object worked on, unless it is what was written or read last. ``obj`` then is of
        the version that was made, so it can be written again.

        Raises ``Conflict`` where ``obj`` is outdated: the object is worked on again when the cache has caught up.
        """
        status = as_json(obj).get("status")
        if self._object is None or status == self._before:
            return obj
        self._before = _UNKNOWN  # until an answer says that it was written
        written = write_status(self.client, obj, field_manager=self._controller.name)
        self._before = status
        self._controller.note_status(self.request, obj, written, status)
        meta_of(obj).resource_version = meta_of(written).resource_version
        return written

    def event(self, kind: EventKind, reason: str, message: str) -> None:
        """An event about the object worked on."""
        if self._object is not None:
            self._runtime.recorder(self._controller.name).event(self._object, kind, reason, message)

    def lister(self, model: type[O]) -> Lister[O]:
        """The cache of a kind. That of a kind which the controller neither owns nor watches begins now: reads raise
        ``CacheNotSynced`` until it is whole, and the object is worked on again then."""
        return self._runtime.informers.lister(model)

    def owned(self, model: type[O]) -> list[O]:
        """The objects of a kind that belong to the one worked on, out of the cache."""
        kind = self._controller.for_
        return [
            obj
            for obj in self.lister(model).namespaced(self.request.namespace).list()
            if owner_of(obj, kind.API_VERSION, kind.KIND) == self.request.name
        ]


@dataclass(frozen=True, slots=True)
class _Written:
    """The status that was written last, and the versions that do not have it yet."""

    outdated: frozenset[str]
    status: object


Reconcile: TypeAlias = Callable[[Context[T], T], float | None]
"""Gives in how many seconds to look again; None for when something changes."""
Gone: TypeAlias = Callable[[Context[T], Request], None]


class Runtime:
    """What controllers of one program share."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        *,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        self.leading = leading
        self.client = client
        self.informers = informers
        self.observer = observer if observer is not None else Observer()
        self.clock = clock
        self._recorders: dict[str, Recorder] = {}

    def recorder(self, component: str) -> Recorder:
        """The recorder of a component; what it told before counts."""
        if component not in self._recorders:
            self._recorders[component] = Recorder(self.client, component, clock=self.clock)
        return self._recorders[component]


class Controller(Generic[T]):
    """Reconciles one kind; ``Operator`` runs it, each a copy of its own: one controller may be given to many.

    ``finalizer`` keeps deleted objects until ``finalize`` has returned for them; it needs a domain (``example.com/x``).
    ``gone`` is called for objects that are not there any more. ``resync_seconds`` works on every object again and
    again, for worlds that do not say when they change.
    """

    def __init__(
        self,
        *,
        for_: type[T],
        reconcile: Reconcile[T] | None = None,
        owns: Sequence[type[Object]] = (),
        watches: Sequence[Watch[Any]] = (),
        finalizer: str = "",
        finalize: Callable[[Context[T], T], float | None] | None = None,
        gone: Gone[T] | None = None,
        when: Callable[[Change[T]], bool] | None = None,
        name: str = "",
        label_selector: str = "",
        workers: int = 1,
        resync_seconds: float = 0.0,
        limiter: RateLimiter | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.for_ = for_
        self.name = name or f"{for_.KIND.lower()}-controller"
        self._limiter = limiter
        self._clock = clock
        self._reconcile = reconcile
        self._finalizer = finalizer
        self._finalize = finalize
        self._gone = gone
        self._when = when
        self._owns = tuple(owns)
        self._watches = tuple(watches)
        self._selector = label_selector
        self._workers = workers
        self._resync = resync_seconds
        self._set_up(None)

    def _set_up(self, runtime: Runtime | None) -> None:
        """What a run of it has."""
        self.queue: WorkQueue[Request] = WorkQueue(self._limiter, self._clock)
        self._runtime = runtime
        self._informer: Informer[T] | None = None
        self._group = Group()
        self._written: dict[Request, _Written] = {}

    def reconciler(self, function: Reconcile[T]) -> Reconcile[T]:
        """Makes ``function`` the reconcile function; a decorator."""
        self._reconcile = function
        return function

    def finalizer(self, function: Reconcile[T]) -> Reconcile[T]:
        """Makes ``function`` the one that cleans up after a deleted object; a decorator. What it gives is seconds to
        try again in, while the object stays; None lets the object go."""
        self._finalize = function
        return function

    def attached(self, runtime: Runtime) -> Self:
        """A copy that is to be run, with the informers it needs. Raises ``ValueError`` where it lacks a function."""
        if self._reconcile is None:
            raise ValueError(f"{self.name} has no reconcile function")
        if bool(self._finalizer) != (self._finalize is not None):
            raise ValueError(f"{self.name} needs both a finalizer's name and its function, or neither")
        made = copy.copy(self)
        made._set_up(runtime)
        made._informer = runtime.informers.informer(self.for_, label_selector=self._selector)
        for model in self._owns:
            runtime.informers.informer(model)
        for watch in self._watches:
            runtime.informers.informer(watch.model, label_selector=watch.label_selector)
        return made

    def start(self) -> None:
        """Hears of changes and works on what they mean; the informers are synced."""
        runtime, informer = self._attached()
        informer.add_handler(self._hear_own, resync_seconds=self._resync)
        for model in self._owns:
            runtime.informers.informer(model).add_handler(self._hear_owned)
        for watch in self._watches:
            other = runtime.informers.informer(watch.model, label_selector=watch.label_selector)
            other.add_handler(self._hearer(watch))
        for number in range(self._workers):
            self._group.spawn(f"{self.name}-{number}", self._work)

    def stop(self, grace_seconds: float) -> bool:
        """Takes on nothing more and waits for what is under way; whether it ended in time."""
        self.queue.stop()
        return self._group.join(grace_seconds)

    def abandon(self) -> None:
        """Takes on nothing more, and ends what is under way as far as it can be ended."""
        self.queue.stop()
        self._group.cancel()

    @property
    def ended(self) -> list[str]:
        """The names of workers that have ended."""
        return self._group.ended

    def status_before(self, request: Request, obj: T) -> object:
        """The status that the server has of an object, as far as is known: what was written last while the cache does
        not have it yet, else what the cache says."""
        written = self._written.get(request)
        if written is not None:
            if resource_version_of(obj) in written.outdated:
                return written.status
            del self._written[request]
        return as_json(obj).get("status")

    def note_status(self, request: Request, before: T, after: T, status: object) -> None:
        """Takes note of a status that was written: versions up to ``before`` are of another one."""
        if resource_version_of(after) == resource_version_of(before):
            return
        known = self._written.get(request)
        outdated = known.outdated if known is not None else frozenset()
        self._written[request] = _Written(outdated | {resource_version_of(before)}, status)

    def _hear_own(self, change: Change[T]) -> None:
        if self._when is None or self._when(change):
            self._add(Request(*key_of(change.object)))

    def _hear_owned(self, change: Change[Any]) -> None:
        owners = {
            owner_of(obj, self.for_.API_VERSION, self.for_.KIND) for obj in (change.object, change.old) if obj
        }
        # an owner is of the same namespace, or of none
        namespace = (namespace_of(change.object) or "") if resource_of(self.for_).namespaced else ""
        for owner in owners - {""}:
            self._add(Request(namespace, owner))

    def _hearer(self, watch: Watch[Any]) -> Callable[[Change[Any]], None]:
        def hear(change: Change[Any]) -> None:
            if watch.when is None or watch.when(change):
                for obj in (change.object, change.old):
                    for request in watch.requests(obj) if obj is not None else ():
                        self._add(request)

        return hear

    def _add(self, request: Request) -> None:
        self.queue.add(request)
        self._attached()[0].observer.queued(self.name, len(self.queue))

    def _attached(self) -> tuple[Runtime, Informer[T]]:
        if self._runtime is None or self._informer is None:
            raise ValueError(f"{self.name} is run by no operator")
        return self._runtime, self._informer

    def _work(self) -> None:
        runtime, _ = self._attached()
        while True:
            request = self.queue.get()
            if request is None or self.queue.backlog.stopped:
                return
            runtime.observer.queued(self.name, len(self.queue))
            began = time.perf_counter()
            try:
                outcome = self._handle(request)
            finally:
                self.queue.done(request)
            runtime.observer.reconciled(self.name, outcome, time.perf_counter() - began)

    def _handle(self, request: Request) -> Outcome:
        """One object; whatever it raises means another try, later."""
        runtime, _ = self._attached()
        try:
            with runtime.observer.reconciling(self.name, request.namespace, request.name):
                outcome, seconds = self._look(request)
        except Refused as error:
            self.queue.forget(request)
            _log.warning("%s: %s is refused: %s", self.name, request, error)
            return "refused"
        except LostLeadership as error:
            _log.info("%s: %s is left to another copy: %s", self.name, request, error)
            return "lost"
        except CacheNotSynced as error:
            self._again(request)
            _log.debug("%s: %s waits: %s", self.name, request, error)
            return "again"
        except Conflict as error:
            self._again(request)
            _log.debug("%s: %s changed meanwhile: %s", self.name, request, error)
            return "conflict"
        except TransportError as error:
            if error.sent:
                self._again(request)
            else:
                self.queue.add_after(request, random.uniform(*UNREACHABLE_SECONDS))
            _log.warning("%s: %s failed: %s", self.name, request, error)
            return "error"
        except Exception:  # a reconcile function is somebody else's; its errors must not end the worker
            self._again(request)
            _log.exception("%s: %s failed", self.name, request)
            return "error"
        self.queue.forget(request)
        if seconds is None:
            return outcome
        self.queue.add_after(request, seconds)
        return "again"

    def _again(self, request: Request) -> None:
        self.queue.add_rate_limited(request)
        self._attached()[0].observer.retried(self.name, self.queue.failures(request))

    def _look(self, request: Request) -> tuple[Outcome, float | None]:
        runtime, informer = self._attached()
        cached = informer.store.get(request.name, namespace=request.namespace)
        if cached is None:
            self._written.pop(request, None)
            if self._gone is not None:
                self._gone(Context(self, runtime, request, None), request)
            return "gone", None
        obj = copy.deepcopy(cached)  # the cache is everybody's
        if is_deleting(obj):
            return "success", self._let_go(Context(self, runtime, request, obj), obj)
        if self._finalizer and self._finalizer not in finalizers_of(obj):
            obj = add_finalizer(runtime.client, obj, self._finalizer)
        assert self._reconcile is not None
        try:
            return "success", self._reconcile(Context(self, runtime, request, obj), obj)
        except NotFound as error:
            if error.name != name_of(obj) or informer.store.get(request.name, namespace=request.namespace):
                raise
            return "gone", None  # it went while it was worked on

    def _let_go(self, context: Context[T], obj: T) -> float | None:
        if not self._finalizer or self._finalizer not in finalizers_of(obj):
            return None
        assert self._finalize is not None
        seconds = self._finalize(context, obj)
        if seconds is None:
            remove_finalizer(context.client, obj, self._finalizer)
        return seconds
