"""Which resources are encrypted with which keys: kube-apiserver's EncryptionConfiguration, read from its plain values.

Rules (the Kubernetes task "Encrypting Confidential Data at Rest"): of the entries the first that names a resource
counts. Its first provider writes; all of them read, each the values that begin with its own words. So a key is rotated
by putting the new one second, then first, then writing all objects again. ``*.*`` names every resource, ``*.GROUP``
those of a group, ``*.`` those of the core group.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apimachinery.storage.encryption.ciphers import CIPHERS, Cipher, CipherError
from apimachinery.storage.layout import place_of
from apimachinery.storage.sealing import ENCRYPTED as PREFIX
from apimachinery.storage.sealing import NotOpened

_KMS = "kms"


class ConfigurationError(ValueError):
    """A configuration that cannot be; the text says where and why, and never shows a key."""


class Unreadable(CipherError, NotOpened):
    """A value that no given key opens; the text says what it is encrypted with."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One key of a cipher; ``cipher`` None writes and reads values as they are."""

    words: bytes
    cipher: Cipher | None


@dataclass(frozen=True, slots=True)
class EncryptionRule:
    """The providers of some resources, in order."""

    resources: tuple[str, ...]
    providers: tuple[Provider, ...]

    def covers(self, group: str, resource: str) -> bool:
        """Whether it is about a resource."""
        named = f"{resource}.{group}" if group else resource
        wanted = {named, "*.*", f"*.{group}"}
        return any(name in wanted for name in self.resources)


class Encryption:
    """Encrypts what is written and decrypts what is read."""

    def __init__(self, rules: Sequence[EncryptionRule]) -> None:
        self._rules = tuple(rules)
        self._by_resource: dict[str, tuple[Provider, ...]] = {}

    def seal(self, key: str, place: bytes, value: bytes) -> bytes:
        """What is stored of a value; ``key`` is the storage's, ``place`` the one that the value is bound to."""
        providers = self._providers(key)
        if not providers or (cipher := providers[0].cipher) is None:
            return value
        return providers[0].words + cipher.encrypt(value, place)

    def open(self, key: str, place: bytes, stored: bytes) -> bytes:
        """The value of what is stored. Raises Unreadable."""
        # Values from before encryption was configured are still read.
        if not stored.startswith(PREFIX):
            return stored
        providers = self._providers(key)
        for provider in providers:
            # The words name provider and key, so no other key is tried.
            if provider.cipher is not None and stored.startswith(provider.words):
                try:
                    return provider.cipher.decrypt(stored[len(provider.words) :], place)
                except CipherError as fault:
                    raise Unreadable(f"{described(stored)}: {fault}") from None
        raise Unreadable(f"{described(stored)}: no such key is given for this resource")

    def is_stale(self, key: str, stored: bytes) -> bool:
        """Whether a value is stored under another key than the first, or plain where there is one."""
        providers = self._providers(key)
        words = providers[0].words if providers else b""
        return not stored.startswith(words) if words else stored.startswith(PREFIX)

    def names(self, key: str) -> bool:
        """Whether the configuration is about the resource of a key."""
        return bool(self._providers(key))

    def _providers(self, key: str) -> tuple[Provider, ...]:
        group, resource, _ = place_of(key)
        name = f"{group}/{resource}"
        found = self._by_resource.get(name)
        if found is None:
            found = next((rule.providers for rule in self._rules if rule.covers(group, resource)), ())
            self._by_resource[name] = found
        return found


def described(stored: bytes) -> str:
    """What an encrypted value says of itself: its provider and key."""
    parts = stored[len(PREFIX) : len(PREFIX) + 200].split(b":", 3)
    words = [part.decode("ascii", "replace") for part in parts[:3]]
    if words[0] == _KMS:
        return f"encrypted by a key management service ({':'.join(words[1:])})"
    return f"encrypted with {words[0]}, key {words[2]!r}" if len(words) == 3 else "encrypted"


def read_configuration(document: Any) -> Encryption:
    """The encryption that a document asks for. Raises ConfigurationError."""
    if not isinstance(document, Mapping) or document.get("kind") != "EncryptionConfiguration":
        raise ConfigurationError("kind: must be EncryptionConfiguration")
    resources = document.get("resources")
    if not isinstance(resources, list) or not resources:
        raise ConfigurationError("resources: must list at least one entry")
    return Encryption([_rule(entry, f"resources[{number}]") for number, entry in enumerate(resources)])


def _rule(entry: Any, place: str) -> EncryptionRule:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{place}: must be an object")
    names = entry.get("resources")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{place}.resources: must list names of resources")
    providers = entry.get("providers")
    if not isinstance(providers, list) or not providers:
        raise ConfigurationError(f"{place}.providers: must list at least one provider")
    made = [
        provider
        for number, described in enumerate(providers)
        for provider in _provider(described, f"{place}.providers[{number}]")
    ]
    return EncryptionRule(tuple(names), tuple(made))


def _provider(described: Any, place: str) -> Iterator[Provider]:
    if not isinstance(described, Mapping) or len(described) != 1:
        raise ConfigurationError(f"{place}: must name one provider")
    ((name, options),) = described.items()
    if name == "identity":
        yield Provider(b"", None)
        return
    if name == _KMS:
        raise ConfigurationError(f"{place}: kms is not supported; use {', '.join(CIPHERS)} or identity")
    make = CIPHERS.get(name)
    if make is None:
        raise ConfigurationError(f"{place}: unknown provider {name!r}; use {', '.join(CIPHERS)} or identity")
    keys = options.get("keys") if isinstance(options, Mapping) else None
    if not isinstance(keys, list) or not keys:
        raise ConfigurationError(f"{place}.{name}.keys: must list at least one key")
    # Later keys only read: they are those of before a rotation.
    for number, key in enumerate(keys):
        at = f"{place}.{name}.keys[{number}]"
        if not isinstance(key, Mapping) or not isinstance(key.get("name"), str) or not key["name"]:
            raise ConfigurationError(f"{at}.name: must be a name")
        # The name is written between colons.
        if ":" in key["name"]:
            raise ConfigurationError(f"{at}.name: may not contain ':'")
        try:
            secret = base64.b64decode(str(key.get("secret", "")), validate=True)
            yield Provider(f"{PREFIX.decode()}{name}:v1:{key['name']}:".encode(), make(secret))
        except (binascii.Error, CipherError) as fault:
            raise ConfigurationError(f"{at}.secret: {fault}") from None
