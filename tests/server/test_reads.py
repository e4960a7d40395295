"""GET, LIST and WATCH over stored bytes: versions, tokens, selections, bookmarks, endings."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from apimachinery.http import turns
from apimachinery.http.messages import Response
from apimachinery.http.steps import Asking, Wait, Work
from apimachinery.meta.errors import ApiError
from apimachinery.server.answer.view import JsonView, ListMeta, Selection, Trigger, View, encode, labels_of
from apimachinery.server.read.backlogs import Watcher
from apimachinery.server.read.feed import Feed
from apimachinery.server.read.listing import ENTRY_BYTES, JoinedBodies, check_seen, list_records
from apimachinery.server.read.watch import CHECKED_STEP, Watches
from apimachinery.server.request.continue_token import BadContinueToken, decode_continue, encode_continue
from apimachinery.server.request.list_options import (
    BadRevision,
    ListQuery,
    check_list_options,
    parse_int64,
    parse_revision,
    read_list_options,
)
from apimachinery.storage.interface import REVISION_MARK, Record, Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

PREFIX = "/core/configmaps/"
SCOPE = f"{PREFIX}ns/"
VIEW = JsonView("v1", "ConfigMap", typed=True)
CUSTOM = JsonView("example.com/v1", "Widget", typed=False)


def value(name: str, labels: dict[str, str] | None = None, **data: str) -> Value:
    metadata: dict[str, Any] = {"name": name, "resourceVersion": REVISION_MARK}
    if labels:
        metadata["labels"] = labels
    return Value.cut(encode({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}))


async def drive(steps: Asking[Response]) -> Response:
    """Answers what a read asks for; everything is computed here."""
    answer: Any = None
    fault: Exception | None = None
    while True:
        try:
            effect = steps.send(answer) if fault is None else steps.throw(fault)
        except StopIteration as end:
            shown: Response = end.value
            return shown
        answer = fault = None
        assert isinstance(effect, Wait | Work)
        try:
            answer = await effect.call() if isinstance(effect, Wait) else effect.call()
        except Exception as error:
            fault = error


class World:
    """A storage with its cache, and the two ways to read it."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()

    async def open(self) -> World:
        self.cache = (await WatchCache.open(self.storage)).resource(PREFIX)
        self.watches = Watches()
        self.bodies = JoinedBodies()
        return self

    async def put(self, name: str, labels: dict[str, str] | None = None, **data: str) -> Record:
        key = SCOPE + name
        now = self.cache.get(key)
        if now is None:
            return await self.storage.create(key, value(name, labels, **data))
        return await self.storage.update(key, now.revision, value(name, labels, **data))

    async def drop(self, name: str, labels: dict[str, str] | None = None) -> None:
        now = self.cache.get(SCOPE + name)
        assert now is not None
        await self.storage.delete(SCOPE + name, now.revision, value(name, labels))

    async def list(
        self, selection: Selection | None = None, scope: str = SCOPE, **query: object
    ) -> dict[str, Any]:
        options = read_list_options({k: [str(v)] for k, v in query.items()})
        response = await drive(list_records(self.cache, scope, options, VIEW, selection, self.bodies))
        body = response.body
        answer: dict[str, Any] = json.loads(b"".join(body) if isinstance(body, tuple) else body)
        return answer

    def watch(self, selection: Selection | None = None, **query: object) -> Stream:
        options = read_list_options({"watch": ["1"]} | {k: [str(v)] for k, v in query.items()})
        return Stream(self.watches.start(self.cache, SCOPE, options, VIEW, selection).parts)


class Stream:
    """A watch whose events are taken one by one."""

    def __init__(self, parts) -> None:
        self.parts = parts
        self.left: list[dict[str, Any]] = []

    async def take(self, count: int) -> list[tuple[str, str, str]]:
        while len(self.left) < count:
            part = await asyncio.wait_for(anext(self.parts), 60)
            self.left += [json.loads(line) for line in part.splitlines()]
        taken, self.left = self.left[:count], self.left[count:]
        return [
            (
                e["type"],
                e["object"]["metadata"].get("name", ""),
                e["object"]["metadata"].get("resourceVersion", ""),
            )
            for e in taken
        ]

    async def silent(self) -> bool:
        task = asyncio.ensure_future(anext(self.parts))
        done, _ = await asyncio.wait([task], timeout=0.05)
        task.cancel()
        return not done and not self.left

    async def ended(self) -> bool:
        try:
            await asyncio.wait_for(anext(self.parts), 60)
        except StopAsyncIteration:
            return True
        return False


