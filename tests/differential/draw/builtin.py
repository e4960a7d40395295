"""Objects of built-in kinds with fields drawn from their definitions: defaults, validation, versions, updates."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BUILTIN, Kind
from tests.differential.draw.words import Dice, damaged, merged

# What makes one field of an object wrong is the point; a Node's or Namespace's own life is that of other areas.
_LEFT = {"Namespace", "Event", "APIService"}
_TEXTS = [
    "a",
    "b",
    "",
    "a.example.com",
    "10.0.0.1",
    "A b",
    "ClusterIP",
    "None",
    "Always",
    "TCP",
    "x/y",
    "é",
    "1Gi",
    "100m",
    "/path",
    "-1",
    "2024-01-02T03:04:05Z",
    "example.com/x",
    "http://a/b",
    "*",
]
_INTEGERS = [0, 1, 2, 80, 443, -1, 65535, 65536, 30000, 2**31 - 1]


@functools.cache
def _definitions() -> dict[str, Any]:
    import kubernetes_api

    found = json.loads((Path(kubernetes_api.__file__).parent / "definitions.json").read_text())
    return dict(found.get("definitions", found))


@functools.cache
def _roots() -> dict[tuple[str, str], str]:
    found = {}
    for name, each in _definitions().items():
        for kind in each.get("x-kubernetes-group-version-kind", ()):
            group, version = kind.get("group", ""), kind["version"]
            found[(f"{group}/{version}" if group else version, kind["kind"])] = name
    return found


def draw(dice: Dice, name: str) -> Conversation:
    """One kind, again and again with other fields."""
    kind = dice.one([k for k in BUILTIN if k.kind not in _LEFT])
    steps: list[Step] = []
    for number in range(dice.randint(8, 14)):
        name_of = f"a{number}" if dice.chance(0.8) and not kind.name else "a"
        body = {**kind.make(dice, name_of), "metadata": {"name": kind.named(name_of)}}
        body = _enriched(dice, kind, body)
        if dice.chance(0.3):
            body = damaged(dice, body, 1, keep=("apiVersion", "kind", "metadata"))
        step: Step = {"method": "POST", "path": kind.collection(), "body": body}
        if dice.chance(0.3) and steps:
            step = {
                "method": "PUT",
                "path": kind.item("a"),
                "body": {**body, "metadata": {"name": kind.named("a")}},
            }
        elif dice.chance(0.2):
            spec = {
                key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")
            }
            step = {
                "method": "PATCH",
                "path": kind.item("a"),
                "body": spec,
                "headers": {"Content-Type": words.PATCH_TYPES[dice.one(["merge", "strategic"])]},
            }
        elif kind.cluster:
            step["query"] = {"dryRun": "All"}
        if kind.cluster and step["method"] != "POST":
            step.setdefault("query", {})["dryRun"] = "All"
        steps.append(step)
    first = {**kind.make(dice, "a"), "metadata": {"name": kind.named("a")}}
    steps.insert(0, {"method": "POST", "path": kind.collection(), "body": first})
    accepts = [a for a in words.ACCEPTS if "Table" in a][:2]
    steps.append({"method": "GET", "path": kind.item("a"), "headers": {"Accept": dice.one(accepts)}})
    if kind.cluster:
        steps.append({"method": "DELETE", "path": kind.item("a")})
    return Conversation("builtin", name, steps)


def _enriched(dice: Dice, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    schema = definition_of(kind.api_version, kind.kind)
    if schema is None:
        return body
    for _ in range(dice.randint(1, 3)):
        body = merged(body, branch(dice, schema, body, 5, top=True))
    return body


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolved(_definitions()[schema["$ref"].rpartition("/")[2]])
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _resolved(schema["allOf"][0])
    return schema


def definition_of(api_version: str, kind: str) -> dict[str, Any] | None:
    """The schema of a built-in kind."""
    root = _roots().get((api_version, kind))
    return None if root is None else _definitions()[root]


def branch(dice: Dice, schema: dict[str, Any], present: Any, depth: int, top: bool = False) -> Any:
    """A value with one path of fields in it; lists that are there already keep their items."""
    schema = _resolved(schema)
    properties = schema.get("properties")
    if properties:
        names = [n for n in properties if not (top and n in ("apiVersion", "kind", "metadata", "status"))]
        if not names or depth <= 0:
            return {}
        name = dice.one(names)
        inner = present.get(name) if isinstance(present, dict) else None
        made = {name: branch(dice, properties[name], inner, depth - 1)}
        for required in schema.get("required", ()):
            if (
                required not in made
                and not (isinstance(present, dict) and required in present)
                and dice.chance(0.85)
                and not top
            ):
                made[required] = branch(dice, properties[required], None, depth - 1)
        return made
    return _leaf(dice, schema, present, depth)


def _leaf(dice: Dice, schema: dict[str, Any], present: Any, depth: int) -> Any:
    kind = schema.get("type")
    if kind == "array":
        items = [copy.deepcopy(each) for each in present] if isinstance(present, list) else []
        if items and dice.chance(0.7):
            number = dice.randrange(len(items))
            items[number] = merged(items[number], branch(dice, schema["items"], items[number], depth))
        else:
            items += [branch(dice, schema["items"], None, depth) for _ in range(dice.randint(0, 2))]
        return items
    if kind == "object":
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            return {
                dice.one(["a", "b", "cpu", "memory", "example.com/x", "storage", "pods"]): branch(
                    dice, extra, None, depth
                )
            }
        return {}
    if kind == "integer":
        return dice.one(_INTEGERS)
    if kind == "boolean":
        return dice.chance(0.5)
    if kind == "number":
        return 1.5
    if schema.get("enum"):
        return dice.one([*schema["enum"], "Other"])
    if schema.get("format") == "date-time":
        return dice.one(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.678901Z", "2024-01-02"])
    if schema.get("format") == "byte":
        return dice.one(["aGk=", "", "!!"])
    if "x-kubernetes-int-or-string" in schema or schema.get("format") == "int-or-string":
        return dice.one([80, "80%", "web", 0, -1, "101%", "x%"])
    return dice.one(_TEXTS)
