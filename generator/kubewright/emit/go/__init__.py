"""The Go emitter: types with markers, deep copies, registration and apply configurations."""

from __future__ import annotations

from kubewright.emit.interface import Language


def language() -> Language:
    """The emitter."""
    from kubewright.emit.go.files import Go

    return Go()
