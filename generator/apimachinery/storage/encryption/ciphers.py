"""The ciphers of EncryptionConfiguration, laid out as kube-apiserver lays them out.

aescbc      IV of 16 bytes, then AES-CBC with PKCS #7 padding; nothing says whether it was changed
aesgcm      nonce of 12 bytes, then AES-GCM with the key's place in etcd as additional data
secretbox   nonce of 24 bytes, then XSalsa20 and Poly1305
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from apimachinery.storage.interface import StorageError

BLOCK = 16
GCM_NONCE = 12
BOX_NONCE = 24
BOX_KEY = 32


class CipherError(StorageError):
    """A key that cannot be, or bytes that it does not open."""


class Cipher(Protocol):
    """One key."""

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        """A value, bound to the place where it is kept as far as the cipher can."""

    def decrypt(self, data: bytes, place: bytes) -> bytes:
        """The value. Raises CipherError."""


class AesCbc:
    """See the header."""

    def __init__(self, secret: bytes) -> None:
        _check_aes(secret)
        self._algorithm = AES(secret)

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        padder = PKCS7(BLOCK * 8).padder()
        # A new vector for each value: equal values must not look equal.
        vector = os.urandom(BLOCK)
        encryptor = BlockCipher(self._algorithm, CBC(vector)).encryptor()
        padded = padder.update(value) + padder.finalize()
        return vector + encryptor.update(padded) + encryptor.finalize()

    def decrypt(self, data: bytes, place: bytes) -> bytes:
        # At least one block besides the vector: padding always adds something.
        if len(data) < 2 * BLOCK or len(data) % BLOCK:
            raise CipherError("the stored data has no whole blocks")
        decryptor = BlockCipher(self._algorithm, CBC(data[:BLOCK])).decryptor()
        unpadder = PKCS7(BLOCK * 8).unpadder()
        try:
            padded = decryptor.update(data[BLOCK:]) + decryptor.finalize()
            return unpadder.update(padded) + unpadder.finalize()
        except ValueError:
            raise CipherError("the key does not fit, or the data is damaged") from None


class AesGcm:
    """See the header."""

    def __init__(self, secret: bytes) -> None:
        _check_aes(secret)
        self._cipher = AESGCM(secret)

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        nonce = os.urandom(GCM_NONCE)
        return nonce + self._cipher.encrypt(nonce, value, place)

    def decrypt(self, data: bytes, place: bytes) -> bytes:
        if len(data) < GCM_NONCE + BLOCK:
            raise CipherError("the stored data is too short")
        try:
            # The place is authenticated, so a value cannot be moved to another object.
            return self._cipher.decrypt(data[:GCM_NONCE], data[GCM_NONCE:], place)
        except InvalidTag:
            raise CipherError("the key does not fit, or the data is damaged or of another object") from None


class SecretBox:
    """See the header."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != BOX_KEY:
            raise CipherError(f"must be {BOX_KEY} bytes, not {len(secret)}")
        try:
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox as Box
        except ImportError:
            raise CipherError("secretbox needs PyNaCl: pip install 'kubewright[etcd]'") from None
        self._box = Box(secret)
        self._fault = CryptoError

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        # The nonce is written in front by the library.
        return bytes(self._box.encrypt(value, os.urandom(BOX_NONCE)))

    def decrypt(self, data: bytes, place: bytes) -> bytes:
        try:
            return bytes(self._box.decrypt(data))
        except (self._fault, ValueError):
            raise CipherError("the key does not fit, or the data is damaged") from None


def _check_aes(secret: bytes) -> None:
    if len(secret) not in (16, 24, 32):
        raise CipherError(f"must be 16, 24 or 32 bytes, not {len(secret)}")


CIPHERS: dict[str, Callable[[bytes], Cipher]] = {"aescbc": AesCbc, "aesgcm": AesGcm, "secretbox": SecretBox}
