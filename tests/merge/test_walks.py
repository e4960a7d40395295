"""The walks over values, and the small parts around server-side apply."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.merge import json_patch, last_applied, merge_patch, scale, value
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.elements import in_order
from apimachinery.merge.errors import Conflicts, MergeError
from apimachinery.merge.fields_v1 import FieldsError, parse, path_text, sort
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.managed_fields import EntryError, decode
from apimachinery.merge.structs import StructType
from apimachinery.merge.typed import MergeType, extract_with_keys

LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
}
FIELDS = {
    "l": LIST,
    "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "a": {"type": "array", "items": {"type": "string"}},
    "o": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
    "m": {"type": "object", "additionalProperties": {"type": "string"}},
    "n": {"type": "integer"},
}
TYPE = custom_resource({"type": "object", "properties": FIELDS})


def of(name: str) -> MergeType:
    assert isinstance(TYPE, StructType)
    return TYPE.entries[name].type


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("abc", "abc", "abc"),
        ("abc", "b", "abc"),
        ("abc", "cba", "cba"),
        ("abc", "x", "abcx"),
        ("abc", "xa", "xabc"),
        ("abc", "xb", "axbc"),
        ("abc", "ac", "abc"),
        ("abc", "ca", "bca"),
        ("abcd", "db", "acdb"),
        ("ab", "bxa", "bxa"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("abc", "xyz", "abcxyz"),
        ("abcde", "xbydz", "axbcydez"),
        ("aab", "b", "aab"),
        ("aab", "a", "ab"),
        ("aab", "xa", "xab"),
    ],
)
def test_order_of_a_merged_list(live: str, applied: str, merged: str) -> None:
    """Items of both sides in the applied order; the others where they stood, relative to their own."""
    assert "".join(of("s").merge(list(live), list(applied))) == merged
    items = [[{"k": letter} for letter in word] for word in (live, applied)]
    assert "".join(item["k"] for item in of("l").merge(*items)) == merged


@pytest.mark.parametrize(
    ("fields", "left", "only"),
    [
        ({"f:n": {}}, {"n": None}, {"n": 1}),
        ({"f:o": {"f:x": {}}}, {"o": {"y": "2"}}, {"o": {"x": "1"}}),
        ({"f:o": {}}, {"o": None}, {"o": None}),
        ({"f:o": {"f:x": {}, "f:y": {}}}, {"o": ...}, {"o": {"x": "1", "y": "2"}}),
        ({"f:s": {'v:"a"': {}}}, {"s": ["b"]}, {"s": ["a"]}),
        ({"f:l": {'k:{"k":"p"}': {}}}, {"l": [{"k": "q", "v": 2}]}, {"l": [{"k": "p"}]}),
        (
            {"f:l": {'k:{"k":"p"}': {"f:v": {}}}},
            {"l": [{"k": "p"}, {"k": "q", "v": 2}]},
            {"l": [{"k": "p", "v": 1}]},
        ),
        ({"f:a": {}}, {"a": None}, {"a": ["x"]}),
        ({"f:m": {"f:j": {}}}, {"m": {"i": "1"}}, {"m": {"j": "2"}}),
    ],
)
def test_remove_and_extract(fields: dict[str, Any], left: dict[str, Any], only: dict[str, Any]) -> None:
    obj = {
        "n": 1,
        "o": {"x": "1", "y": "2"},
        "s": ["a", "b"],
        "l": [{"k": "p", "v": 1}, {"k": "q", "v": 2}],
        "a": ["x"],
        "m": {"i": "1", "j": "2"},
    }
    wanted = {**obj, **left}
    # None: the field is gone; an ellipsis: it is there, as null or empty, because all in it went.
    for keeps_empty, rest in ((False, None), (True, {})):
        gone = {key: rest if item is ... else item for key, item in wanted.items() if item is not None}
        assert TYPE.remove(obj, fields, keeps_empty=keeps_empty) == gone
    assert extract_with_keys(TYPE, obj, fields) == only


def test_elements_are_in_order() -> None:
    """Fields, keyed items, values, places; numbers as numbers and before texts."""
    wanted = [
        ".", "f:a", "f:b", 'k:{"name":"a"}', 'k:{"name":"a!"}', 'k:{"p":80,"q":"x"}', 'k:{"p":443}', "v:9", "v:10",
        'v:"a"', "i:9", "i:10",
    ]  # fmt: skip
    assert list(sort({element: {} for element in sorted(wanted)})) == wanted


def test_many_elements_are_in_the_same_order_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ('k:{"name":"%d"}', "v:%d", "i:%d", "f:%d"):
        elements = [kind % (number * 7 % 1000) for number in range(1000)]
        few = in_order(elements)
        with monkeypatch.context() as smaller:
            smaller.setattr("apimachinery.meta.sorting.SLICE", 64)
            smaller.setattr("apimachinery.merge.elements.SLICE", 64)
            assert in_order(elements) == few


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ({"x": {}}, "has no kind"),
        ({"name": {}}, "has no kind"),
        ({"k:{}": {}}, "at least one key"),
        ({"k:[1]": {}}, "at least one key"),
        ({"v:{": {}}, "is not JSON after its kind"),
        ({"i:x": {}}, "is not JSON after its kind"),
        ({"i:true": {}}, "must hold an index"),
        ({"f:a": 5}, "must be an object, not int64"),
        (5, "must be an object, not int64"),
    ],
)
def test_broken_fields(text: Any, fault: str) -> None:
    with pytest.raises(FieldsError, match=fault):
        parse(text)


def test_fields_nested_too_deep_are_refused() -> None:
    fields: dict[str, Any] = {}
    for _ in range(5000):
        fields = {"f:a": fields}
    with pytest.raises(FieldsError, match="deeper"):
        parse(fields)


def test_fields_are_read_into_normal_form() -> None:
    assert parse({'k:{"b": 1.0, "a":"x"}': {".": {}}, "z:later": {}, "f:n": None}) == {
        'k:{"a":"x","b":1}': {},
        "f:n": {},
    }
    assert path_text(("f:spec", 'k:{"a":"x","b":1}', 'v:"q\\""', "i:3")) == '.spec[a="x",b=1][="q\\""][3]'


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, "operation must be"),
        ({"operation": "Eat"}, "operation must be"),
        ({"operation": "Apply"}, "apiVersion must not be empty"),
        ({"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        ({"operation": "Apply", "apiVersion": "v1", "fieldsType": "X"}, "invalid fieldsType"),
    ],
)
def test_broken_entries(entry: dict[str, Any], fault: str) -> None:
    with pytest.raises(EntryError, match=fault):
        decode([entry])


def test_equality_knows_booleans_from_numbers() -> None:
    assert value.same({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not value.same({"a": [1]}, {"a": [True]})
    assert not value.same(0, False)
    assert value.same({"a": 1, "b": 2}, {"b": 2, "a": 1})


def test_values_have_a_total_order() -> None:
    ordered = [-1, 0, 0.5, 1, "", "a", False, True, [], [0], [0, 0], {}, {"a": 0}, {"a": 1}, {"b": 0}, None]
    for place, a in enumerate(ordered):
        assert [value.compare(a, b) for b in ordered] == [
            (place > other) - (place < other) for other in range(len(ordered))
        ]


OWN = FieldOwnership(api_version="e.com/v1", kind="Thing", type=TYPE)
THING = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}}


@pytest.mark.parametrize(
    ("applied", "fault"),
    [
        ({**THING, "kind": "Other"}, "invalid object type: e.com/v1, Kind=Other"),
        ({"kind": "Thing"}, "invalid object type: /, Kind=Thing"),
        ({**THING, "metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_what_may_not_be_applied(applied: dict[str, Any], fault: str) -> None:
    with pytest.raises(MergeError) as refused:
        OWN.apply(None, applied, "m", now="t")
    assert (refused.value.code, refused.value.reason, refused.value.message) == (400, "BadRequest", fault)


def test_identity_is_never_owned() -> None:
    metadata = {"name": "t", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}
    live = OWN.update(None, {**THING, "metadata": metadata}, "m", now="t")
    assert live["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}}
    }


def test_kubectl_takes_over_what_it_applied_client_side() -> None:
    text = '{"apiVersion":"e.com/v1","kind":"Thing","metadata":{"name":"t"},"n":1}'
    annotations = {last_applied.ANNOTATION: text}
    live = {**THING, "metadata": {"name": "t", "annotations": annotations}, "n": 1, "m": {"k": "theirs"}}
    live = OWN.update(None, live, "kubectl-client-side-apply", now="t1")
    with pytest.raises(Conflicts):
        OWN.apply(live, {**THING, "n": 2}, "someone", now="t2")
    with pytest.raises(Conflicts) as refused:
        OWN.apply(live, {**THING, "n": 2, "m": {"k": "ours"}}, "kubectl", now="t2")
    assert [conflict.path for conflict in refused.value.conflicts] == [".m.k"]
    new = OWN.apply(live, {**THING, "n": 2}, "kubectl", now="t2")
    assert new["n"] == 2
    followed = '{"apiVersion":"e.com/v1","kind":"Thing","metadata":{"name":"t"},"n":2}\n'
    assert new["metadata"]["annotations"][last_applied.ANNOTATION] == followed


def test_owners_go_to_the_scale_and_come_back() -> None:
    paths = {"e.com/v1": ("spec", "replicas"), "e.com/v2": ()}

    def entry(manager: str, operation: str, fields: Any, **more: str) -> dict[str, Any]:
        known = {
            "manager": manager,
            "operation": operation,
            "apiVersion": "e.com/v1",
            "fieldsType": "FieldsV1",
        }
        return {**known, "fieldsV1": fields, **more}

    parent = [
        entry("a", "Apply", {"f:spec": {"f:replicas": {}, "f:x": {}}}, time="2026-01-01T00:00:00Z"),
        entry("b", "Apply", {"f:spec": {"f:x": {}}}),
        entry("old", "Apply", {"f:spec": {}}, apiVersion="e.com/v0"),
    ]
    shown = scale.to_scale(parent, paths)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"]) for e in shown] == [
        ("a", "autoscaling/v1", {"f:spec": {"f:replicas": {}}})
    ]
    hpa = entry(
        "hpa", "Update", {"f:spec": {"f:replicas": {}}}, apiVersion="autoscaling/v1", subresource="scale"
    )
    folded = scale.to_parent(parent, [hpa], "e.com/v1", paths)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"]) for e in folded] == [
        ("b", "e.com/v1", {"f:spec": {"f:x": {}}}),
        ("a", "e.com/v1", {"f:spec": {"f:x": {}}}),
        ("hpa", "e.com/v1", {"f:spec": {"f:replicas": {}}}),
    ]
    assert scale.to_parent(parent[:2], shown, "e.com/v1", paths) == sorted(
        parent[:2], key=lambda e: e.get("time", "")
    )


def test_values_nested_too_deep_are_refused_or_passed_by() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"x": deep}
    free = custom_resource({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    own = FieldOwnership(api_version="e.com/v1", kind="Thing", type=free)
    with pytest.raises(MergeError, match="nested too deeply"):
        own.apply(None, {**THING, "free": deep}, "m", now="t")
    assert "managedFields" not in own.update(None, {**THING, "free": deep}, "m", now="t")["metadata"]
    with pytest.raises(MergeError, match="nested too deeply"):
        json_patch.apply({}, [{"op": "add", "path": "/a", "value": deep}])
    with pytest.raises(MergeError, match="nested too deeply"):
        merge_patch.apply({}, {"a": deep})