def tell(story: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await story(await World().open())

    asyncio.run(run())


def labelled(name: str, wanted: str) -> Selection:
    return Selection(f"{name}={wanted}", lambda record: labels_of(record).get(name) == wanted)


def names(shown: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in shown["items"]]


# Lists.


def test_a_typed_list_leaves_out_kinds_and_an_empty_continue():
    async def story(w: World) -> None:
        await w.put("b")
        await w.put("a")
        shown = await w.list()
        assert shown == {
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "3"},
            "items": [
                {"metadata": {"name": "a", "resourceVersion": "3"}, "data": {}},
                {"metadata": {"name": "b", "resourceVersion": "2"}, "data": {}},
            ],
        }

    tell(story)


def test_a_custom_list_keeps_both():
    record = Record("k", 5, 5, b'{"kind":"Widget"}')
    body = b"".join(CUSTOM.list(ListMeta(7), CUSTOM.join([record])))
    assert json.loads(body) == {
        "kind": "WidgetList",
        "apiVersion": "example.com/v1",
        "metadata": {"resourceVersion": "7", "continue": ""},
        "items": [{"kind": "Widget"}],
    }


def test_a_typed_item_stored_in_another_order_of_keys_is_shown_the_same():
    record = Record("k", 5, 5, b'{"metadata":{"name":"a"},"apiVersion":"v1","kind":"ConfigMap"}')
    assert VIEW.join([record]) == b'{"metadata":{"name":"a"}}'


def test_pages_are_of_one_snapshot_whatever_is_written_between():
    async def story(w: World) -> None:
        for name in "abcde":
            await w.put(name)
        one = await w.list(limit=2)
        assert (names(one), one["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
        await w.put("bb")
        await w.put("d", x="changed")
        await w.drop("e")
        two = await w.list(**{"limit": 2, "continue": one["metadata"]["continue"]})
        assert (names(two), two["metadata"]["remainingItemCount"]) == (["c", "d"], 1)
        assert two["metadata"]["resourceVersion"] == one["metadata"]["resourceVersion"]
        assert two["items"][1]["data"] == {}
        three = await w.list(**{"limit": 2, "continue": two["metadata"]["continue"]})
        assert names(three) == ["e"]
        assert "continue" not in three["metadata"] and "remainingItemCount" not in three["metadata"]

    tell(story)


def test_with_a_selection_the_remaining_count_is_not_told():
    async def story(w: World) -> None:
        for name in "abcd":
            await w.put(name, {"par": "odd" if name in "ac" else "even"})
        one = await w.list(labelled("par", "odd"), limit=1)
        assert names(one) == ["a"] and "remainingItemCount" not in one["metadata"]
        two = await w.list(labelled("par", "odd"), **{"limit": 1, "continue": one["metadata"]["continue"]})
        assert names(two) == ["c"] and "remainingItemCount" not in two["metadata"]
        rest = await w.list(labelled("par", "odd"), **{"limit": 1, "continue": two["metadata"]["continue"]})
        assert names(rest) == [] and "continue" not in rest["metadata"]
        last = await w.list(labelled("par", "even"), limit=2)
        assert names(last) == ["b", "d"] and "continue" not in last["metadata"]

    tell(story)


def test_a_compacted_token_says_how_to_go_on_inconsistently():
    async def story(w: World) -> None:
        for name in "abc":
            await w.put(name)
        one = await w.list(limit=1)
        await w.drop("b")
        await w.put("d")
        await w.storage.compact(w.storage.revision)
        with pytest.raises(ApiError) as refused:
            await w.list(**{"limit": 1, "continue": one["metadata"]["continue"]})
        status = refused.value.status()
        assert (status["code"], status["reason"]) == (410, "Expired")
        rest = await w.list(**{"continue": status["metadata"]["continue"]})
        assert names(rest) == ["c", "d"]
        with pytest.raises(ApiError, match="too old"):
            await w.list(resourceVersion=2, resourceVersionMatch="Exact")

    tell(story)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, ["a2", "b"]),
        ({"resourceVersion": ""}, ["a2", "b"]),
        ({"resourceVersion": 0, "limit": 1}, ["a2", "b"]),
        ({"resourceVersion": 2}, ["a2", "b"]),
        ({"resourceVersion": 2, "limit": 1}, ["a1"]),
        ({"resourceVersion": 2, "resourceVersionMatch": "Exact"}, ["a1"]),
        ({"resourceVersion": 3, "resourceVersionMatch": "Exact"}, ["a1", "b"]),
        ({"resourceVersion": 2, "resourceVersionMatch": "NotOlderThan", "limit": 1}, ["a2"]),
        ({"limit": -1}, ["a2", "b"]),
    ],
)
def test_which_state_a_list_shows(query, shown):
    async def story(w: World) -> None:
        await w.put("a", v="1")
        await w.put("b")
        await w.put("a", v="2")
        got = await w.list(**query)
        assert [i["metadata"]["name"] + i["data"].get("v", "") for i in got["items"]] == shown

    tell(story)


