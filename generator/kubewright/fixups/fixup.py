"""What a fixup is: for a fault that must be mended before definitions are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mend:
    """A wrong marker that is taken out of named definitions before they are read. ``releases`` are the
    Kubernetes releases that have the fault; ``mend`` changes the definitions and says how often."""

    name: str
    reason: str
    releases: frozenset[str]
    mend: Callable[[dict[str, Any]], int]
