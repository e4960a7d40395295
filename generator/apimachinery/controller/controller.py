# Made from async_controller.py by build/plain.py: edit that one.
"""A controller: makes the world as the objects of one kind say, one object at a time, for threads.

Theory. A reconcile function gets an object as it is now, not what happened to it: it compares and corrects, so events
that were missed, doubled or seen late do no harm. The controller watches the kind itself (``for_``), the kinds that it
creates for it (``owns``: an event on an owned object is work on its owner) and others (``watches``, by a function that
names the objects to work on). What was there when it began has time: live events go before it. An object is worked on
by one worker at a time; what raises is tried again, later each time. Objects come out of a cache, so they may be a
moment old: writes that carry the version they are of meet ``Conflict`` then, and the object is worked on again when
the cache has caught up.
"""

from __future__ import annotations

import copy
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from apimachinery.client.access import key_of, name_of, namespace_of, resource_version_of
from apimachinery.client.errors import Conflict, NotFound, TransportError
from apimachinery.client.reflector import Change
from apimachinery.controller.cached import Cached, cached, choose
from apimachinery.controller.caches import CacheView
from apimachinery.controller.context import Context as Context
from apimachinery.controller.context import Runtime
from apimachinery.controller.kinds import (
    as_json,
    finalizers_of,
    is_deleting,
    live_json,
    owner_of,
    resource_of,
)
from apimachinery.controller.lister import CacheNotSynced
from apimachinery.controller.objects import (
    add_finalizer,
    remove_finalizer,
)
from apimachinery.controller.requests import LostLeadership as LostLeadership
from apimachinery.controller.requests import MapContext, with_selector
from apimachinery.controller.requests import Refused as Refused
from apimachinery.controller.requests import Request as Request
from apimachinery.controller.requests import Watch as Watch
from apimachinery.controller.requests import generation_changed as generation_changed
from apimachinery.controller.sources import Channel, Every
from apimachinery.controller.unchanged import applied_already
from apimachinery.queue.backlog import RateLimiter
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Outcome
from apimachinery.queue.running import Flag, RunningGroup
from apimachinery.queue.work_queue import WorkQueue
from apimachinery.typed.object import Object

T = TypeVar("T", bound=Object)
O = TypeVar("O", bound=Object)  # noqa: E741 - an object

UNREACHABLE_SECONDS: Final = (1.0, 2.0)
"""After how long an object is tried again whose server could not be reached: soon, for it is not the object's fault,
and not all at once."""

_log = logging.getLogger("kubewright.controller")


@dataclass(frozen=True, slots=True)
class _Written:
    """The status that was written last, and the versions that do not have it yet."""

    outdated: frozenset[str]
    status: object


def _has_time(change: Change[Any]) -> bool:
    """Whether a change tells of what was there before: at the first sync, and at each resync."""
    return change.initial or (change.kind == "MODIFIED" and change.old is change.object)


Reconcile: TypeAlias = Callable[[Context[T], T], float | None]
"""Gives in how many seconds to look again; None for when something changes."""
Gone: TypeAlias = Callable[[Context[T], Request], None]


