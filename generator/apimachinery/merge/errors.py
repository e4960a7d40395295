"""What merging refuses, as exceptions that already know their answer on the wire.

Every failure is a ``MergeError`` with the HTTP ``code`` and the Status ``reason`` that kube-apiserver gives
for it, and its message as kube-apiserver words it. A server copies these into its Status; a command line
prints the message. This package knows nothing else of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar


@dataclass(frozen=True, slots=True)
class MergeCause:
    """One entry of ``details.causes``."""

    reason: str
    message: str
    field: str = ""


class MergeError(Exception):
    """A request that cannot be merged. ``reason`` may be empty, as in a bare 500."""

    def __init__(
        self, message: str, *, code: int = 500, reason: str = "", causes: tuple[MergeCause, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = causes


class BadPatch(MergeError):
    """400 BadRequest: the patch itself is not what its media type says."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=400, reason="BadRequest")


@dataclass(frozen=True, slots=True)
class TypeFault:
    """A value that its merge schema does not allow: ``path`` in the form ``.spec.ports[port=1]``, and why."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


class TypeFaults(Exception):
    """All faults of one object against its merge schema, in the object's order."""

    def __init__(self, faults: tuple[TypeFault, ...]) -> None:
        lines = [str(fault) for fault in faults]
        super().__init__(
            lines[0] if len(lines) == 1 else "\n".join(["errors:", *(f"  {line}" for line in lines)])
        )
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that an apply wants to change and another manager owns.

    ``path`` reads ``.spec.containers[name="a"].image``. ``api_version`` is empty for appliers, which own at
    whatever version they applied last."""

    manager: str
    path: str
    operation: str = "Apply"
    api_version: str = ""
    subresource: str = ""

    @property
    def owner(self) -> str:
        """The owner in kube-apiserver's words: ``"hpa" with subresource "scale" using autoscaling/v1``."""
        words = quote(self.manager)
        if self.subresource:
            words += f" with subresource {quote(self.subresource)}"
        return f"{words} using {self.api_version}" if self.operation == "Update" else words


class Conflicts(MergeError):
    """409: an apply without force would change fields of others. ``conflicts`` is sorted by owner, then
    path."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        self.conflicts = conflicts
        if len(conflicts) == 1:
            text = f"1 conflict: conflict with {conflicts[0].owner}: {conflicts[0].path}"
        else:
            lines: list[str] = []
            owner = None
            for conflict in conflicts:
                if conflict.owner != owner:
                    owner = conflict.owner
                    lines.append(f"conflicts with {owner}:")
                lines.append(f"- {conflict.path}")
            text = f"{len(conflicts)} conflicts: " + "\n".join(lines)
        super().__init__(
            f"Apply failed with {text}",
            code=409,
            reason="Conflict",
            causes=tuple(
                MergeCause("FieldManagerConflict", f"conflict with {c.owner}", c.path) for c in conflicts
            ),
        )


_P = ParamSpec("_P")
_R = TypeVar("_R")


def refuse_deep(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, with ``BadPatch`` for values nested deeper than Python can walk."""

    @wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise BadPatch("the object or the patch is nested too deeply") from None

    return guarded


class UnknownVersion(Exception):
    """A converter has no such version: entries of managedFields at it are dropped."""


_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """``text`` as Go's ``%q`` prints it."""
    out = []
    for char in text:
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif ord(char) < 0x80:
            out.append(f"\\x{ord(char):02x}")
        elif ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return '"' + "".join(out) + '"'
