"""Writing back loses nothing: what a model does not know survives every change made through it."""

from __future__ import annotations

import copy
import gc
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from apimachinery.client.calls import Event, event, no_event, typed_codec
from apimachinery.client.errors import Gone, UnreadableAnswer, UnreadableObject
from apimachinery.typed import lossless
from apimachinery.typed.object import Object, Part


class Port(Part, kw_only=True):
    name: str | UnsetType = UNSET
    port: int


class Spec(Part, kw_only=True):
    since: datetime | UnsetType = UNSET
    replicas: int | UnsetType | None = UNSET
    ports: list[Port] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class Thing(Object, kw_only=True):
    kind: str = "Thing"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    spec: Spec = msgspec.field(default_factory=Spec)


CODEC = typed_codec(Thing)
NEWER = {
    "kind": "Thing",
    "future": {"deep": [1, None]},
    "metadata": {"name": "a"},
    "spec": {
        "later": None,
        "replicas": 2,
        "ports": [
            {"name": "web", "port": 80, "unknown": "w"},
            {"port": 443, "unknown": "x", "name": "tls"},
        ],
        "labels": {"z": "1", "a": "2"},
    },
}


def read() -> Thing:
    return CODEC.decode(json.dumps(NEWER).encode())


def written(thing: Thing) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(CODEC.encode(thing))
    return value


def test_an_untouched_object_goes_back_byte_for_byte() -> None:
    raw = json.dumps(NEWER, indent=3).encode()
    assert CODEC.encode(CODEC.decode(raw)) == raw


@pytest.mark.parametrize("change", ["ADDED", "MODIFIED", "DELETED"])
def test_an_object_of_an_event_goes_back_as_well(change: str) -> None:
    thing = {**NEWER, "metadata": {"name": "a", "resourceVersion": "7"}}
    raw = json.dumps(thing, indent=3).encode()
    for line in (
        b'{"type":"%s","object":%s}' % (change.encode(), raw),
        b'{"later":[1],"object":%s,"type":"%s"}' % (raw, change.encode()),
    ):
        read = event(line, CODEC)
        assert read == event(line, replace(CODEC, decode_event=no_event))
        assert (read.type, read.resource_version) == (change, "7")
        assert CODEC.encode(copy.copy(read.object)) == CODEC.encode(read.object) == raw
        assert read.object is not None
        read.object.spec.replicas = 5
        assert written(read.object) == {**thing, "spec": {**NEWER["spec"], "replicas": 5}}  # type: ignore[dict-item]


def test_an_event_that_does_not_fit_is_read_in_steps() -> None:
    null = event(b'{"type":"ADDED","object":{"metadata":{},"spec":{"ports":null}}}', CODEC)
    assert null.object is not None
    assert null.object.spec.ports is UNSET
    mark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}'
    assert event(mark, CODEC) == Event("BOOKMARK", None, "9")
    with pytest.raises(UnreadableObject):
        event(b'{"type":"ADDED","object":{"spec":{"ports":7}}}', CODEC)
    with pytest.raises(Gone):
        event(b'{"type":"ERROR","object":{"kind":"Status","reason":"Gone","code":410}}', CODEC)
    with pytest.raises(UnreadableAnswer):
        event(b'{"type":"ADDED","object":', CODEC)


def test_a_changed_field_changes_alone_and_key_order_stays() -> None:
    thing = read()
    thing.spec.replicas = 5
    result = written(thing)
    assert result == {**NEWER, "spec": {**NEWER["spec"], "replicas": 5}}  # type: ignore[dict-item]
    assert list(result) == list(NEWER)
    assert list(result["spec"]) == list(NEWER["spec"])


def test_a_time_keeps_the_digits_and_the_offset_that_datetime_cannot_hold() -> None:
    text = "2026-01-02T03:04:05.123456789-0100"
    thing = CODEC.decode(json.dumps({**NEWER, "spec": {"since": text, "replicas": 1}}).encode())
    assert isinstance(thing.spec.since, datetime)
    thing.spec.replicas = 2
    assert written(thing)["spec"] == {"since": text, "replicas": 2}


def test_a_removed_field_goes_and_an_unknown_null_stays() -> None:
    thing = read()
    thing.spec.replicas = UNSET
    spec = written(thing)["spec"]
    assert "replicas" not in spec
    assert spec["later"] is None


def test_list_items_keep_their_own_unknown_fields_when_one_is_put_before_them() -> None:
    thing = read()
    assert thing.spec.ports is not UNSET
    thing.spec.ports.insert(0, Port(name="new", port=1))
    thing.spec.ports[1].port = 81
    assert written(thing)["spec"]["ports"] == [
        {"name": "new", "port": 1},
        {"name": "web", "port": 81, "unknown": "w"},
        {"port": 443, "unknown": "x", "name": "tls"},
    ]


def test_removing_and_reversing_list_items_takes_unknown_fields_along() -> None:
    thing = read()
    assert thing.spec.ports is not UNSET
    thing.spec.ports.reverse()
    assert [p["unknown"] for p in written(thing)["spec"]["ports"]] == ["x", "w"]
    thing.spec.ports.pop()
    assert [p["unknown"] for p in written(thing)["spec"]["ports"]] == ["x"]


def test_a_replaced_item_of_another_name_inherits_nothing() -> None:
    thing = read()
    assert thing.spec.ports is not UNSET
    thing.spec.ports[0] = Port(name="other", port=8080)
    assert written(thing)["spec"]["ports"][0] == {"name": "other", "port": 8080}


def test_an_object_made_here_has_no_origin_and_origins_die_with_their_objects() -> None:
    assert lossless.origin_of(Thing()) is None
    gc.collect()  # what other tests left behind shall not go while this one counts
    before = len(lossless._ORIGINS)
    thing = read()
    assert len(lossless._ORIGINS) == before + 1
    del thing
    gc.collect()
    assert len(lossless._ORIGINS) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
    max_leaves=12,
)


@given(raw=JSON, new=JSON)
def test_with_everything_known_rewriting_gives_exactly_the_new_value(raw: Any, new: Any) -> None:
    assert lossless.rewrite(raw, raw, new) == new


@given(raw=JSON)
def test_no_change_changes_nothing(raw: Any) -> None:
    assert lossless.rewrite(raw, raw, raw) == raw


@given(
    known=st.dictionaries(st.sampled_from("abc"), JSON),
    unknown=st.dictionaries(st.sampled_from("xyz"), JSON),
    new=st.dictionaries(st.sampled_from("abc"), JSON),
)
def test_unknown_keys_always_survive(
    known: dict[str, Any], unknown: dict[str, Any], new: dict[str, Any]
) -> None:
    assert lossless.rewrite({**unknown, **known}, known, new) == {**unknown, **new}


@given(old=st.lists(JSON, max_size=6), new=st.lists(JSON, max_size=6))
def test_no_old_item_is_given_to_two_new_ones(old: list[Any], new: list[Any]) -> None:
    found = [at for at in lossless.pair(old, new) if at is not None]
    assert len(found) == len(set(found))


def test_copies_remember_too() -> None:
    thing = read()
    for made in (copy.copy(thing), copy.deepcopy(thing)):
        assert made == thing
        assert written(made) == NEWER
    made = copy.deepcopy(thing)
    made.spec.replicas = 7
    assert thing.spec.replicas == 2
    del thing
    gc.collect()
    assert written(made) == {**NEWER, "spec": {**NEWER["spec"], "replicas": 7}}  # type: ignore[dict-item]
