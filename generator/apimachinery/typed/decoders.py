"""Decoders of classes, made by one thread at a time.

msgspec keeps what it knows of a class on the class, where other threads see it before it is complete (0.18 to 0.20):
one that begins to use the class at that moment crashes the process. So every function that decodes into a class makes
its decoder here, or calls ``prepare`` before ``msgspec.convert`` and ``msgspec.json.decode``.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Final

import msgspec

_ALONE: Final = RLock()
_PREPARED: Final[set[Any]] = set()


def decoder(kind: Any, dec_hook: Callable[[Any, Any], Any] | None = None) -> msgspec.json.Decoder[Any]:
    """The decoder of a type."""
    with _ALONE:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook)


def prepare(kind: Any) -> None:
    """Completes what msgspec knows of a type and of those that it names."""
    if kind not in _PREPARED:
        decoder(kind)
        _PREPARED.add(kind)
