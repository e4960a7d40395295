"""The protobuf envelope: what goes in comes out, and bytes of any kind give an object or a fault."""

from __future__ import annotations

import contextlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire.json import DecodeFault
from apimachinery.wire.protobuf import MAGIC, Messages, ProtobufFault
from kubernetes_api.protobuf import FIELD_NUMBERS

SHARED = Path(__file__).parents[2] / "../shared/data/kubernetes-1.36/defaults-observed.yaml"


@cache
def messages() -> Messages:
    return fresh_messages()


def fresh_messages() -> Messages:
    definitions = json.loads(resources.files("kubernetes_api").joinpath("definitions.json").read_bytes())
    return Messages(definitions, FIELD_NUMBERS)


OBJECTS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "protobuf_objects.yaml").read_text(), yaml.CSafeLoader
)


@pytest.mark.parametrize("obj", OBJECTS, ids=[o["kind"] for o in OBJECTS])
def test_what_goes_in_comes_out(obj: dict[str, Any]) -> None:
    before = json.dumps(obj)
    assert messages().decode(messages().encode(obj)) == obj
    assert json.dumps(obj) == before


def test_a_map_of_no_json_name_is_left_alone_and_unknown_fields_are_dropped() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "nonsense": 1}
    assert messages().decode(messages().encode(obj)) == {k: v for k, v in obj.items() if k != "nonsense"}


def test_zero_values_that_were_sent_come_through_and_a_zero_time_is_null() -> None:
    # metadata { name: "x", namespace: "", creationTimestamp: {} } of a ConfigMap, as Go writes it
    inner = bytes.fromhex("0a070a01781a004200")
    envelope = (
        MAGIC + bytes.fromhex("0a0f0a0276311209436f6e6669674d6170") + b"\x12" + bytes([len(inner)]) + inner
    )
    value = messages().decode(envelope)
    assert value["metadata"] == {"name": "x", "namespace": "", "creationTimestamp": None}


def test_null_in_a_map_is_the_zero_value() -> None:
    status = {"disruptedPods": {"a": None}, "currentHealthy": 1}
    obj = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "a"},
        "status": status,
    }
    assert messages().decode(messages().encode(obj))["status"] == status


FAULTS = [
    ("nothing", b"", "empty data"),
    ("magic alone", MAGIC, "empty body"),
    (
        "JSON",
        b'{"a":1}',
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    ),
    ("cut short", MAGIC + bytes.fromhex("0a0f0a02763112"), "unexpected EOF"),
]