@pytest.mark.parametrize("query", [{}, {"resourceVersionMatch": "Exact"}, {"limit": 1}])
def test_a_version_that_is_not_written_yet_is_504(query):
    async def story(w: World) -> None:
        with pytest.raises(ApiError) as refused:
            await w.list(resourceVersion=9000000000000000000, **query)
        status = refused.value.status()
        assert (status["code"], status["reason"], status["details"]["retryAfterSeconds"]) == (
            504,
            "Timeout",
            1,
        )
        assert status["details"]["causes"] == [
            {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        ]
        with pytest.raises(ApiError) as refused:
            check_seen(w.cache, "9000000000000000000")
        assert refused.value.code == 504

    tell(story)


def test_joined_bodies_are_kept_until_the_scope_changes():
    async def story(w: World) -> None:
        await w.put("a")
        await w.list()
        assert len(w.bodies._kept) == 1
        (_, first) = next(iter(w.bodies._kept.values()))
        await w.list()
        assert next(iter(w.bodies._kept.values()))[1] is first
        await w.storage.create("/core/secrets/ns/s", value("s"))
        again = await w.list()
        assert next(iter(w.bodies._kept.values()))[1] is first
        assert again["metadata"]["resourceVersion"] == "3"
        await w.put("a", v="2")
        assert (await w.list())["items"][0]["data"] == {"v": "2"}

    tell(story)


def test_joined_bodies_are_bounded():
    bodies = JoinedBodies(3 * ENTRY_BYTES + 100)
    for number in range(50):
        bodies.keep(number, 1, b"x" * 30)
    assert [n for n in range(50) if bodies.get(n, 1)] == [47, 48, 49]
    bodies.keep("large", 1, b"x" * 3000)
    assert bodies.get("large", 1) is None and bodies.get(49, 1)
    assert bodies.get(49, 2) is None


# Tokens and options.


def test_continue_tokens_come_back():
    token = encode_continue(SCOPE, SCOPE + "name", 17)
    assert decode_continue(SCOPE, token) == (SCOPE + "name\0", 17)
    assert decode_continue(PREFIX, encode_continue(PREFIX, SCOPE + "name", 17)) == (SCOPE + "name\0", 17)


def token(**fields: object) -> str:
    import base64

    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("garbage", "invalid character '\\u0081' looking for beginning of value"),
        ("e4E", "invalid character '\\u0081' looking for beginning of object key string"),
        ("bnVsgQ", "invalid character '\\u0081' in literal null (expecting 'l')"),
        ("MSCB", "invalid character '\\u0081' after top-level value"),
        ("WzEsMg", "unexpected end of JSON input"),
        ("x", "illegal base64 data at input byte 0"),
        ("a b", "illegal base64 data at input byte 1"),
        ("eyJ2IjoibWV0YSJ9", "server does not recognize this encoded version meta"),
        ("bnVsbA", "server does not recognize this encoded version "),
        ("W10", "json: cannot unmarshal array"),
        (token(v="meta.k8s.io/v1", rv=0, start="a"), "incorrect encoded start resourceVersion"),
        (token(v="meta.k8s.io/v1", rv=True, start="a"), "incorrect encoded start resourceVersion"),
        (token(v="meta.k8s.io/v1", rv=3, start=""), "encoded start key empty"),
        (token(v="meta.k8s.io/v1", rv=3, start="../../secrets/x"), "../../secrets/x"),
        (token(v="meta.k8s.io/v1", rv=3, start="a/../x"), "a/../x"),
    ],
)
def test_what_is_no_token(bad, fault):
    with pytest.raises(BadContinueToken) as refused:
        decode_continue(SCOPE, bad)
    assert str(refused.value).startswith("invalid continue token: continue key is not valid: ")
    assert fault in str(refused.value)


