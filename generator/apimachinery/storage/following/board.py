"""Numbers that the processes of one server share, in memory that a fork inherits.

Theory. A consistent read must see every write that was acknowledged before it began. Asking the writer would cost a
message and a turn of its loop for each read; looking at a number costs nothing. The writer's revision is written here
before anybody hears of it: before the writer is answered, and before any watch has the event. So who reads the number
after an acknowledgement reads that revision or a later one, and waits until its own copy is there.

A number is an aligned machine word, which is read and written whole; what orders the two accesses is the message by
which the acknowledgement came, as it goes through the kernel.
"""

from __future__ import annotations

import mmap

_WORDS = 2


class RevisionBoard:
    """Make it before the fork. One process writes."""

    def __init__(self) -> None:
        # Anonymous and shared: a fork inherits the pages, and no file has a name that others could open.
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")[:_WORDS]

    @property
    def revision(self) -> int:
        """The newest revision of the writer's storage."""
        return self._words[0]

    @revision.setter
    def revision(self, revision: int) -> None:
        self._words[0] = revision

    @property
    def compacted(self) -> int:
        """The oldest revision that it can read."""
        return self._words[1]

    @compacted.setter
    def compacted(self, revision: int) -> None:
        self._words[1] = revision
