"""That diff means it: where it calls two schemas compatible, no object that one accepts is refused by the other.

Random pairs of schemas, each the other with some keywords changed, and random objects. What a server does with an
object (pruning, defaults, schema, CEL rules) is the judge. A pair with safe changes alone, or such that break readers
at most, must let through whatever passed before, as it was written and as it was stored.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.crd.check import check_crd
from apimachinery.crd.objects import validate_custom_resource
from apimachinery.schema.custom import compile_custom
from kubewright.tools.diff.automata import Undecided
from kubewright.tools.diff.change import Impact
from kubewright.tools.diff.patterns import counterexample
from kubewright.tools.diff.resources import compare
from tests.tools.test_diff import read

Schema = dict[str, Any]
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "a-b",
    "A",
    "1",
    "12",
    "-1",
    "a.b",
    "x" * 9,
    "2020-01-01T00:00:00Z",
    "10.0.0.1",
]
PATTERNS = [
    "^[a-z]*$",
    "^[a-z0-9]+$",
    "^a",
    "b$",
    "^(a|b)*$",
    "^[a-z]([-a-z]*[a-z])?$",
    "^.{0,3}$",
    "[0-9]",
    "^a?b?c?$",
]
RULES = [
    "has(self.a)",
    "!has(self.b)",
    "has(self.a) || has(self.b)",
    "has(self.a) && has(self.c)",
    "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1",
    "has(self.c) ? has(self.a) : true",
    "!has(self.c) || has(self.a)",
    "has(self.d) ? !has(self.a) : true",
]
LOGIC: list[Schema] = [
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {
        "oneOf": [
            {"required": ["a"]},
            {"required": ["b"]},
            {"not": {"anyOf": [{"required": [n]} for n in "ab"]}},
        ]
    },
    {"oneOf": [{"required": ["a"]}, {"not": {"required": ["a"]}}]},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"not": {"required": ["a", "b"]}},
    {"allOf": [{"not": {"required": ["d"]}}]},
    {},
]


class Maker:
    """Schemas, changes of them and objects, from one source of chance."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)

    def schema(self, depth: int) -> Schema:
        kinds = ["string", "integer", "number", "boolean", "any", "int-or-string"]
        kind = self.chance.choice(
            kinds + ["object", "object", "object", "array", "map"] * (2 if depth else 0)
        )
        if kind == "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        if kind == "int-or-string":
            return {"x-kubernetes-int-or-string": True}
        made: Schema = {"type": kind}
        if kind == "object":
            names = self.chance.sample("abcd", self.chance.randint(1, 4))
            made["properties"] = {name: self.schema(depth - 1) for name in names}
        elif kind == "array":
            made["items"] = self.schema(depth - 1)
        elif kind == "map":
            made = {"type": "object", "additionalProperties": self.schema(depth - 1)}
        for _ in range(2):
            self.limit(made)
        return made

    def limit(self, made: Schema) -> None:
        """Sets, changes or removes one keyword."""
        kind = made.get("type", "")
        for keyword in [k for k in LIMITS.get(kind, ()) if k in made and self.chance.random() < 0.3]:
            del made[keyword]
        choose = self.chance.choice
        if kind == "string":
            made |= choose(
                [
                    {"pattern": choose(PATTERNS)},
                    {"minLength": choose([0, 1, 2])},
                    {"maxLength": choose([1, 3, 9])},
                    {"enum": self.chance.sample(["a", "b", "ab", "1"], choose([1, 2, 3]))},
                    {"format": choose(["date-time", "ipv4", "made-up"])},
                ]
            )
        elif kind in ("integer", "number"):
            made |= choose(
                [
                    {"minimum": choose([-1, 0, 1, 0.5])},
                    {"maximum": choose([1, 5, 1.5]), "exclusiveMaximum": choose([True, False])},
                    {"multipleOf": choose([1, 2, 4])},
                    {"format": choose(["int32", "int64"])} if kind == "integer" else {"format": "double"},
                ]
            )
        elif kind == "array":
            made |= choose([{"minItems": choose([0, 1])}, {"maxItems": choose([1, 2, 5])}])
        elif "properties" in made:
            names = [*made["properties"]]
            made |= choose(
                [
                    {"required": self.chance.sample(names, 1)},
                    {"x-kubernetes-validations": [{"rule": choose(RULES), "message": "m"}]},
                    choose(LOGIC),
                    {"minProperties": choose([0, 1])},
                    {"maxProperties": choose([1, 2, 3])},
                    {"x-kubernetes-preserve-unknown-fields": True},
                ]
            )
        elif kind == "object":
            made |= choose([{"minProperties": 1}, {"maxProperties": choose([1, 2])}])

    def changed(self, schema: Schema) -> Schema:
        """The schema with a change or two somewhere."""
        new = copy.deepcopy(schema)
        places = [*_places(new)]
        for _ in range(self.chance.choice([1, 1, 2])):
            place = self.chance.choice(places)
            move = self.chance.random()
            properties = place.get("properties")
            if move < 0.6:
                self.limit(place)
            elif move < 0.7 and properties is not None:
                properties.setdefault(self.chance.choice("abcde"), self.schema(0))
            elif move < 0.8 and properties is not None and len(properties) > 1:
                name = self.chance.choice([*properties])
                place["required"] = [each for each in place.get("required", []) if each != name]
                del properties[name]
            elif move < 0.9 and place.get("type") in ("string", "integer"):
                place["default"] = self.chance.choice(["a", "ab"] if place["type"] == "string" else [1, 2])
            elif place.get("type") == "integer" and self.chance.random() < 0.5:
                place["type"] = "number"
                place.pop("format", None)
            else:
                place["nullable"] = not place.get("nullable", False)
        return new

    def value(self, schema: Schema) -> Any:
        """A value that fits the types of a schema."""
        choose = self.chance.choice
        if schema.get("nullable") and self.chance.random() < 0.2:
            return None
        if "enum" in schema and self.chance.random() < 0.8:
            return choose(schema["enum"])
        kind = schema.get("type")
        if "properties" in schema:
            keys = {
                *schema.get("required", ()),
                *(k for k in schema["properties"] if self.chance.random() < 0.5),
            }
            found = {
                key: self.value(schema["properties"][key]) for key in keys if key in schema["properties"]
            }
            extra = {"e": choose(TEXTS)} if self.chance.random() < 0.2 else {}
            return {**found, **extra}
        if kind == "object":
            return {key: self.value(schema["additionalProperties"]) for key in "xyz"[: choose([0, 1, 2, 3])]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(choose([0, 1, 2, 3]))]
        if kind == "integer":
            return choose([-1, 0, 1, 2, 4, 5, 6, 2**31])
        if kind == "number":
            return choose([-1, 0, 0.5, 1, 1.5, 2, 4.25])
        if kind == "boolean":
            return choose([True, False])
        return choose(TEXTS) if kind == "string" else choose([1, "a", "10%", 5])