def test_a_deeply_nested_token_is_refused():
    import base64

    deep = base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    with pytest.raises(BadContinueToken):
        decode_continue(SCOPE, deep)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x1", "invalid syntax"),
        ("-5", "invalid syntax"),
        ("+5", "invalid syntax"),
        ("१", "invalid syntax"),
        ("99999999999999999999999", "value out of range"),
        ("9" * 5000, "value out of range"),
    ],
)
def test_what_is_no_version(text, fault):
    with pytest.raises(BadRevision, match=fault):
        parse_revision(text)


def test_numbers_are_go_s():
    assert [parse_int64(t) for t in ("5", "-5", "+5", "9223372036854775807")] == [5, -5, 5, (1 << 63) - 1]
    for text, fault in (("few", "invalid syntax"), ("", "invalid syntax"), ("9" * 30, "value out of range")):
        with pytest.raises(ApiError, match=fault):
            parse_int64(text)


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            ["resourceVersionMatch is forbidden unless resourceVersion is provided"],
        ),
        (
            {"resourceVersionMatch": "Newest", "continue": "x"},
            ["unless resourceVersion is provided", "forbidden when continue is provided", 'value: "Newest"'],
        ),
        (
            {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
            ['"exact" is forbidden for resourceVersion "0"'],
        ),
        ({"sendInitialEvents": "false"}, ["sendInitialEvents is forbidden for list"]),
        ({"watch": "1", "sendInitialEvents": "1"}, ["requires setting resourceVersionMatch to NotOlderThan"]),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, ["unless sendInitialEvents is provided"]),
    ],
)
def test_combinations_that_are_refused(query, causes):
    with pytest.raises(ApiError) as refused:
        check_list_options(read_list_options({k: [v] for k, v in query.items()}))
    assert refused.value.code == 422
    assert len(refused.value.causes) == len(causes)
    for cause, text in zip(refused.value.causes, causes, strict=True):
        assert text in cause.message


@pytest.mark.parametrize(
    ("text", "true"), [("1", True), ("perhaps", True), ("", True), ("false", False), ("0", False)]
)
def test_booleans(text, true):
    assert read_list_options({"watch": [text]}).watch is true


# Watches.


def test_events_of_a_version_on_then_live():
    async def story(w: World) -> None:
        await w.put("a")
        await w.put("a", v="2")
        stream = w.watch(resourceVersion=2)
        assert await stream.take(1) == [("MODIFIED", "a", "3")]
        await w.put("b")
        await w.drop("a")
        assert await stream.take(2) == [("ADDED", "b", "4"), ("DELETED", "a", "5")]
        assert await stream.silent()

    tell(story)


def test_of_many_watches_that_start_one_goes_on_in_a_turn_of_the_loop(monkeypatch):
    """Of forty watches of 20,000 objects each turn of the loop encoded 500 events of each."""
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)  # as if each step took long
    encoded: list[str] = []

    class Counting(JsonView):
        def event(self, kind: str, record: Record, fresh: bool) -> bytes:
            encoded.append(record.key)
            return super().event(kind, record, fresh)

    async def story(w: World) -> None:
        for number in range(4 * CHECKED_STEP):
            await w.put(f"n{number:04}")
        options = read_list_options({"watch": ["1"]})
        view = Counting("v1", "ConfigMap", typed=True)
        parts = [w.watches.start(w.cache, SCOPE, options, view, None).parts for _ in range(20)]
        tasks = [asyncio.ensure_future(anext(each)) for each in parts]
        await asyncio.sleep(0)
        begun = len(encoded)
        assert begun == 20 * CHECKED_STEP
        while not all(task.done() for task in tasks):
            before = len(encoded)
            await asyncio.sleep(0)
            assert len(encoded) <= before + CHECKED_STEP
        assert len(encoded) == 20 * 4 * CHECKED_STEP
        for each in parts:
            await each.aclose()

    tell(story)


