"""Values that were checked before: objects made of one template have equal parts, and a part is looked through once.

A check of a type depends on the value and the release alone, so a value in which nothing was wrong is right wherever it
is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TypeAlias

from apimachinery.kinds.hooks import Json
from apimachinery.meta.digests import digest_of
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.release import current_release

MOST = 4096
"""Values of one type; with one more, all are forgotten."""
Check: TypeAlias = Callable[[Json, str], Iterator[FieldError]]


def unless_known(check: Check) -> Callable[[Json, str], Iterable[FieldError]]:
    """The check of a type, which passes over values that it found nothing wrong with."""
    right: set[bytes] = set()

    @wraps(check)
    def checked(value: Json, prefix: str) -> Iterable[FieldError]:
        digest = digest_of(value, current_release().encode())
        if digest is None:
            return check(value, prefix)
        if digest in right:
            return ()
        faults = list(check(value, prefix))
        if not faults:
            if len(right) >= MOST:
                right.clear()
            right.add(digest)
        return faults

    return checked
