"""Audit events as they leave: their shape, order, where they go, and what happens when there they cannot go."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    User,
)
from apimachinery.http.outgoing import CallFailed, Endpoint
from apimachinery.meta.errors import ApiError, not_found
from apimachinery.metrics import Count, Metrics
from apimachinery.server.operate.audit.audit import Audit
from apimachinery.server.operate.audit.batches import AuditWebhook, Batches, Batching
from apimachinery.server.operate.audit.log_file import LogFile, Rotation, legacy_line
from apimachinery.server.operate.audit.policy import AuditPolicy, parse_policy
from apimachinery.server.operate.audit.truncation import Truncated

ANN = User("ann", "1", ("devs", "system:authenticated"), (("scopes", ("a",)),))
PATH = "/api/v1/namespaces/ns/configmaps"
OBJECT = b'{"kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"manager":"m"}]}}'


class Kept:
    """A backend that keeps events."""

    name = "kept"
    strict = False

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: bytes) -> None:
        assert event.endswith(b"}\n") and event.count(b"\n") == 1
        self.events.append(json.loads(event))

    def start(self) -> None: ...

    async def close(self) -> None: ...


def policy(level: str, **more: Any) -> AuditPolicy:
    rule = {"level": level, **more}
    return parse_policy(
        json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}), "policy.yaml"
    )


def audited(level: str, **more: Any) -> tuple[Audit, list[dict[str, Any]]]:
    kept = Kept()
    audit = Audit(policy(level, **more), [kept], Metrics(), lambda media_type, body: json.loads(body))
    return audit, kept.events


def request(method: str = "POST", path: str = PATH, query: str = "", **headers: str) -> Request:
    sent = {"user-agent": "kubectl/1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    uri = (path + ("?" + query if query else "")).encode()
    return Request(method, path, query, sent, user=ANN, source="127.0.0.1", uri=uri)


def test_an_event_has_the_fields_of_the_reference_in_their_order():
    audit, events = audited("RequestResponse")
    asked = request(query="fieldManager=x")
    audit.received(asked, "id-1")
    assert asked.trail is not None
    asked.trail.note_name("a")
    asked.trail.note_object(OBJECT)
    asked.annotations["authorization.k8s.io/decision"] = "allow"
    audit.answered(asked, Response(201, OBJECT + b"\n"))
    first, last = events
    assert list(first) == [
        "kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs", "userAgent",
        "objectRef", "requestReceivedTimestamp", "stageTimestamp",
    ]  # fmt: skip
    assert list(last) == [
        "kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs", "userAgent",
        "objectRef", "responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp",
        "stageTimestamp", "annotations",
    ]  # fmt: skip
    assert first["requestURI"] == f"{PATH}?fieldManager=x" and first["verb"] == "create"
    assert first["user"] == {
        "username": "ann", "uid": "1", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["a"]},
    }  # fmt: skip
    assert first["objectRef"] == {"resource": "configmaps", "namespace": "ns", "apiVersion": "v1"}
    assert last["objectRef"]["name"] == "a"
    assert last["responseStatus"] == {"metadata": {}, "code": 201}
    assert last["requestObject"] == last["responseObject"] == json.loads(OBJECT)
    assert first["stageTimestamp"] == first["requestReceivedTimestamp"] == last["requestReceivedTimestamp"]
    assert len(last["stageTimestamp"]) == len("2026-11-22T11:41:24.785316Z")


@pytest.mark.parametrize(
    ("level", "objects"),
    [
        ("Metadata", []),
        ("Request", ["requestObject"]),
        ("RequestResponse", ["requestObject", "responseObject"]),
    ],
)
def test_levels_keep_objects(level, objects):
    audit, events = audited(level)
    asked = request()
    audit.received(asked, "id")
    assert asked.trail is not None and asked.trail.wants_objects == bool(objects)
    asked.trail.note_object(OBJECT)
    audit.answered(asked, Response(201, OBJECT))
    assert [key for key in events[-1] if key.endswith("Object")] == objects
    assert events[-1]["level"] == level


def test_at_level_none_there_is_no_event_and_no_trail():
    audit, events = audited("None")
    asked = request()
    audit.received(asked, "id")
    audit.answered(asked, Response(201, OBJECT))
    assert events == [] and asked.trail is None


def test_a_refusal_is_kept_with_its_status_at_every_level():
    audit, events = audited("Metadata", omitStages=["RequestReceived"])
    asked = request("GET", f"{PATH}/none")
    audit.received(asked, "id")
    audit.answered(asked, Response(404, json.dumps(not_found("configmaps", "", "none").status()).encode()))
    (event,) = events
    assert event["stage"] == "ResponseComplete"
    assert event["responseStatus"]["reason"] == "NotFound"
    assert event["responseStatus"]["details"] == {"name": "none", "kind": "configmaps"}
    assert "kind" not in event["responseStatus"] and "responseObject" not in event


def test_managed_fields_are_left_out_where_that_is_wanted():
    audit, events = audited("RequestResponse", omitManagedFields=True)
    asked = request()
    audit.received(asked, "id")
    assert asked.trail is not None
    asked.trail.note_object(OBJECT)
    items = b'{"kind":"ConfigMapList","metadata":{},"items":[' + OBJECT + b"]}"
    audit.answered(asked, Response(200, (items[:20], items[20:])))
    assert events[-1]["requestObject"]["metadata"] == {"name": "a"}
    assert events[-1]["responseObject"]["items"][0]["metadata"] == {"name": "a"}


def test_who_is_not_known_has_one_event_without_a_user():
    audit, events = audited("Metadata")
    asked = request("GET")
    asked.user = None
    audit.received(asked, "id")
    audit.answered(asked, Response(401, b'{"kind":"Status","apiVersion":"v1","code":401}'))
    assert [(event["stage"], event["user"]) for event in events] == [("ResponseStarted", {})]


def test_a_stream_is_started_when_it_begins_and_complete_when_it_ends():
    async def parts():
        yield b""

    audit, events = audited("RequestResponse")
    asked = request("GET", query="watch=1")
    audit.received(asked, "id")
    audit.answered(asked, StreamResponse(200, parts()))
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted"]
    assert asked.done is not None
    asked.done()
    assert events[-1]["stage"] == "ResponseComplete" and events[-1]["verb"] == "watch"


def test_impersonation_names_both():
    audit, events = audited("Metadata")
    asked = request("GET")
    audit.received(asked, "id")
    assert asked.trail is not None
    asked.impersonator, asked.user = asked.user, User("carol", "", ("g",))
    asked.trail.constraint = "impersonate:user-info"
    audit.answered(asked, Response(200, b"{}"))
    assert events[-1]["user"]["username"] == "ann"
    assert events[-1]["impersonatedUser"] == {"username": "carol", "groups": ["g"]}
    assert events[-1]["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}


@pytest.mark.parametrize(
    ("headers", "addresses"),
    [
        ({}, ["127.0.0.1"]),
        ({"x_forwarded_for": "10.1.2.3, 10.4.5.6", "x_real_ip": "10.9.9.9"},
         ["10.1.2.3", "10.4.5.6", "10.9.9.9", "127.0.0.1"]),
        ({"x_forwarded_for": 'evil", 127.0.0.1'}, ["127.0.0.1"]),
    ],
)  # fmt: skip
def test_where_a_request_comes_from(headers, addresses):
    audit, events = audited("Metadata")
    audit.received(request("GET", **headers), "id")
    assert events[0]["sourceIPs"] == addresses


def test_a_hostile_header_cannot_end_the_line():
    audit, events = audited("Metadata")
    audit.received(request("GET", user_agent='a"\n{"kind":"Event"}' + "x" * 5000), 'id"\n')
    assert events[0]["auditID"] == 'id"\n'
    assert len(events[0]["userAgent"]) == 1024


def test_a_strict_backend_refuses_what_it_cannot_write():
    class Full(Kept):
        strict = True

        def write(self, event: bytes) -> None:
            raise OSError("disk full")

    metrics = Metrics()
    audit = Audit(policy("Metadata"), [Full()], metrics)
    with pytest.raises(ApiError) as caught:
        audit.received(request(), "id")
    assert caught.value.code == 500
    assert "apiserver_audit_requests_rejected_total 1\n" in metrics.text()


# The log.


def write_lines(path: Path, rotation: Rotation, sizes: list[int]) -> Count:
    lost = Count()
    file = LogFile(str(path), rotation, lost)
    for number, size in enumerate(sizes):
        file.write(b"%06d" % number + b"x" * (size - 7) + b"\n")
    asyncio.run(file.close())
    return lost


MARKS = "\x7f\x9b31m\u061c\u200e\u2028\u202e\u2066\xe9\U0001f600"


@pytest.mark.parametrize("legacy", [False, True])
def test_no_line_steers_a_terminal(tmp_path, legacy):
    event = {
        "auditID": MARKS,
        "stage": "ResponseComplete",
        "stageTimestamp": "t",
        "verb": "get",
        "requestURI": "/",
        "user": {"username": f"\x1b[2J{MARKS}"},
        "responseObject": {"data": {MARKS: MARKS}},
    }
    file = LogFile(str(tmp_path / "log"), Rotation(), Count(), legacy=legacy)
    line = json.dumps(event, ensure_ascii=False).encode() + b"\n"
    file.write(line)
    asyncio.run(file.close())
    written = (tmp_path / "log").read_text()
    assert (
        re.findall("[\x00-\x09\x0b-\x1f\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", written) == []
    )
    assert "\xe9\U0001f600" in written
    if not legacy:
        assert json.loads(written) == event


def test_a_full_log_is_exchanged_and_no_line_is_lost_or_cut(tmp_path):
    sizes = [300_000] * 10
    lost = write_lines(tmp_path / "audit.log", Rotation(megabytes=1), sizes)
    files = sorted(tmp_path.iterdir(), key=lambda path: (path.name == "audit.log", path.name))
    assert [path.name for path in files][-1] == "audit.log" and len(files) == 4
    lines = b"".join(path.read_bytes() for path in files).splitlines()
    assert [int(line[:6]) for line in lines] == list(range(10))
    assert all(path.stat().st_size <= 1 << 20 for path in files)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert lost.value == 0


def test_full_logs_are_compressed_and_the_oldest_go(tmp_path):
    old = tmp_path / "audit-2020-01-01T00-00-00.000.log"
    old.write_text("old\n")
    other = tmp_path / "audit-notes.log"
    other.write_text("not ours")
    write_lines(tmp_path / "audit.log", Rotation(megabytes=1, days=7, compress=True), [600_000] * 3)
    full = [path for path in tmp_path.iterdir() if path.suffix == ".gz"]
    assert full and all(gzip.decompress(path.read_bytes()).startswith(b"00000") for path in full)
    assert not old.exists() and other.exists()


def test_so_many_full_logs_are_kept(tmp_path):
    for day in range(1, 9):
        (tmp_path / f"audit-2026-01-0{day}T00-00-00.000.log").write_text("x\n")
    write_lines(tmp_path / "audit.log", Rotation(megabytes=1, backups=2), [600_000] * 2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 3 and "audit-2026-01-08T00-00-00.000.log" in names


def test_what_cannot_be_written_is_counted(tmp_path, caplog):
    lost = Count()
    file = LogFile(str(tmp_path / "audit.log"), Rotation(), lost)
    os.close(file._descriptor)
    file._descriptor = os.open("/dev/full", os.O_WRONLY) if Path("/dev/full").exists() else -1
    file.write(b"{}\n")
    file.write(b"{}\n")
    assert lost.value == 2
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == 1


def test_a_line_for_people():
    event = {
        "stageTimestamp": "2026-01-01T00:00:00.000000Z", "auditID": "i", "stage": "ResponseComplete",
        "verb": "get", "user": {"username": "ann", "groups": ["a"]}, "sourceIPs": ["1.2.3.4"],
        "requestURI": "/x", "responseStatus": {"code": 200},
    }  # fmt: skip
    assert legacy_line(json.dumps(event).encode()) == (
        b'2026-01-01T00:00:00.000000Z AUDIT: id="i" stage="ResponseComplete" ip="1.2.3.4" method="get" user="ann" '
        b'groups="\\"a\\"" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="/x" response="200"\n'
    ).replace(b'\\"a\\"', b'"a"')


def test_what_is_too_large_loses_its_objects_or_is_dropped():
    kept, lost = Kept(), Count()
    truncated = Truncated(kept, 1000, lost)
    whole = {"auditID": "a", "requestObject": {"x": "y" * 2000}, "annotations": {"b": "c"}}
    truncated.write(json.dumps(whole).encode() + b"\n")
    truncated.write(json.dumps({"auditID": "small"}).encode() + b"\n")
    truncated.write(json.dumps({"auditID": "u" * 2000, "responseObject": 1}).encode() + b"\n")
    assert kept.events == [
        {"auditID": "a", "annotations": {"b": "c", "audit.k8s.io/truncated": "true"}},
        {"auditID": "small"},
    ]
    assert lost.value == 1


# Batches.


class Sink:
    """Takes batches, or fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.batches: list[list[bytes]] = []
        self.bodies: list[bytes] = []
        self.failures = failures

    async def deliver(self, batch: Any) -> None:
        await asyncio.sleep(0)
        self.batches.append(list(batch))

    async def post(self, endpoint: Endpoint, body: bytes) -> None:
        self.bodies.append(body)
        if self.failures:
            self.failures -= 1
            raise CallFailed("no answer")


