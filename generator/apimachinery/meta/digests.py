"""Digests of JSON values, for whoever remembers what was found out about a value.

Clients choose the values, so the digest is one that nobody can find two values for, and nothing of a value is kept.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

DIGEST_BYTES = 16
LONGEST = 32 << 10
"""To go through more would hold the interpreter for long."""
# MessagePack keeps apart what JSON values are: true, 1 and 1.0, a text and bytes.
_pack = msgspec.msgpack.Encoder().encode


def digest_of(value: Any, purpose: bytes = b"", *, longest: int = LONGEST) -> bytes | None:
    """The digest of a value for a purpose (16 bytes at most); None of a large one, and of what is no JSON. Objects are
    the same only if their fields are in the same order."""
    try:
        data = _pack(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    if len(data) > longest:
        return None
    return blake2b(data, digest_size=DIGEST_BYTES, person=purpose).digest()
