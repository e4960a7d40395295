"""Events as watchers see them: what an event is to a selection, and its bytes in a view."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from apimachinery.http.steps import ASKS, LIGHT
from apimachinery.server.answer.view import JsonView, Selection, View, at_revision
from apimachinery.storage.interface import Event

Seen = Callable[[int, int], None]
"""Takes the size of an event and how many watchers it is for."""


class Forms:
    """One event in the forms that are asked for, each encoded once."""

    __slots__ = ("_event", "_made")

    def __init__(self, event: Event) -> None:
        self._event = event
        self._made: dict[Hashable, bytes] = {}

    def of(self, view: View, kind: str, first: bool) -> bytes:
        """The event as a view shows it; ``first`` of its stream."""
        form = (view.key, view.watch_content_type, kind)
        made = self._made.get((form, first))
        if made is None:
            made = encode_event(self._event, view, kind, first)
            # Few views show the first event in another way; the others share one copy.
            if (other := self._made.get((form, not first))) is not None and other == made:
                made = other
            self._made[form, first] = made
        return made


def kind_of(event: Event, selection: Selection | None) -> str:
    """What an event is to those who see through a selection; empty where nothing is seen."""
    previous = event.previous
    if selection is None:
        return "DELETED" if event.deleted else "MODIFIED" if previous is not None else "ADDED"
    was = previous is not None and selection.matches(previous)
    if event.deleted:
        return "DELETED" if was else ""
    if selection.matches(event.record):
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else ""


def encode_event(event: Event, view: View, kind: str, first: bool) -> bytes:
    """An event as what it is to those who see it."""
    record, previous = event.record, event.previous
    if kind == "DELETED" and not event.deleted and previous is not None:  # it left the selection
        record = at_revision(previous, event.revision)
    return view.event(kind, record, first)


def takes_long(view: View, size: int) -> bool:
    """Whether objects of so many bytes take long to encode: stored bytes are only copied."""
    return size > view.quick_bytes and not isinstance(view, JsonView)


def weight_of_events(view: View, size: int, asks: bool) -> int:
    """How heavy it is to encode so many bytes. What takes long does not wait for the heavy work of others."""
    return ASKS if asks or takes_long(view, size) else LIGHT
