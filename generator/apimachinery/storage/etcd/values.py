"""Values between their stored and their served form: decrypted, decoded, with the revision; and back.

What is stored is JSON as this project writes it, or what a kube-apiserver wrote: protobuf in its envelope, CBOR, JSON.
Which of them, and how a kind looks, only the API knows: ``Foreign`` is its function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from apimachinery.storage.interface import Value
from apimachinery.storage.objects import NotAnObject, with_revision, without_revision
from apimachinery.storage.sealing import Sealing, opened

log = logging.getLogger("kubewright.storage")

Foreign = Callable[[str, bytes], bytes]
"""Makes of a key, and bytes that another program may have stored, the JSON that this one would have stored; raises
ValueError."""


def log_unread(unread: Mapping[bytes, str]) -> None:
    """Says in the log what is not served, as its values cannot be read."""
    if unread:
        key, reason = min(unread.items())
        log.warning(
            "%d objects are not served, as they cannot be read; 'kubewright storage check' lists them",
            len(unread),
            extra={"first": key.decode("utf-8", "replace"), "reason": reason},
        )


class EtcdValues:
    """How values are read and written; without arguments they are plain JSON of our own."""

    def __init__(self, sealing: Sealing | None = None, foreign: Foreign | None = None) -> None:
        self._sealing = sealing
        self._foreign = foreign

    def stored(self, key: str, place: bytes, value: Value) -> bytes:
        """What is stored of a value."""
        return self.sealed(key, place, without_revision(value))

    def sealed(self, key: str, place: bytes, plain: bytes) -> bytes:
        """What is stored of plain bytes."""
        return plain if self._sealing is None else self._sealing.seal(key, place, plain)

    def plain(self, key: str, place: bytes, stored: bytes) -> bytes:
        """The bytes of a stored value, decrypted. Raises StorageError."""
        return opened(self._sealing, key, place, stored)

    def is_stale(self, key: str, stored: bytes) -> bool:
        """Whether a value would be encrypted otherwise if it were stored now."""
        return self._sealing is not None and self._sealing.is_stale(key, stored)

    def served(self, key: str, place: bytes, stored: bytes, revision: int) -> bytes:
        """The JSON of a stored value at its revision. Raises StorageError, which says what the value is."""
        stored = self.plain(key, place, stored)
        try:
            if self._foreign is not None:
                stored = self._foreign(key, stored)
            return with_revision(stored, revision)
        except RecursionError:
            raise NotAnObject("nested too deeply") from None
        except (ValueError, LookupError, TypeError, AttributeError) as fault:
            # Whatever somebody else's bytes do to a decoder: one object that cannot be read must not stop the others.
            raise NotAnObject(str(fault) or type(fault).__name__) from None
