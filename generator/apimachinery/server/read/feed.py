"""The live watches of one scope: an event is judged and encoded once for all who see the same.

Theory. A *feed* listens to one scope of a resource. Its *groups* hold the watchers that see the same: one view,
one selection. An event is judged once for a group and encoded once for each form that groups are shown, and the same
bytes go into each watcher's backlog. What takes long to encode is encoded apart from the loop; what comes after it
waits for it. A *pass* then wakes the watchers a few at a time, letting the loop read requests in between. A pass that
wakes many is not followed by another for about as long as it took: under load several events leave a socket in one
write (and reach the client in one read), at rest each leaves at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from apimachinery.http.messages import QUICK_BYTES
from apimachinery.http.steps import ASKS, compute
from apimachinery.meta.errors import ApiError
from apimachinery.server.answer.view import Selection, View
from apimachinery.server.read.backlogs import Watcher
from apimachinery.server.read.watch_events import Forms, Seen, kind_of, takes_long
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import ResourceCache

WAKES_PER_STEP = 64
CROWD = 64
CROWD_SECONDS_EACH = 30e-6
CROWD_SECONDS = 0.05


@dataclass(slots=True)
class WatchGroup:
    """Watchers that are shown the same; ``after`` is 0 except for watches from a future revision."""

    view: View
    selection: Selection | None
    after: int
    seen: Seen | None = None
    watchers: list[Watcher] = field(default_factory=list)

    def kind(self, event: Event) -> str:
        """What the event is to this group, empty where it does not see it."""
        return "" if event.revision <= self.after else kind_of(event, self.selection)


@dataclass(slots=True)
class _ByValue:
    """The groups that demand one value of a field each, by that value."""

    read: Callable[[Record], str]
    groups: dict[str, dict[Hashable, WatchGroup]] = field(default_factory=dict)


class Feed:
    """The live watches of one scope.

    Those whose selection demands an exact value (a kubelet's: the name of its node) are looked up by the value of the
    event's object, so an event costs nothing for watches that it does not concern.
    """

    def __init__(
        self, cache: ResourceCache, scope: str, forget: Callable[[], None], asks: bool = False
    ) -> None:
        self._groups: dict[Hashable, WatchGroup] = {}
        self._open: dict[Hashable, WatchGroup] = {}  # those that demand no exact value
        self._by_field: dict[Hashable, _ByValue] = {}
        self._forget = forget
        self._cache = cache
        self._asks = asks
        self._converting: deque[Event] = deque()
        self._converter: asyncio.Task[None] | None = None
        self._stop = cache.listen(scope, self._take)
        self._sleeping: list[Watcher] = []
        self._passing = False
        self._pause = 0.0
        self._crowd_until = 0.0

    def join(
        self,
        watcher: Watcher,
        view: View,
        selection: Selection | None,
        after: int,
        seen: Seen | None = None,
    ) -> Callable[[], None]:
        """Adds a watcher; the answer takes it out again."""
        # Everything that decides what a watcher is shown.
        place = (view.key, view.watch_content_type, selection.key if selection else None, after)
        group = self._groups.get(place)
        if group is None:
            group = self._groups[place] = WatchGroup(view, selection, after, seen)
            self._alike(selection)[place] = group
        group.watchers.append(watcher)
        # Events up to here are in the state that it began with.
        watcher.since = self._cache.revision

        def leave() -> None:
            group.watchers.remove(watcher)
            if not group.watchers and self._groups.pop(place, None) is not None:
                self._leave(place, selection)
            if not self._groups:
                self._stop()
                self._forget()

        return leave

    def _alike(self, selection: Selection | None) -> dict[Hashable, WatchGroup]:
        """The groups among which one with this selection is found."""
        trigger = selection.trigger if selection is not None else None
        if trigger is None:
            return self._open
        by_value = self._by_field.setdefault(trigger.field, _ByValue(trigger.read))
        return by_value.groups.setdefault(trigger.value, {})

    def _leave(self, place: Hashable, selection: Selection | None) -> None:
        alike = self._alike(selection)
        del alike[place]
        if not alike and selection is not None and (trigger := selection.trigger) is not None:
            groups = self._by_field[trigger.field].groups
            del groups[trigger.value]
            if not groups:
                del self._by_field[trigger.field]

    def _concerned(self, event: Event) -> list[WatchGroup]:
        """The groups that may see an event."""
        groups = [*self._open.values()]
        for by_value in self._by_field.values():
            # Both states: an object that leaves a selection is a deletion to its watchers.
            values = {by_value.read(event.record)}
            if event.previous is not None:
                values.add(by_value.read(event.previous))
            for value in values:
                groups += by_value.groups.get(value, {}).values()
        return groups

    def watchers(self) -> Iterable[Watcher]:
        """All of them."""
        return [watcher for group in self._groups.values() for watcher in group.watchers]

    def _take(self, event: Event) -> None:
        # Once an event waits to be encoded, all later ones wait behind it, or they would overtake it.
        if self._asks or self._converting or self._is_long(event):
            self._converting.append(event)
            if self._converter is None:
                self._converter = asyncio.create_task(self._convert())
            return
        groups = self._concerned(event)
        self._push(Forms(event), [(g, kind, g.watchers) for g in groups if (kind := g.kind(event))])

    def _is_long(self, event: Event) -> bool:
        size = len(event.record.value)
        return size > QUICK_BYTES and any(takes_long(g.view, size) for g in self._groups.values())

    @property
    def revision(self) -> int:
        """Up to which revision the watchers were given every event."""
        # The first event that waits is not sent yet.
        return self._converting[0].revision - 1 if self._converting else self._cache.revision

    def _push(self, forms: Forms, seeing: Sequence[tuple[WatchGroup, str, Sequence[Watcher]]]) -> None:
        """Gives an event to these watchers of groups, as what it is to each group."""
        sharers: dict[int, int] = {}
        for group, kind, watchers in seeing:
            # Who is shown the same bytes is counted once for the budget.
            shared = id(forms.of(group.view, kind, False))
            sharers[shared] = sharers.get(shared, 0) + len(watchers)
        for group, kind, watchers in seeing:
            chunk = forms.of(group.view, kind, False)
            together = sharers[id(chunk)]
            if group.seen is not None:
                group.seen(len(chunk), len(watchers))
            for watcher in watchers:
                # The first event of a stream may be encoded with its schema (tables), later ones without.
                if watcher.fresh:
                    watcher.fresh = False
                    watcher.push(forms.of(group.view, kind, True), together)
                else:
                    watcher.push(chunk, together)
            self._sleeping.extend(watchers)
        self._start_pass()

    async def _convert(self) -> None:
        """Events that take long, or whose objects somebody else converts: one after another, and none for those who
        have joined since."""
        try:
            while self._converting:
                event, forms, groups = (
                    self._converting[0],
                    Forms(self._converting[0]),
                    [*self._groups.values()],
                )
                kinds = await compute(ASKS, _judged, event, forms, groups)
                self._push(
                    forms,
                    [
                        # Those who joined after the event have it in their first state.
                        (group, kind, [each for each in group.watchers if each.since < event.revision])
                        for group, kind in zip(groups, kinds, strict=True)
                        if kind
                    ],
                )
                # Only now: until it is sent, revision must not count it.
                self._converting.popleft()
        except Exception as fault:
            # Who watches starts again, and is told by the list why nothing can be shown.
            self._converting.clear()
            for watcher in self.watchers():
                watcher.end()
            if not isinstance(fault, ApiError):
                raise
        finally:
            self._converter = None

    def _start_pass(self) -> None:
        if self._sleeping and not self._passing:
            self._passing = True
            loop = asyncio.get_running_loop()
            if loop.time() < self._crowd_until:
                loop.call_at(self._crowd_until, self._begin_pass)
            else:
                loop.call_soon(self._begin_pass)

    def _begin_pass(self) -> None:
        if len(self._sleeping) > CROWD:
            # A watcher with several events is woken once.
            self._sleeping = list(dict.fromkeys(self._sleeping))
            self._pause = min(CROWD_SECONDS, CROWD_SECONDS_EACH * len(self._sleeping))
        self._pass()

    def _pass(self) -> None:
        step, self._sleeping = self._sleeping[:WAKES_PER_STEP], self._sleeping[WAKES_PER_STEP:]
        for watcher in step:
            watcher.wake()
        if self._sleeping:
            asyncio.get_running_loop().call_soon(self._pass)
            return
        self._passing = False
        if self._pause:
            self._crowd_until = asyncio.get_running_loop().time() + self._pause
            self._pause = 0.0


def _judged(event: Event, forms: Forms, groups: Sequence[WatchGroup]) -> list[str]:
    """What an event is to each group; its forms are encoded."""
    kinds = [group.kind(event) for group in groups]
    for group, kind in zip(groups, kinds, strict=True):
        for first in {False, *(watcher.fresh for watcher in group.watchers)} if kind else ():
            forms.of(group.view, kind, first)
    return kinds
