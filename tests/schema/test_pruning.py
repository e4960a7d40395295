"""Where ``x-kubernetes-preserve-unknown-fields`` reaches to, as a kube-apiserver v1.36 answers."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.schema.custom import compile_custom

KEEP = {"x-kubernetes-preserve-unknown-fields": True}
ITEM = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "in": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}
VALUE = {"a": "1", "z": 1, "in": {"q": "1", "w": 2}}
KEPT = {"a": "1", "z": 1, "in": {"q": "1"}}
PRUNED = {"a": "1", "in": {"q": "1"}}


@pytest.mark.parametrize(
    ("schema", "sent", "stored"),
    [
        ({"type": "array", **KEEP, "items": ITEM}, [VALUE], [KEPT]),
        ({"type": "array", **KEEP, "items": {"type": "array", "items": ITEM}}, [[VALUE]], [[KEPT]]),
        ({"type": "array", "items": ITEM}, [VALUE], [PRUNED]),
        ({"type": "object", **KEEP, "additionalProperties": ITEM}, {"k": VALUE}, {"k": PRUNED}),
        ({**ITEM, **KEEP}, VALUE, KEPT),
        (KEEP, [VALUE], [VALUE]),
    ],
    ids=["array", "array of arrays", "array without", "map", "object", "anything"],
)
def test_what_is_kept(schema: Any, sent: Any, stored: Any) -> None:
    compiled = compile_custom({"type": "object", "properties": {"spec": schema}})
    value = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": _copied(sent)}
    assert compiled.unknown_fields(value) == ([] if sent == stored else _unknown(schema, sent))
    compiled.prune(value)
    assert value["spec"] == stored


def _unknown(schema: Any, sent: Any) -> list[str]:
    other = compile_custom({"type": "object", "properties": {"spec": schema}})
    return other.prune({"metadata": {"name": "a"}, "spec": _copied(sent)})


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
