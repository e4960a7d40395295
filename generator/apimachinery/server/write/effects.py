"""What a write asks for while it runs: the object as it is, a place in the storage, somebody's answer.

Theory. A write is ``Steps``, a generator of plain code. Wherever it needs something that only the process has, it
yields an effect and is resumed with the answer. So the code of a verb reads top to bottom, knows neither the event loop
nor threads, and a test drives it with a loop of four lines. Who drives it may rely on this:

- Between two effects a write computes with values of its own and reads what others replace as a whole (caches, compiled
  kinds). It may run on any thread, on another one after each effect, but never on two at a time, and may block where a
  webhook converts its objects.
- An effect is answered once: with a value, or with an exception, which is raised where the effect was yielded.
- Nothing is locked between ``Current`` and the effect that stores: what somebody else has stored meanwhile shows as
  RevisionConflict, KeyNotFound or KeyExists there, and the write starts over from ``Current``.
- A write may be dropped at any effect, when nobody waits for it any more: whatever has not been stored by then is not
  stored. So no step yields while it is being closed; what was allocated for the write is given back by the driver.
- Dry runs go the same way. That nothing is kept is up to who answers ``Create``, ``Update`` and ``Delete``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from apimachinery.http.steps import AtOnce, Heavy, Wait, Work
from apimachinery.kinds.hooks import Json
from apimachinery.server.request.target import WriteTarget
from apimachinery.storage.interface import Record, Value


class Begin(msgspec.Struct):
    """The write of a target begins. Answered with None."""

    target: WriteTarget


class Current(msgspec.Struct):
    """Answered with the target's record, or None, once this process writes it no more; begins its write too."""

    target: WriteTarget


class Create(msgspec.Struct):
    """Answered with the new record. Raises KeyExists; ApiError where what was allocated is another's by now."""

    target: WriteTarget
    value: Value


class Update(msgspec.Struct):
    """Replaces ``record``; answered with the new one. Raises KeyNotFound, RevisionConflict, ApiError as ``Create``."""

    target: WriteTarget
    record: Record
    value: Value


class Delete(msgspec.Struct):
    """Ends ``record``; answered with what its DELETED event shows: ``value``, which is ``last`` as bytes. Where it is
    ``marked``, an event that shows the mark comes first. Raises KeyNotFound, RevisionConflict."""

    target: WriteTarget
    record: Record
    value: Value
    last: Json
    marked: bool = False


Effect: TypeAlias = Begin | Current | Create | Update | Delete | Wait | Work | AtOnce | Heavy
_R = TypeVar("_R")
Steps: TypeAlias = Generator[Effect, Any, _R]
"""A write, or a part of one; its answer is that of the generator."""
