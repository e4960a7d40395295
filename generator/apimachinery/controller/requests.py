"""Which objects are to be worked on, and what ends work on them. One class each for threads and for asyncio. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from apimachinery.client.reflector import Change
from apimachinery.controller.kinds import meta_of
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


@dataclass(frozen=True, slots=True)
class Watch(Generic[O]):
    """Another kind that matters: ``requests`` names the objects to work on when one of it changes, ``when`` says
    which changes matter at all."""

    model: type[O]
    requests: Callable[[O], Iterable[Request]]
    when: Callable[[Change[O]], bool] | None = None
    label_selector: str = ""


def generation_changed(change: Change[Any]) -> bool:
    """Whether a change is of the spec, or of what else is not status: for ``when``."""
    if change.old is None:
        return True
    old, new = meta_of(change.old), meta_of(change.object)
    same = (
        old.generation == new.generation and old.labels == new.labels and old.annotations == new.annotations
    )
    return not same or old.deletion_timestamp != new.deletion_timestamp or change.old is change.object
