"""What a large request has made is freed a little at a time.

Freeing an object of a million parts is one step for the interpreter, and no other thread runs meanwhile: whoever lets
go of it last holds the loop for up to 100 ms, on whatever thread. So what pieces of work have answered or raised is
kept until the request is answered, and then taken to pieces on a thread. What somebody else still refers to is left
whole.
"""

from __future__ import annotations

from collections.abc import Generator
from sys import getrefcount
from types import TracebackType
from typing import Any

from apimachinery.http.workers import made_for_request, on_thread


def _own_references() -> int:
    pile = [[0]]
    value = pile.pop()
    return getrefcount(value)


_OWN_REFERENCES = _own_references()
"""What ``getrefcount`` says of a value that a variable alone refers to: 2, and 1 since Python 3.14."""


def free_what_was_made() -> None:
    """Frees on a thread what work on threads has made for this task's request."""
    if made := made_for_request():
        on_thread(free, made)


# A pile instead of recursion: values may be nested deeper than the stack allows.
def free(values: list[Any]) -> None:
    """Empties the list, the last values first, and with each whatever nobody else refers to."""
    pile: list[Any] = []
    while values:
        pile.append(values.pop())
        while pile:
            value = pile.pop()
            if isinstance(value, BaseException):
                pile += _held_by_fault(value)
            # Shared values are left whole: somebody else still reads them.
            elif getrefcount(value) <= _OWN_REFERENCES:
                _empty(value, pile)


def _empty(value: Any, pile: list[Any]) -> None:
    kind = type(value)
    if kind is dict:
        while value:
            _, member = value.popitem()
            if member and type(member) in _CONTAINERS:
                pile.append(member)
    elif kind is list:
        while value:
            member = value.pop()
            if member and type(member) in _CONTAINERS:
                pile.append(member)
    elif kind is tuple:
        pile += [member for member in value if type(member) in _CONTAINERS]


_CONTAINERS = frozenset((dict, list, tuple))


def held_by(steps: Generator[Any, Any, Any]) -> list[Any]:
    """What the frames of a generator that waits, and of those that it waits for, refer to."""
    held: list[Any] = []
    waiting: Any = steps
    while (frame := getattr(waiting, "gi_frame", None)) is not None:
        held += [value for value in frame.f_locals.values() if type(value) in _CONTAINERS]
        waiting = waiting.gi_yieldfrom
    return held


def _held_by_fault(fault: BaseException) -> list[Any]:
    """What the frames of a fault refer to, and the faults before it; the fault lets go of them."""
    found: list[Any] = [each for each in (fault.__context__, fault.__cause__) if each is not None]
    place: TracebackType | None = fault.__traceback__
    fault.__traceback__ = fault.__context__ = fault.__cause__ = None
    while place is not None:
        found += [value for value in place.tb_frame.f_locals.values() if type(value) in _CONTAINERS]
        place = place.tb_next
    return found
