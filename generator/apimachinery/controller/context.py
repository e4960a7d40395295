# Made from async_context.py by build/plain.py: edit that one.
"""What a reconcile function works with: the object it was called for, the client, and the caches; awaited."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from apimachinery.client.connection import Client
from apimachinery.client.objects import KindApi
from apimachinery.controller.cached import Cached, known
from apimachinery.controller.caches import SharedInformers
from apimachinery.controller.event_series import EventKind
from apimachinery.controller.kinds import as_json, meta_of, owned_configuration, owner_of
from apimachinery.controller.lister import Lister
from apimachinery.controller.objects import apply, write_status
from apimachinery.controller.recorder import Recorder
from apimachinery.controller.requests import Request
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.queue.observing import Observer
from apimachinery.typed.object import Object

if TYPE_CHECKING:
    from apimachinery.controller.controller import Controller

T = TypeVar("T", bound=Object)
O = TypeVar("O", bound=Object)  # noqa: E741 - an object

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
        worked on, and deleted with it. Where the controller's cache of the kind has all of it already, nothing is
        sent, and a copy of what the cache has is returned."""
        owner = self._object if owned else None
        manager = self._controller.name
        held = self._controller.held(owned_configuration(obj, owner), type(obj))
        if held is not None:
            return held
        return apply(self.client, obj, field_manager=manager, owner=owner, force=force)

    def api(self, model: type[O]) -> KindApi[O]:
        """The verbs of a kind, typed: ``context.api(Secret).get("key")``; through the same client as ``apply``."""
        return self.client.api(model)

    @property
    def home(self) -> str:
        """The name of the cluster of the object, where it is not the operator's own."""
        return self._controller.home

    def cluster(self, name: str) -> Client:
        """The client of another cluster. Raises ``KeyError`` for one that the operator does not have."""
        return self._runtime.clusters[name]

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
        """Records an event about the object worked on."""
        if self._object is not None:
            self._runtime.recorder(self._controller.name).event(self._object, kind, reason, message)

    def lister(self, kind: type[O] | Cached[O], *, own_writes: bool = False) -> Lister[O]:
        """The cache of a kind, with the options that the controller gave for it. That of a kind which the controller
        does not have begins now: reads raise ``CacheNotSynced`` until it is whole, and the object is worked on again
        then. With ``own_writes`` reads see what this operator wrote, also before the cache does."""
        return self._controller.view(kind).lister(own_writes=own_writes)

    def synced_lister(
        self, kind: type[O] | Cached[O], *, own_writes: bool = False, timeout: float = 10.0
    ) -> Lister[O]:
        """As ``lister``, when the cache is whole. Raises ``TimeoutError``."""
        view = self._controller.view(kind)
        view.wait_until_synced(timeout)
        return view.lister(own_writes=own_writes)

    def owned(self, kind_or_cached: type[O] | Cached[O]) -> list[O]:
        """The objects of a kind that belong to the one worked on, out of the cache."""
        kind = self._controller.for_
        return [
            obj
            for obj in self.lister(kind_or_cached).namespaced(self.request.namespace).list()
            if owner_of(obj, kind.API_VERSION, kind.KIND) == self.request.name
        ]


class Runtime:
    """What controllers of one program share."""

    def __init__(
        self,
        clusters: Mapping[str, Client],
        informers: SharedInformers,
        *,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        """``clusters`` are clients by name; the operator's own has none."""
        self.leading = leading
        self.clusters = clusters
        self.client = clusters[""]
        self.informers = informers
        self.observer = observer if observer is not None else Observer()
        self.clock = clock
        self._recorders: dict[str, Recorder] = {}

    def at(self, cluster: str) -> Runtime:
        """The same for controllers that work in another cluster; empty for this one. Raises ``ValueError``."""
        if not cluster:
            return self
        made = copy.copy(self)
        made.client = self.clusters[known(cluster, self.clusters)]
        made._recorders = {}
        return made

    def recorder(self, component: str) -> Recorder:
        """The recorder of a component; what it told before counts."""
        if component not in self._recorders:
            self._recorders[component] = Recorder(self.client, component, clock=self.clock)
        return self._recorders[component]
