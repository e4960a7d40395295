"""The Kubernetes release whose rules hold for the object that is checked.

Checks of an object ask for it deep inside, where feature gates and CEL libraries depend on it, so it is a context
variable: whoever checks an object says for which release, and two servers in one process do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

RELEASE = "1.36"
"""The release whose behaviour this project has, where nothing else is asked for."""
_current: ContextVar[str] = ContextVar("release", default=RELEASE)


def current_release() -> str:
    """The release whose rules hold."""
    return _current.get()


@contextmanager
def rules_of(release: str) -> Iterator[None]:
    """The rules of a release hold inside."""
    token = _current.set(release)
    try:
        yield
    finally:
        _current.reset(token)


def release_number(text: str) -> tuple[int, ...]:
    """``1.36``, or ``v1.36``, as numbers that compare. Raises ValueError."""
    return tuple(int(part) for part in text.removeprefix("v").split("."))
