"""Admission: who may still refuse or change an object after the request is understood and before it is stored.

Every plugin, built in or configured, implements ``Admission``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from apimachinery.server.request.target import WriteTarget


@dataclass(frozen=True, slots=True)
class Operation:
    """``CREATE``, ``UPDATE`` or ``DELETE`` of an object; ``obj`` is None in a deletion, ``old`` in a creation."""

    verb: str
    target: WriteTarget
    obj: dict[str, Any] | None
    old: dict[str, Any] | None
    name: str


class Admission(Protocol):
    """``admit`` may change the object, then ``validate`` may refuse it. Both raise ApiError."""

    def admit(self, operation: Operation) -> None:
        """Before defaulted fields are checked."""

    def validate(self, operation: Operation) -> None:
        """After validation."""