@pytest.mark.parametrize(("data", "text"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_are_worded_as_kube_apiserver_words_them(data: bytes, text: str) -> None:
    with pytest.raises(ProtobufFault) as caught:
        messages().decode(data)
    assert str(caught.value) == text


def test_a_message_nested_in_itself_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of 70 KB once cost 1.6 s: each of its 15,000 levels looked up the types of all fields."""
    fresh, looked_up = fresh_messages(), []
    type_of = fresh._types.type_of
    monkeypatch.setattr(fresh._types, "type_of", lambda schema: looked_up.append(1) or type_of(schema))
    fresh.encode({"apiVersion": "v1", "kind": "ConfigMap"})  # describes every message
    looked_up.clear()
    nested, tag = b"", bytes.fromhex("da01")  # field 27 of JSONSchemaProps: not
    for _ in range(500):
        nested = tag + _varint(len(nested)) + nested
    for number in (1, 4, 7, 2):  # schema, of a version, of the spec, of the CRD
        nested = bytes([number << 3 | 2]) + _varint(len(nested)) + nested
    types = b"\x0a\x17apiextensions.k8s.io/v1\x12\x18CustomResourceDefinition"
    with pytest.raises(DecodeFault):
        fresh.decode(MAGIC + b"\x0a" + _varint(len(types)) + types + b"\x12" + _varint(len(nested)) + nested)
    assert len(looked_up) < 200


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_a_kind_without_numbers_has_no_protobuf_form() -> None:
    assert not messages().covers("example.com/v1", "Thing")
    with pytest.raises(ProtobufFault, match=r"example\.com/v1 Thing has no protobuf form"):
        messages().encode({"apiVersion": "example.com/v1", "kind": "Thing"})


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_an_object_or_a_fault(data: bytes, enveloped: bool) -> None:
    head = MAGIC + bytes.fromhex("0a090a02763112035" + "06f64") + b"\x12" if enveloped else MAGIC
    with contextlib.suppress(DecodeFault):
        assert isinstance(messages().decode(head + data), dict)


@pytest.mark.parametrize("key", [b"sto\x9aage", b"\xff"])
def test_a_key_of_a_map_that_is_no_text_is_refused(key: bytes) -> None:
    """This was a 500: the library has no way to say such a key."""
    text = "~" * len(key)
    limits = {"limits": [{"type": "Container", "max": {text: "1"}}]}
    obj = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}, "spec": limits}
    encoded = messages().encode(obj)
    assert encoded.count(text.encode()) == 1 and messages().decode(encoded) == obj
    with pytest.raises(DecodeFault, match="a key of a map is not valid UTF-8"):
        messages().decode(encoded.replace(text.encode(), key))


def test_deep_nesting_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"properties": {"a": schema}}
    versions = [{"schema": {"openAPIV3Schema": schema}}]
    spec = {"group": "g", "names": {}, "scope": "Cluster", "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    with pytest.raises(DecodeFault):
        messages().decode(messages().encode(crd))


def test_a_watch_event_holds_an_envelope() -> None:
    event = {"type": "ADDED", "object": OBJECTS[0]}
    data = messages().encode_event(event)
    assert data.startswith(b"\n\x05ADDED\x12")
    assert messages().encode(OBJECTS[0]) in data


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the ../shared folder of recordings is absent")
def test_recorded_objects_survive() -> None:
    def without_nulls_and_type_meta(value: Any, top: bool = True) -> Any:
        if isinstance(value, dict):
            return {
                k: without_nulls_and_type_meta(v, False)
                for k, v in value.items()
                if v is not None and (top or k not in ("apiVersion", "kind") or "metadata" not in value)
            }
        return [without_nulls_and_type_meta(v, False) for v in value] if isinstance(value, list) else value

    count = 0
    for document in yaml.load_all(SHARED.read_text(), yaml.CSafeLoader):
        for obj in (document["sent"], document["answered"]):
            read = messages().decode(messages().encode(obj))
            assert without_nulls_and_type_meta(read) == without_nulls_and_type_meta(obj)
            count += 1
    assert count == 92


def test_the_library_agrees_that_the_envelope_is_a_message() -> None:
    envelope = messages()._types.new("Unknown")
    envelope.ParseFromString(messages().encode(OBJECTS[0])[len(MAGIC) :])
    assert json_format.MessageToDict(envelope)["typeMeta"] == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_maps_are_written_in_the_order_of_their_keys_where_one_begins_with_another() -> None:
    labels = {"app.kubernetes.io/name": "b", "app": "a", "ap": "", "zone": "c"}
    data = {"a.b": "1", "a": "2"}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "labels": labels}, "data": data}
    encoded = messages().encode(obj)
    places = [encoded.index(f"\n{chr(len(key))}{key}".encode()) for key in sorted(labels)]
    assert places == sorted(places)
    assert messages().decode(encoded) == obj


def test_threads_that_use_a_kind_for_the_first_time_at_once_see_all_its_fields() -> None:
    """A table of fields was shown to other threads before it was whole: what they wrote and read had fewer."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"b": "c"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n", "priority": 3},
        "status": {"phase": "Running"},
    }
    wanted = messages().encode(pod)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(4):
            fresh = fresh_messages()
            assert fresh.encode({"apiVersion": "v1", "kind": "Namespace"})  # the pool is there
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(lambda _, fresh=fresh: fresh.encode(pod), range(8), timeout=60))
            assert found == [wanted] * 8
    finally:
        sys.setswitchinterval(interval)