class Controller(Generic[T]):
    """Reconciles one kind; ``Operator`` runs it, each a copy of its own: one controller may be given to many.

    ``finalizer`` keeps deleted objects until ``finalize`` has returned for them; it needs a domain (``example.com/x``).
    ``gone`` is called for objects that are not there any more. ``resync_seconds`` works on every object again and
    again, for worlds that do not say when they change. With ``for_=Cached(…, cluster=name)``, or ``at(name)``, it works
    in that cluster: what names no cluster is read and written there.
    """

    def __init__(
        self,
        *,
        for_: type[T] | Cached[T],
        reconcile: Reconcile[T] | None = None,
        owns: Sequence[type[Object] | Cached[Any]] = (),
        watches: Sequence[Watch[Any]] = (),
        reads: Sequence[type[Object] | Cached[Any]] = (),
        sources: Sequence[Channel | Every] = (),
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
        needs_lease: bool = True,
    ) -> None:
        self._main = with_selector(for_, label_selector)
        self.for_ = self._main.model
        self.name = name or f"{self.for_.KIND.lower()}-controller"
        self.needs_lease = needs_lease
        self._limiter = limiter
        self._clock = clock
        self._reconcile = reconcile
        self._finalizer = finalizer
        self._finalize = finalize
        self._gone = gone
        self._when = when
        self._owns = tuple(map(cached, owns))
        self._watches = tuple((watch, watch.cached) for watch in watches)
        others = [*map(cached, reads), *self._owns, *(options for _, options in self._watches)]
        self._declared: tuple[Cached[Any], ...] = (*others, self._main)
        self._sources = tuple(sources)
        self._workers = workers
        self._resync = resync_seconds
        self._set_up(None)

    def _set_up(self, runtime: Runtime | None) -> None:
        """Makes what a run needs."""
        self.queue: WorkQueue[Request] = WorkQueue(self._limiter, self._clock)
        self._runtime = runtime
        self._group = RunningGroup()
        self._stopped = Flag()
        self._deaf: list[Callable[[], None]] = []
        self._views: dict[object, CacheView[Any]] = {}
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

    def at(self, cluster: str) -> Self:
        """A copy that has its functions and works in another cluster of ``Operator(clusters=…)``."""
        made = copy.copy(self)
        made._main = replace(self._main, cluster=cluster)
        made._declared = (*self._declared[:-1], made._main)
        made._set_up(None)
        return made

    @property
    def home(self) -> str:
        """The cluster that it works in; empty for the operator's own."""
        return self._main.cluster

    def attached(self, runtime: Runtime) -> Self:
        """A copy that is to be run, with the informers it needs. Raises ``ValueError`` where it lacks a function."""
        if self._reconcile is None:
            raise ValueError(f"{self.name} has no reconcile function")
        if bool(self._finalizer) != (self._finalize is not None):
            raise ValueError(f"{self.name} needs both a finalizer's name and its function, or neither")
        # A copy: one declared controller may be run by several operators, each with its own queue.
        made = copy.copy(self)
        made._set_up(runtime.at(self.home))
        for options in made._declared:
            made._views[id(options)] = runtime.informers.view(made._placed(options))
        return made

    def _placed(self, options: Cached[O]) -> Cached[O]:
        return options if options.cluster else replace(options, cluster=self.home)

    def view(self, kind: type[O] | Cached[O]) -> CacheView[O]:
        """The cache of a kind. Raises ``ValueError`` where a class does not say which."""
        known = self._views.get(kind if isinstance(kind, type) else id(kind))
        if known is None:
            known = self._attached().informers.view(self._placed(choose(kind, self._declared, self.home)))
            if isinstance(kind, type):
                self._views[kind] = known
        return known

    def held(self, wanted: dict[str, Any], model: type[O]) -> O | None:
        """A copy of what a cache of this controller has of an object, where applying ``wanted`` would not change it."""
        name, namespace = wanted["metadata"].get("name"), wanted["metadata"].get("namespace") or ""
        for options in self._declared:
            if options.model is not model or options.metadata_only or options.transform:
                continue
            if options.cluster not in ("", self.home):
                continue
            view: CacheView[O] = self.view(options)
            if not name or not view.synced or (view.resource.namespaced and not namespace):
                continue
            found = view.lister(own_writes=True).get(name, namespace=namespace)
            if found is None or is_deleting(found):
                continue
            if applied_already(wanted, live_json(found), self.name):
                return copy.deepcopy(found)
        return None

    def start(self) -> None:
        """Hears of changes and works on what they mean; the informers are synced."""
        self.view(self._main).add_handler(self._hear_own, resync_seconds=self._resync)
        for kind in self._owns:
            self.view(kind).add_handler(self._hear_owned)
        for watch, options in self._watches:
            self.view(options).add_handler(self._hearer(watch))
        for source in self._sources:
            if isinstance(source, Channel):
                self._deaf.append(source.listen(self._add))
            else:
                self._group.spawn(f"{self.name}-timer", self._ring, source)
        for number in range(self._workers):
            self._group.spawn(f"{self.name}-{number}", self._work)

    def stop(self, grace_seconds: float) -> bool:
        """Takes on nothing more and waits for what is under way; whether it ended in time."""
        self._close()
        return self._group.join(grace_seconds)

    def abandon(self) -> None:
        """Takes on nothing more, and ends what is under way as far as it can be ended."""
        self._close()
        self._group.cancel()

    def _close(self) -> None:
        self._stopped.set()
        while self._deaf:
            self._deaf.pop()()
        self.queue.stop()

    @property
    def title(self) -> str:
        """What observers hear: its name, with the cluster where that is another."""
        return f"{self.name}@{self.home}" if self.home else self.name

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
        # Nothing was written, so what was noted before still holds.
        if resource_version_of(after) == resource_version_of(before):
            return
        known = self._written.get(request)
        outdated = known.outdated if known is not None else frozenset()
        self._written[request] = _Written(outdated | {resource_version_of(before)}, status)

    def _hear_own(self, change: Change[T]) -> None:
        if self._when is None or self._when(change):
            self._add(Request(*key_of(change.object)), low=_has_time(change))

    def _hear_owned(self, change: Change[Any]) -> None:
        # The old object too: an object that was handed over is news to its former owner.
        owners = {
            owner_of(obj, self.for_.API_VERSION, self.for_.KIND) for obj in (change.object, change.old) if obj
        }
        # an owner is of the same namespace, or of none
        namespace = (namespace_of(change.object) or "") if resource_of(self.for_).namespaced else ""
        for owner in owners - {""}:
            self._add(Request(namespace, owner), low=_has_time(change))

    def _hearer(self, watch: Watch[Any]) -> Callable[[Change[Any]], None]:
        context = MapContext(lambda kind: self.view(kind).lister())

        def hear(change: Change[Any]) -> None:
            if watch.when is None or watch.when(change):
                for obj in (change.object, change.old):
                    for request in watch.requests(context, obj) if obj is not None else ():
                        self._add(request, low=_has_time(change))

        return hear

    def _ring(self, timer: Every) -> None:
        context, clock = MapContext(lambda kind: self.view(kind).lister()), self.queue.backlog.clock
        due = clock.now() + timer.seconds
        while not self._stopped.wait(clock.real(max(0.0, due - clock.now()))):
            if clock.now() < due:
                continue
            due = clock.now() + timer.seconds
            try:
                for request in timer.requests(context):
                    self._add(request)
            except Exception:  # somebody else's function: it is asked again when the timer rings
                _log.exception("%s: the requests of a timer failed", self.name)

    def _add(self, request: Request, *, low: bool = False) -> None:
        self.queue.add(request, low=low)
        self._attached().observer.queued(self.title, len(self.queue))

    def _attached(self) -> Runtime:
        if self._runtime is None:
            raise ValueError(f"{self.name} is run by no operator")
        return self._runtime

    def _cached(self, request: Request) -> T | None:
        return self.view(self._main).lister().get(request.name, namespace=request.namespace)

    def _work(self) -> None:
        runtime = self._attached()
        while True:
            request = self.queue.get()
            # What is queued at the end is left: the next leader begins with all objects anyway.
            if request is None or self.queue.backlog.stopped:
                return
            runtime.observer.queued(self.title, len(self.queue))
            began = time.perf_counter()
            try:
                outcome = self._handle(request)
            finally:
                self.queue.done(request)
            runtime.observer.reconciled(self.title, outcome, time.perf_counter() - began)

    def _handle(self, request: Request) -> Outcome:
        """One object; whatever it raises means another try, later."""
        runtime = self._attached()
        try:
            with runtime.observer.reconciling(self.title, request.namespace, request.name):
                outcome, seconds = self._look(request)
        # Trying again would be refused again; a change of the object brings it back.
        except Refused as error:
            self.queue.forget(request)
            _log.warning("%s: %s is refused: %s", self.name, request, error)
            return "refused"
        # Whoever leads now works on it.
        except LostLeadership as error:
            _log.info("%s: %s is left to another copy: %s", self.name, request, error)
            return "lost"
        except CacheNotSynced as error:
            self._again(request)
            _log.debug("%s: %s waits: %s", self.name, request, error)
            return "again"
        # No error: the cache was behind, and will be current at the next try.
        except Conflict as error:
            self._again(request)
            _log.debug("%s: %s changed meanwhile: %s", self.name, request, error)
            return "conflict"
        except TransportError as error:
            # A request that was sent may have been made; one that was not is safe to send soon.
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
        # Success ends the growing pauses of earlier failures.
        self.queue.forget(request)
        if seconds is None:
            return outcome
        self.queue.add_after(request, seconds)
        return "again"

    def _again(self, request: Request) -> None:
        self.queue.add_rate_limited(request)
        self._attached().observer.retried(self.title, self.queue.failures(request))

    def _look(self, request: Request) -> tuple[Outcome, float | None]:
        runtime = self._attached()
        cached = self._cached(request)
        if cached is None:
            # The next object of this name has another status.
            self._written.pop(request, None)
            if self._gone is not None:
                self._gone(Context(self, runtime, request, None), request)
            return "gone", None
        obj = copy.deepcopy(cached)  # the cache is everybody's
        if is_deleting(obj):
            return "success", self._let_go(Context(self, runtime, request, obj), obj)
        if self._finalizer and self._finalizer not in finalizers_of(obj):
            # Before anything is made in the outer world: what is made needs somebody to clean it up.
            obj = add_finalizer(runtime.client, obj, self._finalizer)
        assert self._reconcile is not None
        try:
            return "success", self._reconcile(Context(self, runtime, request, obj), obj)
        except NotFound as error:
            # NotFound of another object is an error like any other.
            if error.name != name_of(obj) or self._cached(request):
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
