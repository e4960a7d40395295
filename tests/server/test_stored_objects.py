"""Stored objects are input: a server starts over whatever lies in its storage, serves the rest and names what it does
not; and what is stored under an old key is written again, though it did not change."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.attack import stored
from tests.server.test_api import CM, ask, serve
from tests.storage.test_encryption import configuration, key

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.http.messages import Request, StreamResponse, User
from apimachinery.meta.errors import ApiError
from apimachinery.server.assembly.api import build_api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.stored_form import StoredForms
from apimachinery.server.process import Server, ServerOptions
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.unreadable import UnreadableDeletion
from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.driver import EtcdStorage
from apimachinery.storage.interface import UnreadableRecord
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.url import open_storage
from apimachinery.storage.watch_cache import WatchCache
from kubewright.testing import ApiServer

SECRETS = "/api/v1/namespaces/default/secrets"
OLD, NEW = {"aescbc": {"keys": [key(1)]}}, {"aesgcm": {"keys": [key(2)]}}


def test_a_server_starts_over_records_that_no_request_stored(tmp_path: Path) -> None:
    good = stored.good_records(tmp_path)
    kinds = {name.split("/")[2] for name, _ in good}
    assert {"roles", "customresourcedefinitions", "apiservices", "flowschemas", "services", "leases"} <= kinds
    path = tmp_path / "good.db"
    stored.store(path, stored.mutants(good, 600, random.Random(27), stored.newest(path) + 1))
    assert list(stored.start_and_serve(path)) == []


def test_any_part_of_a_stored_definition_may_be_missing(tmp_path: Path) -> None:
    """Its versions were null, as a list of Go may be, and the server did not start."""
    path = tmp_path / "good.db"
    definitions = [
        record for record in stored.good_records(tmp_path) if "/customresourcedefinitions/" in record[0]
    ]
    stored.store(path, stored.emptied(definitions, stored.newest(path) + 1))
    assert list(stored.start_and_serve(path)) == []


METADATA = {
    "name": "bad",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "REVISION",
    "creationTimestamp": "2026-01-01T00:00:00Z",
}


def put(path: Path, name: str, value: Any) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    data = data.replace(b"REVISION", str(stored.newest(path) + 1).encode())
    stored.store(path, iter([(name, data)]))


def config_map(**changes: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": METADATA, **changes}


BAD: list[tuple[Any, str]] = [
    (b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"na', "truncated"),
    (b"", "truncated"),
    (b"[]", "Expected `object`"),
    (config_map(data=5), "cannot unmarshal number into Go struct field ConfigMap.data"),
    (config_map(data={"a": None}), ""),
    (config_map(kind="Secret"), "it is a Secret of v1, which is not kept here"),
    (config_map(apiVersion="v9"), "it is a ConfigMap of v9"),
    (config_map(metadata=None), "Expected `object`"),
    (config_map(metadata={**METADATA, "name": "other"}), "says that it is"),
    (config_map(metadata={**METADATA, "resourceVersion": "7"}), "of revision 7"),
    (config_map(metadata={**METADATA, "uid": "a\r\nb"}), "an impossible name or uid"),
    (json.dumps(config_map(x=0)).encode().replace(b"0}", b"[" * 500 + b"]" * 500 + b"}"), "nests deeper"),
    (config_map(), ""),
    (b'{"kind":"\xff"}', "utf-8"),
    (b"k8s:enc:aescbc:v1:gone:\0\1", "is encrypted (aescbc, v1, gone)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "why"), BAD, ids=range(len(BAD)))
def test_what_is_no_object_is_named_and_fails_the_reads_it_belongs_to(
    value: Any, why: str, tmp_path: Path
) -> None:
    async def play() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        api = await serve(storage=storage)
        assert (await ask(api, "POST", CM, {"metadata": {"name": "good"}}))[0] == 201
        await api.stop()
        await storage.close()
        put(path, "/core/configmaps/default/bad", value)

        storage = await SqliteStorage.open(path)
        cache = await WatchCache.open(storage, StoredForms(ApiOptions()).fault)
        if not why:
            assert cache.unreadable == {}
        else:
            (said,) = cache.unreadable.values()
            assert why in said
        await storage.close()
        with ApiServer(storage=f"sqlite:///{path}") as server:
            get = stored.ask_server(server.port, "GET", CM)
            assert get[0] == (500 if why else 200)
            if why:
                assert "/core/configmaps/default/bad" in get[1]
                for method in ("GET", "DELETE"):
                    assert stored.ask_server(server.port, method, f"{CM}/bad")[0] == 500
                made = {"metadata": {"name": "bad"}}
                assert stored.ask_server(server.port, "POST", CM, made)[0] == 409
                figures = stored.ask_server(server.port, "GET", "/metrics")[1]
                assert 'kubewright_unreadable_objects{resource="configmaps"} 1' in figures
            assert stored.ask_server(server.port, "GET", f"{CM}/good")[0] == 200
            assert (
                stored.ask_server(server.port, "GET", "/api/v1/namespaces/kube-system/configmaps")[0] == 200
            )

    asyncio.run(play())


def test_what_is_stored_under_an_old_key_is_written_again_though_it_did_not_change(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def replaced(*providers: dict[str, Any]) -> tuple[list[str], bytes]:
        """The versions that a Secret has as it is replaced with itself, and patched with nothing."""
        storage = await SqliteStorage.open(path, configuration(*providers) if providers else None)
        api = await serve(storage=storage)
        obj = {"metadata": {"name": "s"}, "stringData": {"a": "hunter2"}}
        await ask(api, "POST", SECRETS, obj)
        _, shown, _ = await ask(api, "GET", f"{SECRETS}/s")
        versions = [shown["metadata"]["resourceVersion"]]
        for query in ("?dryRun=All", "", ""):
            status, shown, _ = await ask(api, "PUT", f"{SECRETS}/s{query}", shown)
            assert status == 200
            versions.append(shown["metadata"]["resourceVersion"])
        await api.stop()
        await storage.compact(storage.revision)
        await storage.close()
        return versions, path.read_bytes()

    async def play() -> None:
        plain, _ = await replaced()
        assert len(set(plain)) == 1
        for providers in ((OLD, {"identity": {}}), (NEW, OLD), ({"identity": {}}, NEW)):
            first, dry, rotated, same = (await replaced(*providers))[0]
            assert first == dry != rotated == same
        await replaced(NEW, {"identity": {}})
        assert len(set((await replaced(NEW))[0])) == 1

    asyncio.run(play())


def test_history_under_a_key_that_was_dropped_is_expired_and_the_rest_is_served(tmp_path: Path) -> None:
    async def play() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path, configuration(OLD, {"identity": {}}))
        api = await serve(storage=storage)
        _, made, _ = await ask(api, "POST", SECRETS, {"metadata": {"name": "kept"}})
        await ask(api, "POST", SECRETS, {"metadata": {"name": "left"}})
        await api.stop()
        await storage.close()
        storage = await SqliteStorage.open(path, configuration(NEW, OLD))
        api = await serve(storage=storage)
        _, shown, _ = await ask(api, "GET", f"{SECRETS}/kept")
        assert (await ask(api, "PUT", f"{SECRETS}/kept", shown))[0] == 200
        await api.stop()
        await storage.close()

        storage = await SqliteStorage.open(path, configuration(NEW))
        api = await serve(storage=storage)
        assert list(storage.unreadable) == ["/core/secrets/default/left"]
        assert (await ask(api, "GET", f"{SECRETS}/kept"))[0] == 200
        status, refused, _ = await ask(api, "GET", SECRETS)
        assert (status, refused["reason"]) == (500, "InternalError")
        assert "/core/secrets/default/left" in refused["message"] and "key 'k1'" in refused["message"]
        assert (await ask(api, "GET", "/api/v1/namespaces/kube-system/secrets"))[0] == 200
        assert (await ask(api, "POST", SECRETS, {"metadata": {"name": "left"}}))[0] == 409
        since = int(made["metadata"]["resourceVersion"]) - 1
        query = f"watch=1&resourceVersion={since}&fieldSelector=metadata.name%3Dkept"
        for _ in range(2):
            watch = await api.handle(Request("GET", SECRETS, query, {}, b"", None))
            assert isinstance(watch, StreamResponse)
            (event,) = [json.loads(piece) async for piece in watch.parts]
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        await api.stop()
        await storage.close()

    asyncio.run(play())


def test_nothing_is_concluded_from_what_cannot_be_read(tmp_path: Path) -> None:
    """An owner that cannot be read is not gone, and a namespace is not empty with it."""
    path = tmp_path / "x.db"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": ""}
    with ApiServer(storage=f"sqlite:///{path}") as server:
        made = server.request("POST", CM, {"metadata": {"name": "owner"}})
        owner["uid"] = made["metadata"]["uid"]
        dependent = {"metadata": {"name": "dependent", "ownerReferences": [owner]}}
        server.request("POST", "/api/v1/namespaces/default/secrets", dependent)
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}})
        server.request("POST", "/api/v1/namespaces/full/configmaps", {"metadata": {"name": "a"}})
    put(path, "/core/configmaps/default/owner", b"{")
    put(path, "/core/configmaps/full/a", b"{")
    with ApiServer(storage=f"sqlite:///{path}") as server:
        server.request("DELETE", "/api/v1/namespaces/full")
        gone = {"metadata": {"name": "gone", "ownerReferences": [{**owner, "kind": "Secret", "uid": "none"}]}}
        server.request("POST", "/api/v1/namespaces/default/secrets", gone)
        stored.until(lambda: stored.ask_server(server.port, "GET", f"{SECRETS}/gone")[0] == 404)
        assert stored.ask_server(server.port, "GET", f"{SECRETS}/dependent")[0] == 200

        def says() -> bool:
            text = stored.ask_server(server.port, "GET", "/api/v1/namespaces/full")[1]
            return "configmaps. has 1 resource instances" in text

        stored.until(says)


GROUP = "/apis/admissionregistration.k8s.io/v1"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
ALSO_WITHOUT_READING = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
HOOKS = "webhookconfigurations/bad"
DECIDING = [
    *(
        (f"/admissionregistration.k8s.io/{name}", f"{GROUP}/{name}")
        for name in (
            f"validating{HOOKS}",
            f"mutating{HOOKS}",
            "validatingadmissionpolicies/bad",
            "mutatingadmissionpolicybindings/bad",
        )
    ),
    ("/core/resourcequotas/default/bad", f"{QUOTAS}/bad"),
]


def test_what_may_forbid_a_write_and_cannot_be_read_forbids_it_until_it_is_deleted(tmp_path: Path) -> None:
    """kube-apiserver answers 403 or 500 then, for its informers never have all objects."""
    path = tmp_path / "x.db"
    with ApiServer(storage=f"sqlite:///{path}"):
        pass
    for stored_key, _ in DECIDING:
        put(path, stored_key, b"{")
    pods = "/api/v1/namespaces/kube-system/pods"
    with ApiServer(storage=f"sqlite:///{path}") as server:
        ask = partial(stored.ask_server, server.port)
        for number, (stored_key, where) in enumerate(DECIDING):
            status, text = ask("POST", CM, {"metadata": {"name": f"m{number}"}})
            assert status == 500 and "InternalError" in text, stored_key
            assert ask("GET", pods)[0] == 200
            assert ask("DELETE", where)[0] == 500
            assert ask("DELETE", f"{where}{ALSO_WITHOUT_READING}&dryRun=All")[0] == 200
            assert ask("DELETE", where)[0] == 500
            assert ask("DELETE", where, {"ignoreStoreReadErrorWithClusterBreakingPotential": True})[0] == 200
            assert ask("DELETE", f"{where}{ALSO_WITHOUT_READING}")[0] == 404
        assert ask("POST", CM, {"metadata": {"name": "last"}})[0] == 201
        assert ask("DELETE", f"{CM}/last{ALSO_WITHOUT_READING}")[0] == 200, (
            "one that can be read goes as always"
        )
    with ApiServer(storage=f"sqlite:///{path}") as server:
        assert "kubewright_unreadable_objects{" not in stored.ask_server(server.port, "GET", "/metrics")[1]


def test_a_quota_that_cannot_be_read_concerns_its_namespace_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with ApiServer(storage=f"sqlite:///{path}"):
        pass
    put(path, "/core/resourcequotas/default/bad", b"{")
    with ApiServer(storage=f"sqlite:///{path}") as server:
        ask = partial(stored.ask_server, server.port)
        status, text = ask("POST", CM, {"metadata": {"name": "m"}})
        assert status == 500 and "/core/resourcequotas/default/bad" in text
        elsewhere = "/api/v1/namespaces/kube-system/configmaps"
        assert ask("POST", elsewhere, {"metadata": {"name": "m"}})[0] == 201


def test_who_may_delete_may_not_delete_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    asked: list[str] = []

    async def refuse(request: Request, verb: str) -> None:
        asked.append(f"{verb} {request.path}")
        raise ApiError(403, "Forbidden", "no")

    async def play() -> None:
        storage = await SqliteStorage.open(path)
        await (await serve(storage=storage)).stop()
        await storage.close()
        put(path, "/core/configmaps/default/bad", b"{")
        storage = await SqliteStorage.open(path)
        api = await serve(storage=storage)
        cache = await WatchCache.open(storage, StoredForms(ApiOptions()).fault)
        served = next(each for each in api.catalog if each.prefix == "/core/configmaps/")
        request = Request("DELETE", f"{CM}/bad", user=User("ann"))
        target = WriteTarget.asked(request, served, "default", "bad", WriteOptions())
        with pytest.raises(ApiError, match="no"):
            await UnreadableDeletion(cache, refuse).delete(request, target)
        assert cache.unreadable_in(target.key)
        await api.stop()
        await storage.close()

    asyncio.run(play())
    assert asked == [f"unsafe-delete-ignore-read-errors {CM}/bad"]


def test_the_same_in_an_etcd_at_the_start_and_while_servers_run(
    tmp_path: Path, etcd_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What another program writes is judged as it comes; a record that was good stays what readers see."""

    async def story() -> None:
        storage = await open_storage(etcd_url)
        assert isinstance(storage, EtcdStorage)

        async def write(name: str, data: bytes) -> None:
            put = messages.PutRequest(key=storage._keys.to_etcd(name), value=data)
            await storage._connection.write(
                messages.TxnRequest(success=[messages.RequestOp(request_put=put)])
            )

        chance = random.Random(28)
        for name, data in stored.mutants(stored.good_records(tmp_path), 300, chance, 1):
            if not name.startswith(stored.DECIDING):
                await write(name, data)
        options = ServerOptions(storage=etcd_url, shutdown_seconds=0.1, judge=StoredForms(ApiOptions()).fault)
        server = Server(options, OPEN_TO_LOOPBACK, lambda backend: build_api(backend, ApiOptions()))
        await server.start()
        ask = partial(asyncio.to_thread, stored.ask_server, server.port)
        try:
            assert (await ask("GET", "/livez"))[0] == 200
            kept = "/api/v1/namespaces/kept-apart/configmaps"
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
            await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "kept-apart"}})
            assert (await ask("POST", kept, made))[0] == 201
            await write(
                "/core/configmaps/kept-apart/a", b'{"kind":"ConfigMap","apiVersion":"v1","metadata":5}'
            )
            await write("/core/configmaps/kept-apart/b", b"{")
            await storage.catch_up()
            assert (await ask("GET", kept))[0] == (await ask("GET", f"{kept}/a"))[0] == 500
            assert (await ask("POST", kept, {"metadata": {"name": "b"}}))[0] == 409
            assert (await ask("GET", "/api/v1/namespaces/none/configmaps"))[0] == 200
        finally:
            await server.stop()
            await storage.close()
        assert not [record for record in caplog.records if record.exc_info], caplog.text

    asyncio.run(story())


def test_whoever_reads_one_object_does_not_pay_for_all_that_are_hidden() -> None:
    """Each read looked at all of them: half a millisecond for the 5,000 Secrets of a key that was dropped."""

    class Hidden(dict[str, str]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("all of them are looked at")

        def keys(self) -> Any:
            return iter(self)

    async def story() -> None:
        storage = MemoryStorage()
        cache = await WatchCache.open(storage)
        storage.unreadable = Hidden({"/core/secrets/default/a": "no key"})
        cache.check_readable("/core/secrets/default/b")
        with pytest.raises(UnreadableRecord, match="no key"):
            cache.check_readable("/core/secrets/default/a")

    asyncio.run(story())
