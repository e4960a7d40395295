"""What a fixup is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fixup:
    """``applies_to`` says whether a parsed document is one the fixup was written for; ``waives`` whether a
    fault (its message, whether the faulty value is ``{}``, and the path of the broken rule) is the known one."""

    name: str
    reason: str
    applies_to: Callable[[Any], bool]
    waives: Callable[[str, bool, tuple[str, ...]], bool]
