"""Recorded answers of a real kube-apiserver go bytes → typed → bytes without loss, and stay so when changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.client.calls import UNSTRUCTURED, event, typed_codec
from apimachinery.client.endpoint import TransportResponse
from apimachinery.client.errors import error_of
from apimachinery.meta.errors import ApiError
from apimachinery.typed import lossless
from kubernetes_api.meta_v1 import ObjectMeta, Status
from kubernetes_api.scheme import SCHEME

SCENARIOS = Path(__file__).parents[2] / "../shared/parity/scenarios"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SCENARIOS.exists(), reason="the ../shared folder of recordings is absent"),
]


@cache
def answers() -> tuple[dict[str, Any], ...]:
    """What the server said in JSON in every step: status and body, events too. Times were replaced in recording."""
    found: list[dict[str, Any]] = []
    for file in sorted(SCENARIOS.glob("*/*.yaml")):
        document = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
        for step in document["steps"]:
            answer = step.get("expect")
            if not isinstance(answer, dict):
                continue
            kind = str((answer.get("headers") or {}).get("content-type", "application/json"))
            if kind.startswith("application/json"):
                found.append(json.loads(json.dumps(answer).replace("<time>", "2026-01-02T03:04:05Z")))
    return tuple(found)


def objects() -> Iterator[dict[str, Any]]:
    """Every object: bodies, what events tell of, and the items of lists (which need not say their kind)."""
    for answer in answers():
        for value in (answer.get("body"), *(e.get("object") for e in answer.get("events") or ())):
            if not isinstance(value, dict):
                continue
            yield value
            if isinstance(items := value.get("items"), list) and str(value.get("kind")).endswith("List"):
                for item in items:
                    if isinstance(item, dict):
                        kind = value["kind"].removesuffix("List")
                        yield {"kind": kind, "apiVersion": value.get("apiVersion"), **item}


def typed() -> Iterator[tuple[type[Any], dict[str, Any]]]:
    for value in objects():
        identity = (str(value.get("apiVersion")), str(value.get("kind")))
        if identity == ("v1", "Status"):
            yield Status, value
        elif identity in SCHEME:
            yield SCHEME.class_for(*identity), value


def test_every_object_and_status_goes_through_its_class_unharmed() -> None:
    count = 0
    for model, value in typed():
        raw = json.dumps(value).encode()
        codec = typed_codec(model)
        obj = codec.decode(raw)
        assert type(obj) is model
        assert codec.encode(obj) == raw
        if not isinstance(obj, Status) and isinstance(getattr(obj, "metadata", None), ObjectMeta):
            # The way of a change: all but what was changed must still be there, nulls and unknown fields too.
            obj.metadata.labels = {"changed": "yes"}
            metadata = {**value.get("metadata", {}), "labels": {"changed": "yes"}}
            assert json.loads(codec.encode(obj)) == {**value, "metadata": metadata}
        count += 1
    assert count > 2_500


def test_every_other_object_goes_through_the_dynamic_client() -> None:
    count = 0
    for value in objects():
        raw = json.dumps(value).encode()
        assert json.loads(UNSTRUCTURED.encode(UNSTRUCTURED.decode(raw))) == value
        count += 1
    assert count > 2_500


def test_every_refusal_is_raised_with_all_it_says() -> None:
    count = 0
    for answer in answers():
        body = answer.get("body")
        if answer["status"] < 400 or not isinstance(body, dict) or body.get("kind") != "Status":
            continue
        error = error_of(TransportResponse(answer["status"], {}, json.dumps(body).encode()))
        assert type(error) is not ApiError, f"{answer['status']} {body.get('reason')}"
        assert (error.code, error.reason) == (body["code"], body.get("reason", ""))
        assert error.message == body.get("message", "")
        details = body.get("details") or {}
        assert [c.field for c in error.causes] == [c.get("field", "") for c in details.get("causes") or ()]
        assert error.retry_after == details.get("retryAfterSeconds", 0)
        count += 1
    assert count > 500


def test_every_event_of_a_watch_is_read() -> None:
    count = 0
    for answer in answers():
        for told in answer.get("events") or ():
            line = json.dumps(told).encode()
            if told["type"] == "ERROR":
                with pytest.raises(ApiError):
                    event(line, UNSTRUCTURED)
            else:
                read = event(line, UNSTRUCTURED)
                assert read.type == told["type"]
                assert read.object == (None if told["type"] == "BOOKMARK" else told["object"])
            count += 1
    assert count > 50


def test_a_null_where_a_list_must_be_is_read_as_go_reads_it_and_written_back_as_it_was() -> None:
    model = SCHEME.class_for("v1", "Pod")
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":null,"later":null}}'
    codec = typed_codec(model)
    pod: Any = codec.decode(raw)
    assert pod.spec.containers == []
    assert lossless.encode(pod) == raw
    pod.spec.node_name = "n"
    assert json.loads(codec.encode(pod))["spec"] == {"containers": None, "later": None, "nodeName": "n"}
