"""Random structural schemas with every marker, and values that fit them, or do not."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.draw.words import Dice

Schema = dict[str, Any]

_FIELDS = [
    "name",
    "size",
    "kindOf",
    "items",
    "mode",
    "x",
    "y-z",
    "data",
    "count",
    "ref",
    "path",
    "__init__",
    "with.dot",
]
_FORMATS = [
    "date-time",
    "date",
    "email",
    "ipv4",
    "ipv6",
    "cidr",
    "uri",
    "hostname",
    "byte",
    "uuid",
    "duration",
    "mac",
    "password",
    "unknown-format",
    "uuid4",
    "creditcard",
    "isbn",
    "hexcolor",
    "ssn",
    "int32",
    "k8s-short-name",
    "k8s-long-name",
    "bsonobjectid",
    "rgbcolor",
    "datetime",
]
_PATTERNS = ["^a", "^[a-z]*$", "[0-9]+", "^.{2,}$", "a|b", "^(?i)x", "\\d{2}"]
_STRINGS = [
    "",
    "a",
    "b",
    "abc",
    "12",
    "2024-01-02T03:04:05Z",
    "2024-01-02",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "a@b.cc",
    "http://x/y",
    "x.example.com",
    "aGk=",
    "5m",
    "é",
    "A",
    "a b",
    "00:11:22:33:44:55",
    "123e4567-e89b-12d3-a456-426614174000",
    "80%",
    "x" * 20,
    "#fff",
    "true",
    "1",
    "null",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.5+02:00",
    "-1",
    "1e3",
]
_INTEGERS = [0, 1, 2, 5, 7, 10, 100, -1, -5, 2**31, 2**31 - 1, 2**53, 2**63 - 1]
_NUMBERS = [0.5, 1.5, 2, -0.25, 1e3, 3.0, 1e21, 0.1, 10, 1e-7, 2**63, 1e6, 123456789.5, -0.0]
# A default must pass these; one is drawn only where there are none.
_CHECKS = {
    "required",
    "enum",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-validations",
    "anyOf",
    "oneOf",
    "allOf",
    "x-kubernetes-list-map-keys",
}
_RULES = {
    "string": ["size(self) < 10", "self != 'b'", "self.startsWith('a')", "self == oldSelf", "self.matches('^[a-z]+$')", "self in ['a','b','abc']"],
    "integer": ["self < 50", "self % 2 == 0", "self >= oldSelf", "self > 0 && self < 200", "10 / self > 0"],
    "number": ["self < 50.0", "self >= 0.0", "self > double(-1)"],
    "boolean": ["self", "!self || true", "self == oldSelf"],
    "array": ["size(self) < 3", "self.size() > 0", "self.all(x, x == x)", "self.exists(x, true)"],
    "object": ["true", "1 == 1", "self == oldSelf"],
}  # fmt: skip


def root(dice: Dice, depth: int = 3, checks: float = 0.3, defaults: float = 0.2) -> Schema:
    """A schema of a whole custom resource."""
    found: Schema = {"type": "object", "properties": {"spec": _object(dice, depth, checks, defaults)}}
    if dice.chance(0.5):
        found["properties"]["status"] = _object(dice, max(1, depth - 1), checks, 0.0)
    if dice.chance(0.15):
        found["properties"]["top"] = schema(dice, 1, checks, defaults)
    if dice.chance(0.1):
        found["required"] = ["spec"]
    if dice.chance(0.08):
        found["x-kubernetes-preserve-unknown-fields"] = True
    if dice.chance(0.05):
        found["properties"]["metadata"] = {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 10}},
        }
    return found


def schema(dice: Dice, depth: int, checks: float, defaults: float) -> Schema:
    """Any schema, at most ``depth`` deep."""
    leaves = ["string", "string", "integer", "number", "boolean", "int-or-string", "any"]
    kinds = leaves if depth <= 0 else [*leaves, "object", "object", "map", "list", "list", "list", "embedded"]
    kind = dice.one(kinds)
    found: Schema
    if kind == "object":
        found = _object(dice, depth, checks, defaults)
    elif kind == "map":
        found = {"type": "object", "additionalProperties": schema(dice, depth - 1, checks, defaults)}
        if dice.chance(0.3):
            found["x-kubernetes-map-type"] = dice.one(["atomic", "granular"])
        _limit(dice, found, checks, ["maxProperties", "minProperties"])
    elif kind == "list":
        found = _list(dice, depth, checks, defaults)
    elif kind == "embedded":
        found = {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    elif kind == "int-or-string":
        found = {"x-kubernetes-int-or-string": True}
    elif kind == "any":
        found = {"x-kubernetes-preserve-unknown-fields": True}
        if dice.chance(0.5):
            found["type"] = "object"
    else:
        found = _scalar(dice, kind, checks)
    if dice.chance(0.12):
        found["nullable"] = True
    if (
        dice.chance(defaults)
        and kind != "embedded"
        and not any(_CHECKS & each.keys() for each in walk(found))
    ):
        default = value(dice, found, wrong=0.0)
        if default is not None or found.get("nullable"):
            found["default"] = default
    if (
        dice.chance(checks / 3)
        and found.get("type") in _RULES
        and not any("default" in each for each in walk(found))
    ):
        found["x-kubernetes-validations"] = [_rule(dice, found) for _ in range(dice.randint(1, 2))]
    if dice.chance(checks / 6) and found.get("type") in ("string", "integer"):
        word, limit = ("minLength", 2) if found["type"] == "string" else ("minimum", 1)
        found[dice.one(["anyOf", "oneOf", "allOf"])] = [{word: limit}, {"enum": ["a", 5]}]
    if dice.chance(0.1):
        found["description"] = "a field"
    return found


def _rule(dice: Dice, found: Schema) -> Schema:
    rule: Schema = {"rule": dice.one(_RULES[found["type"]])}
    if dice.chance(0.4):
        rule["message"] = "must be as the rule says"
    if dice.chance(0.2):
        rule["messageExpression"] = dice.one(["'is ' + string(1)", "''", "'bad value'"])
    if dice.chance(0.2):
        rule["reason"] = dice.one(
            ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
        )
    if dice.chance(0.1) and "oldSelf" in rule["rule"]:
        rule["optionalOldSelf"] = False
    return rule


def _limit(dice: Dice, found: Schema, checks: float, words: list[str]) -> None:
    for word in words:
        if dice.chance(checks / 2):
            found[word] = dice.randint(2, 4) if word.startswith("max") else dice.randint(0, 2)


def _scalar(dice: Dice, kind: str, checks: float) -> Schema:
    found: Schema = {"type": kind}
    if not dice.chance(checks):
        return found
    if kind == "string":
        roll = dice.randrange(5)
        if roll == 0:
            found["enum"] = dice.some(["a", "b", "abc", ""], 1, 3)
        elif roll == 1:
            found["pattern"] = dice.one(_PATTERNS)
        elif roll in (2, 3):
            found["format"] = dice.one(_FORMATS)
        else:
            _limit(dice, found, 1.5, ["maxLength", "minLength"])
    elif kind in ("integer", "number"):
        roll = dice.randrange(4)
        if roll == 0:
            found["enum"] = [1, 2, 5]
        elif roll == 1:
            found["minimum" if dice.chance(0.5) else "maximum"] = dice.one([0, 1, 5, 10])
            if dice.chance(0.3):
                found["exclusiveMinimum" if "minimum" in found else "exclusiveMaximum"] = True
        elif roll == 2:
            found["multipleOf"] = dice.one([2, 5, 0.5] if kind == "number" else [2, 5])
        else:
            found["format"] = dice.one(["int32", "int64"] if kind == "integer" else ["float", "double"])
    return found


def _object(dice: Dice, depth: int, checks: float, defaults: float) -> Schema:
    names = dice.some(_FIELDS, 1, 4)
    found: Schema = {
        "type": "object",
        "properties": {name: schema(dice, depth - 1, checks, defaults) for name in names},
    }
    if dice.chance(checks / 2):
        found["required"] = dice.some(names, 1, 2)
    if dice.chance(0.08):
        found["x-kubernetes-preserve-unknown-fields"] = True
    if dice.chance(0.1):
        found["x-kubernetes-map-type"] = dice.one(["atomic", "granular"])
    return found


def _list(dice: Dice, depth: int, checks: float, defaults: float) -> Schema:
    how = dice.one(["", "atomic", "set", "map", "map"])
    if how == "map":
        keys = dice.some(["name", "port"], 1, 2)
        properties: Schema = {"name": {"type": "string"}, "port": {"type": "integer"}}
        for name in dice.some(["size", "data", "mode"], 1, 2):
            properties[name] = schema(dice, depth - 2, checks, defaults)
        items: Schema = {"type": "object", "properties": properties, "required": list(keys)}
        if len(keys) == 2 and dice.chance(0.4):
            properties["port"]["default"] = 80
            items["required"] = ["name"]
        found: Schema = {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        }
    elif how == "set":
        found = {
            "type": "array",
            "items": {"type": dice.one(["string", "integer", "boolean", "number"])},
            "x-kubernetes-list-type": "set",
        }
    else:
        found = {"type": "array", "items": schema(dice, depth - 1, checks, defaults)}
        if how:
            found["x-kubernetes-list-type"] = how
    _limit(dice, found, checks, ["maxItems", "minItems"])
    return found


def retype(dice: Dice, found: Schema) -> None:
    """Changes what lists and maps of a schema are, in place: the topology of another version."""
    for each in walk(found):
        if each.get("type") == "array" and dice.chance(0.5):
            if each.get("x-kubernetes-list-type") in ("set", "map"):
                each["x-kubernetes-list-type"] = "atomic"
                each.pop("x-kubernetes-list-map-keys", None)
        elif each.get("type") == "object" and "x-kubernetes-map-type" in each and dice.chance(0.5):
            each["x-kubernetes-map-type"] = (
                "granular" if each["x-kubernetes-map-type"] == "atomic" else "atomic"
            )


def bound(found: Schema) -> None:
    """Gives everything an upper bound, in place, so that no rule is estimated too dear."""
    for each in walk(found):
        if each.get("type") == "array":
            each.setdefault("maxItems", 5)
        elif each.get("type") == "string" and "enum" not in each:
            each.setdefault("maxLength", 100)
        elif "additionalProperties" in each:
            each.setdefault("maxProperties", 5)


def walk(found: Schema) -> list[Schema]:
    """A schema and all below it."""
    all_of = [found]
    for each in found.get("properties", {}).values():
        all_of += walk(each)
    for word in ("items", "additionalProperties"):
        if isinstance(found.get(word), dict):
            all_of += walk(found[word])
    return all_of


_ANY: list[Any] = [
    1,
    "x",
    True,
    1.5,
    [1, "a"],
    {"k": {"l": 1}},
    {},
    [],
    [{"a": None}],
    "",
    0,
    {"a": [1, {"b": 2}]},
]


def value(dice: Dice, found: Schema, wrong: float = 0.1, sparse: float = 0.35) -> Any:
    """A value of a schema; ``wrong`` is how often a part does not fit, ``sparse`` how often a field is left out."""
    if dice.chance(wrong):
        return copy.deepcopy(dice.one([None, None, *_ANY]))
    if found.get("nullable") and dice.chance(0.2):
        return None
    if "enum" in found and not dice.chance(wrong):
        return copy.deepcopy(dice.one(found["enum"]))
    if found.get("x-kubernetes-int-or-string"):
        return dice.one([80, "80%", "web", 0])
    kind = found.get("type")
    if found.get("x-kubernetes-embedded-resource"):
        return {
            "apiVersion": dice.one(["v1", "apps/v1", "example.com/v1"]),
            "kind": dice.one(["ConfigMap", "Pod", "Other"]),
            "metadata": dice.one(
                [{"name": "e"}, {}, {"name": "e", "labels": {"a": "b"}}, {"name": "e", "unknown": 1}]
            ),
            **dice.one([{}, {"spec": {"a": 1}}]),
        }
    if kind == "object" and ("properties" in found or "additionalProperties" in found):
        return _object_value(dice, found, wrong, sparse)
    if kind == "array":
        return _list_value(dice, found, wrong, sparse)
    if kind == "string":
        return _string(dice, found)
    if kind == "integer":
        return dice.one(_INTEGERS[:8] if dice.chance(0.9) else _INTEGERS)
    if kind == "number":
        return dice.one(_NUMBERS)
    if kind == "boolean":
        return dice.chance(0.5)
    options = [each for each in _ANY if isinstance(each, dict)] if kind == "object" else _ANY
    return copy.deepcopy(dice.one(options))


def _string(dice: Dice, found: Schema) -> str:
    if found.get("format") == "byte":
        return dice.one(["aGk=", "", "!", "aGk"])
    if found.get("format") and dice.chance(0.5):
        return dice.one(_STRINGS)
    return dice.one(_STRINGS[:5] if dice.chance(0.6) else _STRINGS)


def _object_value(dice: Dice, found: Schema, wrong: float, sparse: float) -> Any:
    made: dict[str, Any] = {}
    required = found.get("required", ())
    for name, each in found.get("properties", {}).items():
        if (name in required and not dice.chance(wrong)) or not dice.chance(sparse):
            made[name] = value(dice, each, wrong, sparse)
    extra = found.get("additionalProperties")
    if isinstance(extra, dict):
        for name in dice.some(["k1", "k2", "k.3", "k/4"], 0, 3):
            made[name] = value(dice, extra, wrong, sparse)
    elif dice.chance(0.06):
        made[dice.one(["extra", "unknown", "Spec"])] = copy.deepcopy(dice.one(_ANY))
    return made


def _list_value(dice: Dice, found: Schema, wrong: float, sparse: float) -> Any:
    made = [value(dice, found["items"], wrong / 2, sparse) for _ in range(dice.randint(0, 3))]
    how = found.get("x-kubernetes-list-type")
    if how in ("set", "map") and not dice.chance(wrong):
        keys = found.get("x-kubernetes-list-map-keys")
        seen, kept = [], []
        for each in made:
            key = [each.get(k) for k in keys] if keys and isinstance(each, dict) else each
            if key not in seen:
                seen.append(key)
                kept.append(each)
        return kept
    return made
