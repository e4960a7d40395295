"""The Python emitter: everything that a Python package consists of."""

from __future__ import annotations

from kubewright.emit.interface import Language


def language() -> Language:
    """The emitter."""
    from kubewright.emit.python.parts import Python

    return Python()