LIMITS = {
    "string": ("pattern", "minLength", "maxLength", "enum", "format", "default"),
    "integer": ("minimum", "maximum", "exclusiveMaximum", "multipleOf", "format", "default"),
    "number": ("minimum", "maximum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
    "object": (
        *("required", "x-kubernetes-validations", "oneOf", "anyOf", "allOf", "not"),
        *("minProperties", "maxProperties", "x-kubernetes-preserve-unknown-fields"),
    ),
}


def _places(schema: Schema) -> Any:
    yield schema
    for part in [
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]:
        if isinstance(part, dict):
            yield from _places(part)


def crd(spec: Schema) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [version],
        },
        "status": {"storedVersions": ["v1"]},
    }


class Server:
    """What a server does with objects of a schema."""

    def __init__(self, manifest: dict[str, Any]):
        schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self.schema, self.rules = compile_custom(schema), compile_rules(schema)

    def stored(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """The object as it is stored, None where it is refused."""
        kept = copy.deepcopy(obj)
        self.schema.prune(kept)
        self.schema.default(kept)
        faults = validate_custom_resource(kept, None, self.schema, rules=self.rules, namespaced=False).faults
        return None if faults else kept


def examine(seed: int, folder: Path, objects: int = 25) -> bool | None:
    """Whether an object of the old schema is refused by the new one though nothing was told; None without a pair."""
    maker = Maker(seed)
    old = crd({"type": "object", "properties": {"a": maker.schema(2), "b": maker.schema(1)}})
    new = crd(maker.changed(old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]))
    if check_crd(copy.deepcopy(old)) or check_crd(copy.deepcopy(new)):
        return None
    states = [read(state, folder / f"{name}.yaml") for name, state in (("old", old), ("new", new))]
    changes = compare(states[0], states[1])
    if any(change.kind.impact in (Impact.BREAKS_STORED, Impact.BREAKS_WRITERS) for change in changes):
        return None
    before, after = Server(old), Server(new)
    spec = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for _ in range(objects):
        obj = {
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "x"},
            "spec": maker.value(spec),
        }
        written = copy.deepcopy(obj)
        before.schema.prune(written)
        stored = before.stored(obj)
        if stored is None:
            continue
        for form in (written, stored):
            told = [f"{c.kind.code} {c.path}: {c.message}" for c in changes]
            assert after.stored(form) is not None, json.dumps([old, new, form, told], default=str)
    return True