def run_batches(sink: Sink, batching: Batching, events: int, pause: float = 0.0) -> Count:
    lost = Count()

    async def run() -> None:
        batches = Batches("webhook", sink.deliver, batching, lost)
        batches.start()
        for number in range(events):
            batches.write(b"%d\n" % number)
        await asyncio.sleep(pause)
        await batches.close()

    asyncio.run(run())
    return lost


def test_batches_keep_order_and_lose_nothing_that_has_room():
    sink = Sink()
    lost = run_batches(sink, Batching(buffer=1000, batch=64, wait_seconds=10, qps=0), 1000)
    assert [int(event) for batch in sink.batches for event in batch] == list(range(1000))
    assert max(map(len, sink.batches)) == 64 and lost.value == 0


def test_a_batch_that_is_not_full_leaves_when_it_has_waited():
    sink = Sink()
    run_batches(sink, Batching(batch=400, wait_seconds=0.01, qps=0), 3, pause=0.1)
    assert sink.batches == [[b"0\n", b"1\n", b"2\n"]]


def test_past_the_buffer_events_are_dropped_and_counted():
    sink = Sink()
    lost = run_batches(sink, Batching(buffer=10, batch=5, wait_seconds=10, qps=0), 100)
    assert sum(map(len, sink.batches)) == 10 and lost.value == 90


