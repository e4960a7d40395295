"""What a server gives a new object: a name after ``generateName``, a uid, the time."""

from __future__ import annotations

import secrets
import time

from apimachinery.meta.clock import wall

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


def generated_name(prefix: str) -> str:
    """A name after ``generateName``: five random letters, 63 bytes at most (58 of the prefix)."""
    return prefix[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))


def new_uid() -> str:
    """A random UUID (version 4)."""
    digits = secrets.token_hex(16)
    # RFC 9562: the version stands before the third group, the variant in the two highest bits of the fourth.
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


_clock: tuple[int, str] = (0, "")


def now() -> str:
    """The time in RFC 3339, in whole seconds."""
    global _clock
    second = int(wall())
    if _clock[0] != second:
        _clock = (second, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)))
    return _clock[1]
