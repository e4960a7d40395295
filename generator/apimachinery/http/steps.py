"""Steps: plain code that yields what it needs of the process, and how heavy its work is; it never says where that runs.

``compute`` decides for one piece of work, by its weight, and is the only one to do so:

- on the event loop, where the piece is light;
- on a thread for work, where it is heavy: that saves no time, but the loop answers others meanwhile, and the work ends
  when the request has cost too much;
- on a thread for waiting, where it may ask somebody else, such as a webhook, and block until the answer is there.

A weight is a number of bytes that are worked on, or ``LIGHT``, ``LONG`` or ``ASKS``. Code that awaits anyway (streams,
controllers) calls ``compute``; steps yield ``Work`` for one piece, or ``HEAVY`` for all that follows. Whoever drives
them (``server.write.driver``) answers; a test does it with a loop of four lines.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from apimachinery.http.messages import LARGE_BYTES
from apimachinery.http.workers import ASKING, apart_if

_P = ParamSpec("_P")
_R = TypeVar("_R")

LIGHT: Final = 0
LONG: Final = sys.maxsize
"""The weight of work that takes long, whatever its bytes."""
ASKS: Final = -1
"""The weight of work that may wait for somebody else."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Answered with what the awaitable that ``call`` makes answers. It is made on the event loop."""

    call: Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Work:
    """Answered with what ``call`` computes. The steps go on where they were."""

    weight: int
    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class AtOnce:
    """All steps are run at the same time. Answered with their answers, in order; of several that raise, the first in
    order counts, and whatever has not ended by then is dropped."""

    steps: Sequence[Asking[Any]]


class Heavy:
    """What follows, to the end, takes long to compute: it must not hold up others. Answered with None."""


HEAVY: Final = Heavy()
Asking: TypeAlias = Generator[Wait | Work | AtOnce | Heavy, Any, _R]
"""Steps that may have to wait; their answer is that of the generator."""
Waiting: TypeAlias = Asking[None] | None
"""What is returned by those who may have nothing to wait for: None where it is done."""


def wait_for(call: Callable[[], Awaitable[Any]]) -> Asking[None]:
    """Waits for one call."""
    yield Wait(call)


def work(weight: int, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> Asking[_R]:
    """Runs ``call`` as a ``Work`` of its own, at once where it is light. Raises what it raises."""
    # The common case without the price of a generator's yield.
    if 0 <= weight <= LARGE_BYTES:
        return call(*args, **kwargs)
    made: _R = yield Work(weight, partial(call, *args, **kwargs))
    return made


async def compute(weight: int, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Runs ``work`` where its weight allows, and returns what it returns. Raises what it raises, TooCostly."""
    where = ASKING if weight == ASKS else weight > LARGE_BYTES
    return await apart_if(where, work, *args, **kwargs)
