"""What writes ask of an allocator: somebody who gives objects of a kind things that no two of them may have."""

from __future__ import annotations

from typing import Protocol

from apimachinery.kinds.hooks import Json
from apimachinery.server.request.target import Allocation, WriteTarget


class Allocator(Protocol):
    """Gives things to the objects of one resource."""

    def allocate(self, target: WriteTarget, obj: Json, old: Json | None) -> Allocation:
        """Fills in what the object is to have; called before it is checked. Raises ApiError."""

    async def removed(self, obj: Json) -> None:
        """Frees what a removed object had."""