@given(st.integers(0, 2**32))
def test_no_object_is_refused_where_nothing_is_told(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("pair", numbered=True)
    for number in range(4):
        examine(seed * 4 + number, folder)


def test_enough_pairs_are_called_compatible(tmp_path: Path) -> None:
    assert sum(examine(seed, tmp_path, 1) is True for seed in range(60)) >= 12


def _pattern(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if depth == 0 or kind < 0.3:
        atoms = [
            "a",
            "b",
            ".",
            "[ab]",
            "[^a]",
            "-",
            r"\d",
            r"\.",
            "^",
            "$",
            "[a-c0]",
            r"\w",
            "[[:alpha:]]",
            "[]a-]",
        ]
        return chance.choice(atoms)
    if kind < 0.55:
        return _pattern(chance, depth - 1) + _pattern(chance, depth - 1)
    if kind < 0.8:
        return f"({_pattern(chance, depth - 1)}|{_pattern(chance, depth - 1)})"
    return f"(?:{_pattern(chance, depth - 1)}){chance.choice(['*', '+', '?', '{2}', '{1,3}', '{2,}', '*?'])}"


@given(st.integers(0, 2**32))
def test_inclusion_of_patterns_is_what_re2_finds(seed: int) -> None:
    chance = random.Random(seed)
    texts = ["".join(chance.choice("aAbBc0-.\n") for _ in range(chance.randint(0, 5))) for _ in range(60)]
    for _ in range(10):
        old, new = _pattern(chance, 3), _pattern(chance, 3)
        searched, wanted = re2.compile(old), re2.compile(new)
        found = counterexample((old,), new)
        if found is None:
            assert not [text for text in texts if searched.search(text) and not wanted.search(text)]
        else:
            assert searched.search(found) and not wanted.search(found)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"\ba", r"\b is not decided"),
        ("(?i)ä", "without case"),
        ("(?m)a", "(?m) is not decided"),
        (r"\p{L}", r"\p is not decided"),
        ("(.*a.{40})$", "too large"),
        ("((a{50}){50}){50}", "too large"),
    ],
)
def test_what_is_not_decided_is_said(pattern: str, why: str) -> None:
    with pytest.raises(Undecided) as raised:
        counterexample((pattern,), "(.*b.{40})$")
    assert why in str(raised.value)