@pytest.mark.parametrize("version", ["", "0"])
def test_without_a_version_a_watch_starts_with_the_state(version):
    async def story(w: World) -> None:
        await w.put("b")
        await w.put("a")
        stream = w.watch(resourceVersion=version)
        assert await stream.take(2) == [("ADDED", "a", "3"), ("ADDED", "b", "2")]
        await w.put("c")
        assert await stream.take(1) == [("ADDED", "c", "4")]

    tell(story)


def test_with_bookmarks_the_state_ends_with_one():
    async def story(w: World) -> None:
        await w.put("a")
        stream = w.watch(allowWatchBookmarks="true")
        part = await anext(stream.parts) + await anext(stream.parts)
        events = [json.loads(line) for line in part.splitlines()]
        assert [e["type"] for e in events] == ["ADDED", "BOOKMARK"]
        assert events[1]["object"] == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}},
        }

    tell(story)


def test_send_initial_events_false_leaves_the_state_out():
    async def story(w: World) -> None:
        await w.put("a")
        stream = w.watch(sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
        assert await stream.silent()

    tell(story)


def test_objects_enter_and_leave_a_selection():
    async def story(w: World) -> None:
        await w.put("a", {"tier": "back"})
        stream = w.watch(labelled("tier", "front"), resourceVersion=1)
        task = asyncio.ensure_future(stream.take(4))
        await asyncio.sleep(0.02)
        await w.put("a", {"tier": "front"}, v="1")
        await w.put("a", {"tier": "front"}, v="2")
        await w.put("a", {"tier": "back"}, v="3")
        await w.drop("a")
        await w.put("b", {"tier": "front"})
        assert await task == [
            ("ADDED", "a", "3"),
            ("MODIFIED", "a", "4"),
            ("DELETED", "a", "5"),
            ("ADDED", "b", "7"),
        ]

    tell(story)


def test_an_object_that_leaves_shows_its_old_content_and_the_new_version():
    async def story(w: World) -> None:
        await w.put("a", {"tier": "front"}, v="old")
        await w.put("a", {"tier": "back"}, v="new")
        stream = w.watch(labelled("tier", "front"), resourceVersion=2)
        event = json.loads(await anext(stream.parts))
        assert event["type"] == "DELETED"
        assert event["object"]["data"] == {"v": "old"}
        assert event["object"]["metadata"] == {
            "name": "a",
            "resourceVersion": "3",
            "labels": {"tier": "front"},
        }

    tell(story)


def test_a_compacted_version_is_one_error_event(monkeypatch):
    from apimachinery.storage import watch_cache

    monkeypatch.setattr(watch_cache, "WINDOW_EVENTS", 1)

    async def story(w: World) -> None:
        await w.put("a")
        await w.put("a", v="2")
        await w.storage.compact(3)
        stream = w.watch(resourceVersion=1)
        event = json.loads(await anext(stream.parts))
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
            "ERROR",
            410,
            "Expired",
        )
        assert event["object"]["message"] == "too old resource version: 1 (3)"
        assert await stream.ended()

    tell(story)


