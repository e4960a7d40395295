"""The JSON Schema emitter: what editors and validators take."""

from __future__ import annotations

from kubewright.emit.interface import Language


def language() -> Language:
    """The emitter."""
    from kubewright.emit.jsonschema.files import JsonSchema

    return JsonSchema()
