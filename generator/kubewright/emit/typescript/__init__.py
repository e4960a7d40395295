"""The TypeScript emitter: types, resources and a client over ``fetch``, without dependencies."""

from __future__ import annotations

from kubewright.emit.interface import Language


def language() -> Language:
    """The emitter."""
    from kubewright.emit.typescript.files import TypeScript

    return TypeScript()