def test_a_far_future_version_waits_and_a_streaming_list_of_it_fails():
    async def story(w: World) -> None:
        stream = w.watch(resourceVersion=4)
        task = asyncio.ensure_future(stream.take(1))
        await asyncio.sleep(0.02)
        for name in "abcd":
            await w.put(name)
        assert await task == [("ADDED", "d", "5")]
        stream = w.watch(resourceVersion=100, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        event = json.loads(await anext(stream.parts))
        assert (event["type"], event["object"]["code"]) == ("ERROR", 504)

    tell(story)


def test_a_version_that_is_no_number_is_500():
    async def story(w: World) -> None:
        with pytest.raises(ApiError) as refused:
            w.watch(resourceVersion="abc")
        assert refused.value.code == 500 and not refused.value.reason

    tell(story)


def test_watchers_of_the_same_share_one_encoding():
    async def story(w: World) -> None:
        made: list[str] = []

        class Counting(JsonView):
            def event(self, kind: str, record: Record, first: bool) -> bytes:
                made.append(kind)
                return super().event(kind, record, first)

        view = Counting("v1", "ConfigMap", typed=True)
        options = ListQuery(watch=True, resource_version="1")
        streams = [Stream(w.watches.start(w.cache, SCOPE, options, view).parts) for _ in range(200)]
        tasks = [asyncio.ensure_future(stream.take(2)) for stream in streams]
        await asyncio.sleep(0.02)
        await w.put("a")
        await w.put("b")
        assert all(got == [("ADDED", "a", "2"), ("ADDED", "b", "3")] for got in await asyncio.gather(*tasks))
        assert len(made) <= 4

    tell(story)


def test_selections_that_see_the_same_share_one_encoding():
    async def story(w: World) -> None:
        made: list[bytes] = []

        class Counting(JsonView):
            def event(self, kind: str, record: Record, first: bool) -> bytes:
                made.append(super().event(kind, record, first))
                return made[-1]

        view = Counting("v1", "ConfigMap", typed=True)
        options = ListQuery(watch=True, resource_version="1")
        chosen = [labelled("a", "b"), *(Selection(f"a!={n}", lambda record: True) for n in range(50))]
        parts = [w.watches.start(w.cache, SCOPE, options, view, each).parts for each in chosen]
        tasks = [asyncio.ensure_future(anext(each)) for each in parts]
        await asyncio.sleep(0.02)
        await w.put("a", {"a": "b"})
        opened = await asyncio.gather(*tasks)
        assert len({id(chunk) for chunk in opened}) == 1
        before, held = len(made), w.watches.budget.held
        await w.put("a", {"a": "c"}, v="x" * 100_000)
        tasks = [asyncio.ensure_future(anext(each)) for each in parts]
        assert w.watches.budget.held - held < 300_000
        left, *others = [json.loads(part) for part in await asyncio.gather(*tasks)]
        assert left["type"] == "DELETED" and left["object"]["metadata"]["labels"] == {"a": "b"}
        assert all(seen == others[0] and seen["type"] == "MODIFIED" for seen in others)
        assert len(made) - before == 2

    tell(story)


def on_node(node: str, asked: list[str], *, indexed: bool) -> Selection:
    """What a kubelet watches; ``asked`` notes each time that a watch of the node is asked about a record."""

    def read(record: Record) -> str:
        return json.loads(record.value)["data"].get("node", "")

    def matches(record: Record) -> bool:
        asked.append(node)
        return read(record) == node

    return Selection(f"{indexed}={node}", matches, Trigger("node", node, read) if indexed else None)


def test_watches_found_by_their_value_see_what_all_would_see():
    async def story(w: World) -> None:
        nodes = [f"n{number}" for number in range(6)]
        feed = Feed(w.cache, SCOPE, lambda: None)
        watchers = {(node, indexed): Watcher() for node in nodes for indexed in (True, False)}
        leave = [
            feed.join(watcher, VIEW, on_node(node, [], indexed=indexed), 0)
            for (node, indexed), watcher in watchers.items()
        ]
        chance = random.Random(11)
        for step in range(80):
            name = f"cm-{chance.randrange(5)}"
            if chance.random() < 0.2 and w.cache.get(SCOPE + name) is not None:
                await w.drop(name)
            else:
                await w.put(name, node=chance.choice(["", *nodes]), step=str(step))
        for node in nodes:
            seen = await watchers[node, True].take()
            assert seen.count(b"\n") > 5
            assert seen == await watchers[node, False].take()
        for each in leave:
            each()
        assert feed._groups == feed._open == feed._by_field == {}

    tell(story)


def test_a_watch_of_another_value_costs_an_event_nothing():
    async def story(w: World) -> None:
        asked: list[str] = []
        feed = Feed(w.cache, SCOPE, lambda: None)
        watchers = [Watcher() for _ in range(200)]
        for number, watcher in enumerate(watchers):
            feed.join(watcher, VIEW, on_node(f"n{number}", asked, indexed=True), 0)
        await w.put("a", node="n7")
        assert b'"ADDED"' in await watchers[7].take()
        assert set(asked) == {"n7"}
        await w.put("a", node="n8")
        assert b'"DELETED"' in await watchers[7].take()
        assert b'"ADDED"' in await watchers[8].take()
        assert set(asked) == {"n7", "n8"}

    tell(story)


def test_a_name_is_sought_in_every_namespace():
    async def story(w: World) -> None:
        for namespace in range(100):
            for name in ("a", "b", "bb") if namespace % 3 else ("a", "c"):
                await w.storage.create(f"{PREFIX}n{namespace:03}/{name}", value(name))
        selection = Selection("metadata.name=b", lambda record: record.key.endswith("/b"), name="b")
        plain = Selection("metadata.name=b", lambda record: record.key.endswith("/b"))
        for query in ({}, {"limit": 10}):
            expected = await w.list(plain, PREFIX, **query)
            assert await w.list(selection, PREFIX, **query) == expected
        token = expected["metadata"]["continue"]
        more = [await w.list(each, PREFIX, limit=70, **{"continue": token}) for each in (selection, plain)]
        assert more[0] == more[1]
        assert len(more[0]["items"]) == 56

    tell(story)


def test_what_takes_long_to_encode_holds_neither_the_loop_nor_the_order(monkeypatch):
    from apimachinery.server.read import watch

    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.02)

    async def story(w: World) -> None:
        threads: list[bool] = []

        class Slow:
            key, content_type, watch_content_type, quick_bytes = "slow", "a", "a", 64 << 10

            def event(self, kind: str, record: Record, first: bool) -> bytes:
                threads.append(threading.current_thread() is threading.main_thread())
                if len(record.value) > 100_000:
                    time.sleep(0.2)
                return VIEW.event(kind, record, first)

            def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
                return VIEW.bookmark(revision, annotations, first)

        options = ListQuery(watch=True, resource_version="1", allow_bookmarks=True)
        stream = Stream(w.watches.start(w.cache, SCOPE, options, cast(View, Slow())).parts)
        plain = w.watch(resourceVersion=1)
        tasks = [asyncio.ensure_future(each.take(1)) for each in (stream, plain)]
        await asyncio.sleep(0.01)
        await w.put("large", v="x" * 200_000)
        await w.put("small")
        await asyncio.sleep(0.05)
        late = w.watch(resourceVersion=2)
        seen = await tasks[0]
        while seen[-1] != ("ADDED", "small", "3"):
            seen += await stream.take(1)
        assert [revision for _, _, revision in seen] == sorted(revision for _, _, revision in seen)
        first = [kind for kind, name, _ in seen if name == "large"]
        assert first == ["ADDED"] and all(r < "2" for k, _, r in seen[: seen.index(("ADDED", "large", "2"))])
        assert not any(threads)
        assert await tasks[1] == [("ADDED", "large", "2")] and await plain.take(1) == [
            ("ADDED", "small", "3")
        ]
        assert await late.take(1) == [("ADDED", "small", "3")] and await late.silent()

    tell(story)


