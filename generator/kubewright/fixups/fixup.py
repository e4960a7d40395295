"""What a fixup is: of two kinds, for faults that readers can live with and for faults that must be fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Waiver:
    """Faults of the OpenAPI validator that are known. ``applies_to`` says whether a parsed document is one it
    was written for; ``waives`` whether a fault (its message, whether the faulty value is ``{}``, and the path of
    the broken rule) is the known one."""

    name: str
    reason: str
    applies_to: Callable[[Any], bool]
    waives: Callable[[str, bool, tuple[str, ...]], bool]


@dataclass(frozen=True, slots=True)
class Mend:
    """A wrong marker that is taken out of named definitions before they are read. ``releases`` are the
    Kubernetes releases that have the fault; ``mend`` changes the definitions and says how often."""

    name: str
    reason: str
    releases: frozenset[str]
    mend: Callable[[dict[str, Any]], int]
