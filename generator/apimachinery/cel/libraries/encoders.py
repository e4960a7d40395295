"""base64.encode and base64.decode. Not in Kubernetes."""

from __future__ import annotations

import base64
import binascii

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values.errors import EvalError


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvalError("illegal base64 data") from None


def encoders() -> Library:
    """The library."""
    lib = Library("encoders")
    lib.overload(
        "base64.encode", "base64_encode_bytes", "(bytes) string", lambda b: base64.b64encode(b).decode()
    )
    lib.overload("base64.decode", "base64_decode_string", "(string) bytes", _decode)
    return lib