def test_ending_and_leaving_leave_nothing_behind():
    async def story(w: World) -> None:
        streams = [w.watch(resourceVersion=1) for _ in range(3)]
        tasks = [asyncio.ensure_future(anext(stream.parts)) for stream in streams]
        await asyncio.sleep(0.01)
        assert len(w.watches._feeds) == 1
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await streams[0].parts.aclose()
        w.watches.end(PREFIX)
        for task in tasks[1:]:
            with pytest.raises(StopAsyncIteration):
                await task
        assert not w.watches._feeds and not w.cache._listeners

    tell(story)


def test_a_timed_watch_ends_and_a_slow_reader_is_cut_off(monkeypatch):
    from apimachinery.server.read import backlogs

    monkeypatch.setattr(backlogs, "BACKLOG_BYTES", 1000)

    async def story(w: World) -> None:
        timed = w.watch(resourceVersion=1, timeoutSeconds=1)
        assert await timed.ended()
        slow = w.watch(resourceVersion=1)
        task = asyncio.ensure_future(anext(slow.parts))
        await asyncio.sleep(0.02)
        await w.put("a")
        await task
        for number in range(30):
            await w.put("a", v="x" * 100 + str(number))
        assert await slow.ended()

    tell(story)


def test_bookmarks_come_from_time_to_time(monkeypatch):
    from apimachinery.server.read import watch

    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.02)

    async def story(w: World) -> None:
        await w.put("a")
        stream = w.watch(resourceVersion=2, allowWatchBookmarks="1")
        await w.storage.create("/core/secrets/ns/s", value("s"))
        assert await stream.take(2) == [("BOOKMARK", "", "3"), ("BOOKMARK", "", "3")]

    tell(story)
