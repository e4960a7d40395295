"""Clients are written twice, plain and awaited: the names and words that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mode:
    """``prefix`` begins the names of classes, ``word`` those of modules; ``definition`` and ``call`` begin a function
    and a call of one."""

    prefix: str
    word: str
    definition: str
    call: str
    text: str

    @property
    def stem(self) -> str:
        """The name of the module that is written."""
        return f"{self.word}client"

    @property
    def module(self) -> str:
        """The module of ``apimachinery.client`` with the verbs."""
        return f"{self.word}resource"

    @property
    def connection(self) -> str:
        """The module of ``apimachinery.client`` with the connection."""
        return f"{self.word}connection"


MODES: Final = (
    Mode("", "", "def", "", "called plainly"),
    Mode("Async", "async_", "async def", "await ", "awaited"),
)
