"""Objects in messages have the order of their Go structs: by protobuf number, but for the fields that moved."""

from __future__ import annotations

from typing import Any

from apimachinery.schema.struct_order import StructOrder
from kubernetes_api import go_types

DEFINITIONS: dict[str, Any] = {
    "x.Thing": {
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"allOf": [{"$ref": "#/definitions/x.Spec"}]},
            "labels": {"additionalProperties": {"$ref": "#/definitions/x.Spec"}},
            "specs": {"items": {"$ref": "#/definitions/x.Spec"}},
        }
    },
    "x.Spec": {"properties": {name: {"type": "integer"} for name in "abcd"}},
}
NUMBERS: dict[str, Any] = {
    "x.Thing": {"metadata": 1, "spec": 2, "labels": 3, "specs": 4},
    "x.Spec": {"d": 1, "c": 3, "a": (2, {"b": 2, "a": 1})},
}


def keys(value: Any) -> list[str]:
    return [*value]


def test_by_number_embedded_structs_in_their_place_unknown_fields_last() -> None:
    order = StructOrder(DEFINITIONS, NUMBERS, {})
    assert keys(order.ordered({"y": 0, "x": 0, "a": 1, "b": 2, "c": 3, "d": 4}, "x.Spec")) == [*"dabcxy"]


def test_moved_fields_follow_another_or_come_first() -> None:
    spec = {"a": 1, "b": 2, "c": 3, "d": 4}
    assert keys(StructOrder(DEFINITIONS, NUMBERS, {"x.Spec": {"c": "d"}}).ordered(spec, "x.Spec")) == [
        *"dcab"
    ]
    assert keys(
        StructOrder(DEFINITIONS, NUMBERS, {"x.Spec": {"c": "", "b": "c"}}).ordered(spec, "x.Spec")
    ) == [*"cbda"]
    assert keys(StructOrder(DEFINITIONS, NUMBERS, {"x.Spec": {"c": "gone"}}).ordered(spec, "x.Spec")) == [
        *"dabc"
    ]


def test_everything_below_is_in_order_and_the_given_object_is_left_alone() -> None:
    spec = {"a": 1, "d": 2}
    given = {"specs": [spec], "labels": {"z": spec, "k": spec}, "spec": spec, "metadata": {}, "kind": "Thing"}
    shown = StructOrder(DEFINITIONS, NUMBERS, {}).ordered(given, "x.Thing")
    assert keys(shown) == ["kind", "metadata", "spec", "labels", "specs"]
    assert keys(shown["labels"]) == ["k", "z"]
    assert all(keys(each) == ["d", "a"] for each in (shown["spec"], shown["specs"][0], shown["labels"]["k"]))
    assert keys(given)[0] == "specs" and keys(spec) == ["a", "d"]


def test_every_moved_field_is_one_of_its_definition() -> None:
    from kubernetes_api import protobuf

    wrong = [
        (definition, name)
        for definition, moves in go_types.MOVED.items()
        if definition in protobuf.FIELD_NUMBERS
        for pair in moves.items()
        for name in pair
        if name and name not in _names(protobuf.FIELD_NUMBERS[definition])
    ]
    assert wrong == []


def _names(numbers: Any) -> set[str]:
    return {*numbers}.union(*({*entry[1]} for entry in numbers.values() if isinstance(entry, tuple)))
