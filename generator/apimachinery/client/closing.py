"""What a ``with`` block closes when it is left: clients, watches, logs and commands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class AsyncClosing(ABC):
    """Closed when an ``async with`` block is left."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Ends it; doing so again does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Closing(ABC):
    """Closed when a ``with`` block is left."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Ends it; doing so again does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
