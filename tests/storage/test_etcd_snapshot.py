"""Snapshots: what an etcd had is in its file, and a file that is damaged or made to harm is refused."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path

import pytest

from apimachinery.storage.etcd.bolt import BoltError, BoltFile
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.snapshot import SnapshotStorage
from apimachinery.storage.etcd.values import EtcdValues
from apimachinery.storage.interface import (
    REVISION_MARK,
    Compacted,
    FutureRevision,
    Record,
    StorageError,
    StorageReadOnly,
    Value,
)
from apimachinery.storage.kept import NEVER, PastRange
from apimachinery.storage.moving import CopyRefused, check_objects, copy_objects
from apimachinery.storage.objects import at_other_revision
from apimachinery.storage.url import StorageOptions, StorageUrlError, open_storage

PODS = [f"/core/pods/ns/p{number:03}" for number in range(150)]


def value(name: str, text: str = "x") -> Value:
    metadata = f'{{"name":"{name}","namespace":"ns","uid":"u-{name}","resourceVersion":"{REVISION_MARK}"}}'
    return Value.cut(f'{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"v":"{text}"}}'.encode())


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory, etcd_member) -> tuple[Path, dict[str, Record], int]:
    """A snapshot's file, the records that it should have, and its revision."""
    path = tmp_path_factory.mktemp("snapshot") / "s.db"

    async def make() -> tuple[Path, dict[str, Record], int]:
        storage = await open_storage(f"{etcd_member}?prefix=/saved")
        for key in PODS:
            await storage.create(key, value(key[-4:], "y" * 300))
        for key in PODS[::3]:
            record = await storage.get(key)
            await storage.delete(key, record.revision, value(key[-4:]))
        changed = await storage.get(PODS[1])
        await storage.update(PODS[1], changed.revision, value(PODS[1][-4:], "z" * 9000))
        with path.open("wb") as file:
            await storage.save(file)
        page = await storage.list("")
        await storage.close()
        return path, {record.key: record for record in page.records}, page.revision

    return asyncio.run(make())


def test_a_snapshot_shows_the_newest_state_and_takes_no_writes(snapshot):
    path, records, revision = snapshot

    async def story() -> None:
        with pytest.raises(StorageUrlError, match="--read-only"):
            await open_storage(f"etcd-snapshot:///{path}?prefix=/saved")
        storage = await open_storage(f"etcd-snapshot:///{path}?prefix=/saved", StorageOptions(read_only=True))
        assert (storage.revision, storage.shared, storage.writable) == (revision, False, False)
        page = await storage.list("")
        assert {record.key: record for record in page.records} == records
        assert [r.key for r in (await storage.list("/core/pods/", after=PODS[1], limit=2)).records] == [
            PODS[2],
            PODS[4],
        ]
        assert await storage.get(PODS[1], at=revision) == records[PODS[1]]
        for write in (
            storage.create("/core/pods/ns/new", value("new")),
            storage.update(PODS[1], records[PODS[1]].revision, value("x")),
            storage.delete(PODS[1], records[PODS[1]].revision, value("x")),
        ):
            with pytest.raises(StorageReadOnly):
                await write
        with pytest.raises(Compacted):
            await storage.list("", at=revision - 1)
        with pytest.raises(FutureRevision):
            await storage.get(PODS[1], at=revision + 1)
        assert (await check_objects(storage)).faults == []
        await storage.close()

    asyncio.run(story())


def test_a_snapshot_has_what_etcd_had_of_the_past(snapshot):
    path, records, _ = snapshot

    async def story() -> None:
        storage = SnapshotStorage(path, "/saved", EtcdValues())

        async def past(key: str, limit: int = 10, before: int = NEVER, wanted=lambda record: True):
            return await storage.past.versions(PastRange(key, f"{key}\0", before, limit, 1 << 20), wanted)

        versions, more = await past(PODS[1])
        assert not more
        assert versions[0].record == records[PODS[1]]
        assert [b"zzz" in each.record.value for each in versions] == [True, False]
        assert versions[1].record.created == versions[1].record.revision < versions[0].record.revision
        versions, _ = await past(PODS[0])
        gone, made = versions
        assert (gone.deleted, made.deleted) == (True, False)
        assert gone.record.value == at_other_revision(made.record.value, gone.record.revision)
        assert await past(PODS[0], before=gone.record.revision) == ([made], False)
        assert await past(PODS[0], limit=1) == ([gone], True)
        assert await past(PODS[0], wanted=lambda record: record.revision < gone.record.revision) == (
            [made],
            False,
        )
        every = PastRange("/core/pods/", "/core/pods/\U0010ffff", NEVER, 1000, 1 << 20)
        versions, _ = await storage.past.versions(every, lambda record: True)
        revisions = [each.record.revision for each in versions]
        assert revisions == sorted(revisions, reverse=True)
        assert len(versions) == len(PODS) + len(PODS[::3]) + 1
        await storage.close()

    asyncio.run(story())


def test_a_copy_is_complete_and_goes_on_where_it_was_cut_short(snapshot, tmp_path):
    path, records, revision = snapshot

    async def story() -> None:
        source = SnapshotStorage(path, "/saved", EtcdValues())
        target = await open_storage(f"sqlite:///{tmp_path}/x.db")
        first = records[PODS[1]]
        await target.create(first.key, value(PODS[1][-4:], "z" * 9000))
        copied = await copy_objects(source, target, lambda number, of: None, None)
        assert (copied.written, copied.present, copied.source) == (len(records) - 1, 1, revision)
        found = {record.key: record.value for record in (await target.list("")).records}
        assert found.keys() == records.keys()
        again = await copy_objects(source, target, lambda number, of: None, None)
        assert (again.written, again.present) == (0, len(records))
        await target.create("/core/pods/ns/strange", value("strange"))
        with pytest.raises(CopyRefused, match="strange"):
            await copy_objects(source, target, lambda number, of: None, None)
        await target.close()

    asyncio.run(story())


