"""Garbage collection."""

from __future__ import annotations

from typing import Any


class GarbageCollector:
    """Deletes what nobody owns any more."""

    def __init__(self, *parts: Any) -> None:
        pass

    def start(self) -> None:
        """Starts."""

    async def stop(self) -> None:
        """Stops."""
