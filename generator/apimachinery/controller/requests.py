"""Which objects are to be worked on, and what ends work on them. One class each for threads and for asyncio. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from apimachinery.client.access import name_of, namespace_of
from apimachinery.client.reflector import Change
from apimachinery.controller.cached import Cached, cached
from apimachinery.controller.kinds import meta_of
from apimachinery.controller.lister import Lister
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class LostLeadership(Exception):
    """The lease could not be renewed in time: another copy may lead by now. Let the process end. Writes through the
    operator's client raise it too, before anything is sent."""


class Refused(Exception):
    """An error that trying again does not cure (a spec that cannot be fulfilled): raise it in a reconcile function,
    and the object rests until it changes."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which object is to be worked on; the namespace is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def request_for(obj: Any) -> Request:
    """The request that names an object."""
    return Request(namespace_of(obj) or "", name_of(obj))


class MapContext:
    """What functions that name objects to work on have: the caches of the controller."""

    def __init__(self, lister: Callable[[Any], Lister[Any]]) -> None:
        self._lister = lister

    def lister(self, kind: type[O] | Cached[O]) -> Lister[O]:
        """The cache of a kind. Raises ``CacheNotSynced`` in reads of one that is not there yet."""
        return self._lister(kind)

    def indexed(self, kind: type[Object] | Cached[Any], index: str, value: str) -> list[Request]:
        """The objects of a kind for which an index function gave ``value``. Raises ``KeyError``."""
        return [request_for(obj) for obj in self._lister(kind).by_index(index, value)]


@dataclass(frozen=True, slots=True)
class Watch(Generic[O]):
    """Another kind that matters: ``requests`` names the objects to work on when one of it changes, ``when`` says
    which changes matter at all."""

    model: type[O] | Cached[O]
    requests: Callable[[MapContext, O], Iterable[Request]]
    when: Callable[[Change[O]], bool] | None = None
    label_selector: str = ""

    @property
    def cached(self) -> Cached[O]:
        """The kind with the options of its cache."""
        return with_selector(self.model, self.label_selector)


def with_selector(kind: type[O] | Cached[O], label_selector: str) -> Cached[O]:
    """The options of a kind, with a label selector. Raises ``ValueError`` where they have one already."""
    options = cached(kind)
    if not label_selector:
        return options
    if options.label_selector:
        raise ValueError(f"{options.model.KIND} has two label selectors: name one, in Cached(…)")
    return replace(options, label_selector=label_selector)


def generation_changed(change: Change[Any]) -> bool:
    """Whether a change is of the spec, or of what else is not status: for ``when``."""
    if change.old is None:
        return True
    old, new = meta_of(change.old), meta_of(change.object)
    same = (
        old.generation == new.generation and old.labels == new.labels and old.annotations == new.annotations
    )
    return not same or old.deletion_timestamp != new.deletion_timestamp or change.old is change.object
