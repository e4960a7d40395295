"""Values that were checked before: objects made of one template have equal parts, and a part is looked through once.

A check of a type depends on the value and the release alone, so a value in which nothing was wrong is right wherever it
is found. What is kept is a digest, since clients choose the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from apimachinery.kinds.hooks import Json
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.release import current_release

MOST = 4096
"""Values of one type; with one more, all are forgotten."""
LONGEST = 32 << 10
"""Encoding and digesting more would hold the interpreter for long."""
DIGEST_BYTES = 16
Check: TypeAlias = Callable[[Json, str], Iterator[FieldError]]
_encode = msgspec.json.Encoder().encode


def unless_known(check: Check) -> Callable[[Json, str], Iterable[FieldError]]:
    """The check of a type, which passes over values that it found nothing wrong with."""
    right: set[bytes] = set()

    @wraps(check)
    def checked(value: Json, prefix: str) -> Iterable[FieldError]:
        try:
            data = _encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return check(value, prefix)
        if len(data) > LONGEST:
            return check(value, prefix)
        seen = blake2b(data, digest_size=DIGEST_BYTES, person=current_release().encode()).digest()
        if seen in right:
            return ()
        faults = list(check(value, prefix))
        if not faults:
            if len(right) >= MOST:
                right.clear()
            right.add(seen)
        return faults

    return checked