def test_the_throttle_holds_batches_back():
    async def run() -> None:
        sink, lost, began = Sink(), Count(), time.monotonic()
        batches = Batches("webhook", sink.deliver, Batching(batch=1, wait_seconds=0, qps=1, burst=3), lost)
        batches.start()
        for number in range(10):
            batches.write(b"%d\n" % number)
        async with asyncio.timeout(60):
            while len(sink.batches) < 3:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert len(sink.batches) <= 3 + (time.monotonic() - began)
        await batches.close()
        assert len(sink.batches) == 10

    asyncio.run(run())


@pytest.mark.parametrize(("failures", "lost"), [(2, 0), (9, 1)])
def test_a_webhook_is_tried_again_and_in_the_end_given_up(failures, lost, caplog):
    sink, counted = Sink(failures), Count()
    webhook = AuditWebhook(Endpoint("http://127.0.0.1:1"), sink.post, backoff=0.001)

    async def run() -> None:
        batches = Batches("webhook", webhook.deliver, Batching(wait_seconds=0), counted)
        batches.start()
        batches.write(b'{"kind":"Event"}\n')
        await asyncio.sleep(0.1)
        await batches.close()

    asyncio.run(run())
    assert json.loads(sink.bodies[0])["items"] == [{"kind": "Event"}]
    assert counted.value == lost
