"""Copies, snapshots and restores of drawn worlds: definitions over built-in groups, packages over Kubernetes' own.

Each object says in itself whose it is. Wherever a world is taken, and however often it is opened there, exactly its
objects are found, each below the keys of its own resource; what is not encrypted and what is, alike.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

from tests.storage.test_encryption import configuration, key

from apimachinery.storage.interface import REVISION_MARK, Storage, Value
from apimachinery.storage.layout import WITH_GROUP, WITHOUT_GROUP, custom_prefix, is_reserved, package_prefix
from apimachinery.storage.moving import check_objects, copy_objects
from apimachinery.storage.objects import at_other_revision
from apimachinery.storage.url import StorageOptions, open_storage

OWN = [*((group, name) for group, names in WITHOUT_GROUP.items() for name in names), *WITH_GROUP]
LABELS = "a core custom apps pods roles services specs endpoints ingress minions registry x-1".split()
PLURALS = (
    "orders clusterroles pods specs endpoints customresourcedefinitions apiservices services secrets".split()
)
WORLDS = 25
World = dict[str, Any]


def drawn(chance: random.Random) -> World:
    """Objects by key: Kubernetes' own, of packages, of definitions, and the definitions themselves."""
    found: World = {}
    for _ in range(chance.randint(4, 14)):
        group, plural = chance.choice(OWN)
        if chance.random() < 0.5:
            group = ".".join(chance.choice(LABELS) for _ in range(chance.randint(1, 3)))
            plural = chance.choice(PLURALS)
        elif chance.random() < 0.2:
            plural = chance.choice(PLURALS)
        as_custom = chance.random() < 0.5 and "." in group
        if not as_custom and group != "core" and is_reserved(group):
            continue
        if as_custom and chance.random() < 0.8:
            name = f"{plural}.{group}"
            found[f"/apiextensions.k8s.io/customresourcedefinitions/{name}"] = written(
                "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, "definition"
            )
        prefix = (custom_prefix if as_custom else package_prefix)(group, plural)
        version = "v1" if group == "core" else f"{group}/v1"
        for name in chance.sample(["a", "b", "a.b", "x-1"], chance.randint(1, 3)):
            namespace = chance.choice(["", "ns"])
            place = f"{prefix}{namespace}/{name}" if namespace else f"{prefix}{name}"
            found.setdefault(place, written(version, "Thing", namespace, name, prefix, custom=as_custom))
    return found


def written(version: str, kind: str, namespace: str, name: str, owner: str, *, custom: bool = False) -> bytes:
    """An object as its family is stored: a custom one begins with its apiVersion."""
    begins = f'"kind":"{kind}","apiVersion":"{version}"'
    if custom:
        begins = f'"apiVersion":"{version}","kind":"{kind}"'
    place = f'"namespace":"{namespace}",' if namespace else ""
    metadata = f'{{"name":"{name}",{place}"uid":"u","resourceVersion":"{REVISION_MARK}"}}'
    return f'{{{begins},"metadata":{metadata},"owner":"{owner}"}}'.encode()


async def shown(storage: Storage) -> World:
    page = await storage.list("")
    assert not storage.unreadable
    for record in page.records:
        one = await storage.get(record.key)
        assert one is not None and one.value == record.value
    # Where the resourceVersion stands says nothing.
    return {record.key: json.loads(at_other_revision(record.value, 1)) for record in page.records}


async def taken(source: Storage, url: str, options: StorageOptions, expected: World) -> None:
    """Copies to a storage, and looks at it then and after it was opened again, which migrates what is old."""
    target: Any = await open_storage(url, options)
    await copy_objects(source, target, lambda *_: None, getattr(target, "make_event", None))
    assert await shown(target) == expected
    await target.close()
    again = await open_storage(url, options)
    assert await shown(again) == expected
    # A definition that is called as Kubernetes' own kind is no fault, and neither is an object through it.
    assert (await check_objects(again)).faults == []
    await again.close()


def test_wherever_a_world_is_taken_its_objects_keep_their_own_keys(tmp_path: Path, etcd_member: str) -> None:
    async def story() -> None:
        chance = random.Random(27)
        worlds: list[tuple[str, StorageOptions, World]] = []
        for number in range(WORLDS):
            options = StorageOptions(sealing=_sealing(chance))
            first = await open_storage(f"sqlite:///{tmp_path}/{number}.db", options)
            for place, data in drawn(chance).items():
                await first.create(place, Value.cut(data))
            expected = await shown(first)
            in_etcd = f"{etcd_member}?prefix=/world{number}"
            await taken(first, in_etcd, options, expected)
            await first.close()
            worlds.append((f"prefix=/world{number}", options, expected))
        saved = tmp_path / "saved.db"
        storage: Any = await open_storage(etcd_member)
        with saved.open("wb") as file:
            await storage.save(file)
        await storage.close()
        for number, (prefix, options, expected) in enumerate(worlds):
            reading = dataclasses.replace(options, read_only=True)
            snapshot = await open_storage(f"etcd-snapshot:///{saved}?{prefix}", reading)
            assert await shown(snapshot) == expected
            restored = f"sqlite:///{tmp_path}/restored{number}.db"
            if chance.random() < 0.3:
                restored = f"{etcd_member}?prefix=/restored{number}"
            await taken(snapshot, restored, options, expected)
            await snapshot.close()

    asyncio.run(story())


def _sealing(chance: random.Random) -> Any:
    return (
        configuration({"aesgcm": {"keys": [key(1)]}}, resources=("*.*",)) if chance.random() < 0.4 else None
    )
