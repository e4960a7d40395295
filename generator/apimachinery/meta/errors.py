"""API failures as exceptions, one class per ``reason`` of a Status, and the Status they carry.

The server raises them and writes ``status()``; the client reads a Status and raises the same classes, so
a ``NotFound`` is one thing on both sides. Reasons, codes and the shape of ``details`` follow meta/v1 Status.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of ``details.causes``; ``field`` may be empty."""

    reason: str
    message: str
    field: str = ""


@dataclass(eq=False)
class ApiError(Exception):
    """A failed request: HTTP ``code``, Status ``reason`` (may be empty) and ``message``, and the details.

    ``retry_after`` is in whole seconds, 0 for none. ``continue_token`` lets an expired list go on.
    """

    code: int
    reason: str
    message: str
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = field(default=())
    retry_after: int = 0
    has_details: bool = True
    continue_token: str = ""

    def __str__(self) -> str:
        return self.message

    def status(self) -> dict[str, Any]:
        """The Status object of this failure, with keys in kube-apiserver's order."""
        answer: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            answer["reason"] = self.reason
        if self.has_details:
            details: dict[str, Any] = {}
            for key in ("name", "group", "kind", "uid"):
                if value := getattr(self, key):
                    details[key] = value
            if self.causes:
                details["causes"] = [
                    {"reason": c.reason, "message": c.message, **({"field": c.field} if c.field else {})}
                    for c in self.causes
                ]
            if self.retry_after:
                details["retryAfterSeconds"] = self.retry_after
            answer["details"] = details
        answer["code"] = self.code
        return answer
