"""What clients can make the server hold: backlogs of watches, kept lists, stored objects, warnings."""

from __future__ import annotations

import asyncio
import json

from tests.server.test_api import ask, run

from apimachinery.http.messages import Request
from apimachinery.server.read.backlogs import PIECE_BYTES, Budget, Watcher
from apimachinery.server.read.listing import ENTRY_BYTES, JoinedBodies
from apimachinery.storage import watch_cache
from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"content-type": "application/json"}


def test_all_backlogs_together_are_bounded():
    """100 watchers that read nothing, each with a selector of its own, took 3.3 GB."""

    async def story() -> None:
        budget = Budget(10_000_000)
        watchers = [Watcher(budget) for _ in range(100)]
        for _ in range(100):
            for watcher in watchers:
                watcher.push(b"x" * 20_000)
        assert budget.held <= 10_000_000
        assert budget.cut_off >= 90
        for watcher in watchers:
            watcher.leave()
        assert (budget.held, budget.watchers) == (0, 0)

    asyncio.run(story())


def test_who_reads_is_not_cut_off_for_those_who_do_not():
    async def story() -> None:
        budget = Budget(10_000_000)
        reader, others = Watcher(budget), [Watcher(budget) for _ in range(50)]
        for _ in range(200):
            for watcher in others:
                watcher.push(b"x" * 20_000)
            reader.push(b"y" * 20_000)
            assert await reader.take() == b"y" * 20_000
        assert not reader.ended
        assert sum(watcher.ended for watcher in others) >= 45

    asyncio.run(story())


def test_what_many_wait_for_is_counted_once():
    budget = Budget(10_000_000)
    watchers = [Watcher(budget) for _ in range(1000)]
    chunk = b"x" * 500_000
    for watcher in watchers:
        watcher.push(chunk, len(watchers))
    assert budget.cut_off == 0 and budget.held < 1_000_000


def test_a_backlog_leaves_in_pieces():
    async def story() -> None:
        budget = Budget()
        watcher = Watcher(budget)
        sent = [b"%06d" % number * 1000 for number in range(300)]
        for chunk in sent:
            watcher.push(chunk)
        watcher.end()
        got = []
        while piece := await watcher.take():
            got.append(piece)
        assert b"".join(got) == b"".join(sent)
        assert max(map(len, got)) < PIECE_BYTES + 6000 and budget.held == 0

    asyncio.run(story())


def test_lists_of_nothing_are_forgotten_too():
    """200,000 lists of namespaces that are not there kept 104 MB: an empty body weighed nothing."""
    bodies = JoinedBodies(100 * ENTRY_BYTES)
    for number in range(1000):
        bodies.keep(("/core/configmaps/", f"/core/configmaps/{number}/"), 1, b"")
    assert len(bodies._kept) == 100 and bodies.size <= 100 * ENTRY_BYTES


def test_a_definition_made_again_leaves_nothing_behind():
    """Keys of kept lists held compiled schemas: 370 MB for 1,200 definitions."""
    import gc
    import weakref

    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def definition(number: int) -> dict:
        schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": number + 1}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Leak", "plural": "leaks"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "leaks.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
        }

    async def story(api) -> None:
        seen = []
        for number in range(5):
            status, shown, _ = await ask(api, "POST", crds, definition(number), JSON)
            assert status == 201, shown
            while (served := api.catalog.find("example.com", "v1", "leaks")) is None:
                await asyncio.sleep(0.01)
            table = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
            for headers in (table, {}):
                assert (await ask(api, "GET", "/apis/example.com/v1/leaks", None, headers))[0] == 200
            seen.append(weakref.ref(served.compiled.schema))
            assert (await ask(api, "DELETE", f"{crds}/leaks.example.com"))[0] == 200
            while api.catalog.find("example.com", "v1", "leaks") is not None:
                await asyncio.sleep(0.01)
        del served
        gc.collect()
        assert sum(made() is not None for made in seen) <= 1

    run(story)


def test_an_object_above_etcds_limit_is_refused_in_its_words():
    async def story(api) -> None:
        big = {"metadata": {"name": "a"}, "data": {f"k{n}": "\x01" * 30_000 for n in range(10)}}
        status, shown, _ = await ask(api, "POST", MAPS, big, JSON)
        expected = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "etcdserver: request is too large",
            "code": 500,
        }
        assert (status, shown) == (500, expected)

    run(story)


def test_warnings_are_cut_as_kube_apiserver_cuts_them():
    """4.9 MB of headers for a body of unknown fields; 4,096 characters in all, 256 each."""

    async def story(api) -> None:
        body = {"metadata": {"name": "a"}, **{f"unknown{number}" + "x" * 400: 1 for number in range(2000)}}
        request = Request("POST", MAPS, "", JSON, json.dumps(body).encode())
        answer = await api.handle(request)
        texts = [value for name, value in answer.headers if name == "Warning"]
        assert answer.status == 201 and len(texts) == 16
        assert all(len(text) == len('299 - ""') + 256 + text.count("\\") for text in texts)

    run(story)


def test_defaults_cannot_make_a_large_object_of_a_short_one():
    """A definition of 5 KB and an object of 300 KB made 545 MB."""
    from tests.attack.inputs import THING, THINGS

    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    async def story(api) -> None:
        assert (await ask(api, "POST", crds, THING, JSON))[0] == 201
        while api.catalog.find("attack.example.com", "v1", "things") is None:
            await asyncio.sleep(0.01)
        thing = {"apiVersion": "attack.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
        status, shown, _ = await ask(api, "POST", THINGS, {**thing, "spec": {"large": [{}] * 100_000}}, JSON)
        assert (status, shown["message"]) == (500, "etcdserver: request is too large")
        status, shown, _ = await ask(api, "POST", THINGS, {**thing, "spec": {"large": [{}] * 10}}, JSON)
        assert status == 201 and len(shown["spec"]["large"][9]["text"]) == 5000

    run(story)


def test_many_owners_take_no_longer_than_their_number():
    """40,000 owner references took more than two minutes: each was compared with all before it."""

    async def story(api) -> None:
        import time

        owner = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
        owners = [{**owner, "uid": f"u{number}"} for number in range(10_000)]
        body = {"metadata": {"name": "a", "ownerReferences": [*owners, owners[3]]}}
        began = time.process_time()
        status, shown, headers = await ask(api, "POST", MAPS, body, JSON)
        assert status == 201 and shown["metadata"]["ownerReferences"] == owners
        assert headers["Warning"].endswith('duplicate UID(s) observed: u3"')
        assert time.process_time() - began < 5

    run(story)


def test_states_of_before_keep_little_alive(monkeypatch):
    """Each state that a list goes on in kept all that was written over since: 64 of them for each resource."""
    monkeypatch.setattr(watch_cache, "SUPERSEDED_BYTES", 1_000_000)

    async def story() -> None:
        storage = MemoryStorage()
        cache = await WatchCache.open(storage)
        things = cache.resource("/g/things/")
        value = Value.cut(b'{"a":"' + b"x" * 50_000 + REVISION_MARK.encode() + b'"}')
        records = {key: await storage.create(key, value) for key in (f"/g/things/n/{n}" for n in range(10))}
        seen = []
        for _ in range(30):
            for key, record in records.items():
                records[key] = await storage.update(key, record.revision, value)
            seen.append(storage.revision)
            for revision in seen[-3:]:
                page = await things.snapshot_at("/g/things/n/", revision)
                assert [record.key for record in page.records] == sorted(records)
                assert max(record.revision for record in page.records) <= revision
            assert cache.superseded <= 1_000_000 + 3 * 500_000
        await storage.close()

    asyncio.run(story())
