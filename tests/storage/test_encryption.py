"""Encryption at rest: what the configuration says, what the ciphers make, and what lies in the file."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from apimachinery.storage.encryption.ciphers import CIPHERS, CipherError
from apimachinery.storage.encryption.configuration import (
    ConfigurationError,
    Encryption,
    Unreadable,
    read_configuration,
)
from apimachinery.storage.interface import REVISION_MARK, KeyExists, StorageError, Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.moving import copy_objects, rewrite_objects
from apimachinery.storage.sqlite import SqliteStorage

SECRET = "/core/secrets/ns/a"
PLACE = b"/registry/secrets/ns/a"


def key(number: int, size: int = 32) -> dict[str, str]:
    return {"name": f"k{number}", "secret": base64.b64encode(bytes([number]) * size).decode()}


def configuration(*providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> Encryption:
    rule = {"resources": list(resources), "providers": list(providers)}
    return read_configuration({"kind": "EncryptionConfiguration", "resources": [rule]})


@pytest.mark.parametrize("name", CIPHERS)
def test_each_cipher_opens_what_it_sealed_and_nothing_else(name):
    encryption = configuration({name: {"keys": [key(1)]}})
    for value in (b"", b"x", b"hunter2" * 1000):
        sealed = encryption.seal(SECRET, PLACE, value)
        assert sealed.startswith(f"k8s:enc:{name}:v1:k1:".encode()) and b"hunter2" not in sealed
        assert sealed != encryption.seal(SECRET, PLACE, value)
        assert encryption.open(SECRET, PLACE, sealed) == value
        other = configuration({name: {"keys": [{**key(2), "name": "k1"}]}})
        try:
            assert other.open(SECRET, PLACE, sealed) != value
        except Unreadable as fault:
            assert "k1" in str(fault)
        for broken in (sealed[:-1], sealed[:25], sealed[: len("k8s:enc::v1:k1:") + len(name)]):
            with pytest.raises(Unreadable, match=f"encrypted with {name}, key 'k1'"):
                encryption.open(SECRET, PLACE, broken)


def test_what_gcm_sealed_is_bound_to_its_place():
    encryption = configuration({"aesgcm": {"keys": [key(1)]}})
    sealed = encryption.seal(SECRET, PLACE, b"x")
    with pytest.raises(Unreadable, match="of another object"):
        encryption.open("/core/secrets/ns/b", b"/registry/secrets/ns/b", sealed)


def test_the_first_provider_writes_and_all_read():
    old = configuration({"aescbc": {"keys": [key(1)]}})
    new = configuration({"aesgcm": {"keys": [key(2)]}}, {"aescbc": {"keys": [key(1)]}}, {"identity": {}})
    assert new.open(SECRET, PLACE, old.seal(SECRET, PLACE, b"x")) == b"x"
    assert new.open(SECRET, PLACE, b"plain") == b"plain"
    assert new.seal(SECRET, PLACE, b"x").startswith(b"k8s:enc:aesgcm:v1:k2:")
    with pytest.raises(Unreadable, match="no such key"):
        old.open(SECRET, PLACE, new.seal(SECRET, PLACE, b"x"))


@pytest.mark.parametrize(
    ("name", "covered", "left"),
    [
        ("secrets", "/core/secrets/a/b", "/example.com/secrets/a/b"),
        ("widgets.example.com", "/example.com/widgets/a/b", "/core/widgets/a/b"),
        ("*.apps", "/apps/deployments/a/b", "/batch/jobs/a/b"),
        ("*.", "/core/pods/a/b", "/apps/deployments/a/b"),
        ("*.*", "/apps/deployments/a/b", ""),
    ],
)
def test_which_resources_a_name_covers(name, covered, left):
    encryption = configuration({"aescbc": {"keys": [key(1)]}}, resources=(name,))
    assert encryption.seal(covered, b"", b"x") != b"x" and encryption.names(covered)
    assert not left or encryption.seal(left, b"", b"x") == b"x"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "kind"),
        ({"kind": "EncryptionConfiguration"}, "resources: must list"),
        ([{"providers": [{"identity": {}}]}], r"resources\[0\].resources"),
        ([{"resources": ["secrets"]}], r"resources\[0\].providers"),
        ([{"resources": ["secrets"], "providers": [{"kms": {}}]}], "kms is not supported"),
        ([{"resources": ["secrets"], "providers": [{"rot13": {}}]}], "unknown provider 'rot13'"),
        ([{"resources": ["secrets"], "providers": [{"aescbc": {}}]}], "keys: must list"),
        (
            [{"resources": ["secrets"], "providers": [{"aescbc": {"keys": [key(1, 7)]}}]}],
            "16, 24 or 32 bytes, not 7",
        ),
        (
            [{"resources": ["secrets"], "providers": [{"secretbox": {"keys": [key(1, 16)]}}]}],
            "must be 32 bytes",
        ),
        (
            [{"resources": ["secrets"], "providers": [{"aescbc": {"keys": [{"name": "a", "secret": "%"}]}}]}],
            "secret",
        ),
        (
            [
                {
                    "resources": ["secrets"],
                    "providers": [{"aescbc": {"keys": [{"name": "a:b", "secret": ""}]}}],
                }
            ],
            "':'",
        ),
    ],
)
def test_what_is_no_configuration(document, said):
    if isinstance(document, list):
        document = {"kind": "EncryptionConfiguration", "resources": document}
    with pytest.raises(ConfigurationError, match=said):
        read_configuration(document)


def value(text: str) -> Value:
    encoded = f'{{"kind":"Secret","apiVersion":"v1","metadata":{{"resourceVersion":"{REVISION_MARK}"}},"v":"{text}"}}'
    return Value.cut(encoded.encode())


def test_a_database_keeps_no_plain_text_and_keys_are_rotated(tmp_path: Path):
    path = tmp_path / "x.db"

    async def story() -> None:
        old = configuration({"aescbc": {"keys": [key(1)]}}, {"identity": {}})
        storage = await SqliteStorage.open(path, old)
        made = await storage.create(SECRET, value("hunter2"))
        await storage.create("/core/pods/ns/p", value("plain"))
        await storage.close()
        assert b"hunter2" not in path.read_bytes() and b"plain" in path.read_bytes()
        storage = await SqliteStorage.open(path)
        assert "give --encryption-provider-config" in storage.unreadable[SECRET]
        assert await storage.get(SECRET) is None and await storage.get("/core/pods/ns/p") is not None
        with pytest.raises(KeyExists):
            await storage.create(SECRET, value("other"))
        with pytest.raises(StorageError, match="1 objects that cannot be read: /core/secrets/ns/a"):
            await copy_objects(storage, MemoryStorage(), lambda number, of: None, None)
        await storage.close()
        both = configuration({"aesgcm": {"keys": [key(2)]}}, {"aescbc": {"keys": [key(1)]}})
        storage = await SqliteStorage.open(path, both)
        assert (await storage.get(SECRET)) == made
        assert await rewrite_objects(storage, both.names, lambda number, of: None) == 1
        again = await storage.get(SECRET)
        assert again is not None and b"hunter2" in again.value
        assert (await storage.get(SECRET, at=made.revision)) == made
        await storage.compact(storage.revision)
        await storage.close()
        storage = await SqliteStorage.open(path, configuration({"aesgcm": {"keys": [key(2)]}}))
        assert (await storage.get(SECRET)) == again
        await storage.close()

    asyncio.run(story())


def test_etcd_keeps_no_plain_text(etcd_url):
    from apimachinery.storage.url import StorageOptions, open_storage

    async def story() -> None:
        options = StorageOptions(sealing=configuration({"aesgcm": {"keys": [key(1)]}}))
        storage = await open_storage(etcd_url, options)
        made = await storage.create(SECRET, value("hunter2"))
        await storage.close()
        storage = await open_storage(etcd_url)
        assert await storage.get(SECRET) is None
        assert "encrypted (aesgcm, v1, k1)" in str(storage.unread)
        await storage.close()
        storage = await open_storage(etcd_url, options)
        assert await storage.get(SECRET) == made
        await storage.close()

    asyncio.run(story())


def test_a_key_of_a_wrong_size_is_refused_without_showing_it():
    with pytest.raises(CipherError) as refused:
        CIPHERS["aescbc"](b"hunter2")
    assert "hunter2" not in str(refused.value)
