"""Encryption at rest, as drivers see it: functions over the bytes of a key."""

from __future__ import annotations

from typing import Protocol

from apimachinery.storage.interface import StorageError

ENCRYPTED = b"k8s:enc:"
"""What every encrypted value begins with; no object does."""


class Sealing(Protocol):
    """Encrypts what is written and decrypts what is read. ``key`` is the storage's, ``place`` the one that the value is
    bound to where the cipher can."""

    def seal(self, key: str, place: bytes, value: bytes) -> bytes:
        """What is stored of a value."""

    def open(self, key: str, place: bytes, stored: bytes) -> bytes:
        """The value. Raises StorageError."""

    def is_stale(self, key: str, stored: bytes) -> bool:
        """Whether ``seal`` would use another key, or none, or one where none was used."""


class NotOpened(StorageError):
    """An encrypted value that no key which is given opens."""


class Sealed(NotOpened):
    """An encrypted value, where no keys are given."""

    def __init__(self, key: str, stored: bytes) -> None:
        words = [word.decode("ascii", "replace") for word in stored[:128].split(b":", 5)[2:5]]
        super().__init__(
            f"{key} is encrypted ({', '.join(words)}); give --encryption-provider-config to read it"
        )


def opened(sealing: Sealing | None, key: str, place: bytes, stored: bytes) -> bytes:
    """The value of what is stored. Raises Sealed, and what ``open`` raises."""
    if sealing is not None:
        return sealing.open(key, place, stored)
    if stored.startswith(ENCRYPTED):
        raise Sealed(key, stored)
    return stored