def test_a_copy_into_etcd_leaves_no_revision_of_before_readable(snapshot, etcd_url):
    path, records, revision = snapshot

    async def story() -> None:
        target = await open_storage(etcd_url)
        source = SnapshotStorage(path, "/saved", EtcdValues())
        copied = await copy_objects(source, target, lambda number, of: None, target.make_event)
        assert copied.broken and copied.target > revision
        with pytest.raises(Compacted):
            await target.watch("", revision, list)
        assert len((await target.list("")).records) == len(records)
        await target.close()

    asyncio.run(story())


def test_a_file_that_is_none_of_etcds_is_refused(tmp_path):
    path = tmp_path / "x.db"
    for data in (b"x", b"\0" * 100_000, b"SQLite format 3\0" + b"\0" * 9000):
        path.write_bytes(data)
        with pytest.raises(BoltError, match="is no etcd database"):
            BoltFile(path)
    path.write_bytes(b"")
    with pytest.raises(BoltError, match="cannot read"):
        BoltFile(path)
    with pytest.raises(BoltError, match="cannot read"):
        BoltFile(tmp_path / "absent.db")


def test_a_snapshot_whose_bytes_changed_is_refused(snapshot, tmp_path):
    data = bytearray(snapshot[0].read_bytes())
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    data[len(data) // 2] ^= 1
    path = tmp_path / "x.db"
    path.write_bytes(data)
    with pytest.raises(BoltError, match="SHA-256"):
        BoltFile(path)


def test_whatever_is_in_a_file_it_is_read_or_refused_in_time(snapshot, tmp_path):
    whole = snapshot[0].read_bytes()[:-32]  # a member's file has no hash at its end
    path = tmp_path / "x.db"
    path.write_bytes(whole)
    assert len(SnapshotStorage(path, "/saved", EtcdValues())._records) == len(snapshot[1])
    draw = random.Random(1)
    used = [at for at in range(2 * 4096, len(whole), 4096) if any(whole[at : at + 64])]
    refused = 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 4))):
            page = draw.choice(used)
            at = page + draw.choice((8, 10, 12, 16, 20, 24, draw.randrange(64)))
            data[at] = draw.choice((0, 1, 0x7F, 0xFF, draw.randrange(256)))
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        path.write_bytes(data or b"x")
        try:
            SnapshotStorage(path, "/saved", EtcdValues())
        except StorageError:
            refused += 1
    assert refused > 20


def test_a_page_below_itself_is_refused(snapshot, tmp_path):
    data = bytearray(snapshot[0].read_bytes()[:-32])
    metas = [int.from_bytes(data[at + 64 : at + 72], "little") for at in (0, 4096)]
    at = 4096 * metas.index(max(metas))
    root = int.from_bytes(data[at + 32 : at + 40], "little")
    page = root * 4096
    # The root becomes a branch of one element, whose page is the root.
    data[page + 8 : page + 12] = (1).to_bytes(2, "little") + (1).to_bytes(2, "little")
    data[page + 16 : page + 32] = bytes(8) + root.to_bytes(8, "little")
    path = tmp_path / "x.db"
    path.write_bytes(data)
    with pytest.raises(BoltError, match="below itself"):
        list(BoltFile(path).bucket(b"key"))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("/core/pods/ns/a", b"/registry/pods/ns/a"),
        ("/core/services/ns/a", b"/registry/services/specs/ns/a"),
        ("/core/endpoints/ns/a", b"/registry/services/endpoints/ns/a"),
        ("/core/nodes/a", b"/registry/minions/a"),
        ("/apps/deployments/ns/a", b"/registry/deployments/ns/a"),
        ("/networking.k8s.io/ingresses/ns/a", b"/registry/ingress/ns/a"),
        ("/custom:example.com/widgets/ns/a", b"/registry/example.com/widgets/ns/a"),
        ("/shop.example.com/orders/ns/a", b"/registry/.shop.example.com/orders/ns/a"),
        ("/custom:rbac.authorization.k8s.io/roles/ns/a", b"/registry/rbac.authorization.k8s.io/roles/ns/a"),
        (
            "/custom:apiregistration.k8s.io/apiservices/a",
            b"/registry/.custom:apiregistration.k8s.io/apiservices/a",
        ),
        (
            "/apiextensions.k8s.io/customresourcedefinitions/a.b",
            b"/registry/apiextensions.k8s.io/customresourcedefinitions/a.b",
        ),
        ("/sales/orders/ns/a", b"/registry/.sales/orders/ns/a"),
        ("/core/orders/ns/a", b"/registry/.core/orders/ns/a"),
    ],
)
def test_keys_lie_where_kube_apiserver_has_them(key, place):
    keys = Keys("/registry")
    assert keys.to_etcd(key) == place and keys.from_etcd(place) == key


@pytest.mark.parametrize(
    "place",
    [
        b"masterleases/10.0.0.1",
        b"ranges/serviceips",
        b"pods",
        b"pods/",
        b"a.b/c",
        b"a.b//x",
        b"\xff/a/b",
        b"services/x/y",
        b".kubewright/barrier",
    ],
)
def test_what_is_no_object_has_no_key(place):
    assert Keys("/registry").from_etcd(b"/registry/" + place) is None
