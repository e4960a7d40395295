"""What a user sets is sent, what nobody sets is not: random objects of random CRDs, whose server has other defaults.

A package is generated from one release of a CRD, the server runs the next, whose defaults differ. Each value of an
object must be stored as it was written: when the object was made by its constructor, was read as JSON or as YAML, and
when it replaces a stored one.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
import yaml
from tests.crds import crd_text

from apimachinery.client.calls import typed_codec
from apimachinery.schema.custom import compile_custom
from kubewright.config import Package, PathSource
from kubewright.pipeline import build

Json = Any
WANTED = int(os.environ.get("KUBEWRIGHT_VALUES", "3000"))
"""How many values are written; 100,000 and more by hand."""
WORDS = ["a", "b", "*", "", "On", "Off", "ü", "None", "null", "1", "2026-01-02T03:04:05Z"]
INTEGERS = [0, 1, 3, -1, 26, 255, 2**31, 2**53 + 1]
NUMBERS = [0, 1, 0.5, -2, 2**53 + 1, 1.5e20]  # kubectl reads 1.0 of YAML as 1, so it is not the same bytes


class Draw:
    """Schemas and values that fit them, from one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def schema(self, depth: int) -> Json:
        shape = self.dice.choice(["struct", "struct", "list", "map", *["leaf"] * 5] if depth else ["leaf"])
        if shape == "struct":
            made = self.struct(depth - 1)
        elif shape == "list":
            made = {"type": "array", "items": self.schema(depth - 1)}
        elif shape == "map":
            made = {"type": "object", "additionalProperties": self.schema(depth - 1)}
        else:
            leaves: list[dict[str, Json]] = [
                {"type": "string"},
                {"type": "string", "enum": ["On", "Off", "*"]},
                {"type": "string", "format": "date-time"},
                {"type": "integer"},
                {"type": "number"},
                {"type": "boolean"},
                {"x-kubernetes-int-or-string": True},
                {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            ]
            made = self.dice.choice(leaves).copy()
        if self.dice.random() < 0.2:
            made["nullable"] = True
        return made

    def struct(self, depth: int) -> Json:
        names = self.dice.sample(
            ["a", "b", "c", "class", "fooBar", "from", "$ref", "items"], self.dice.randint(1, 6)
        )
        properties = {name: self.schema(depth) for name in names}
        required = [name for name in names if self.dice.random() < 0.3]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def with_defaults(self, schema: Json) -> Json:
        """``schema`` with a default for half of its fields."""
        made = deepcopy(schema)
        for child in made.get("properties", {}).values():
            child.update(self.with_defaults(child))
            if self.dice.random() < 0.5:
                child["default"] = self.value(child)
                if child["default"] is None:
                    del child["default"]
        for key in ("items", "additionalProperties"):
            if isinstance(made.get(key), dict):
                made[key] = self.with_defaults(made[key])
        return made

    def value(self, schema: Json) -> Json:
        dice = self.dice
        if schema.get("nullable") and dice.random() < 0.3:
            return None
        if "default" in schema and dice.random() < 0.3:
            return deepcopy(schema["default"])
        if "enum" in schema:
            return dice.choice(schema["enum"])
        if "properties" in schema:
            return {
                name: self.value(child)
                for name, child in schema["properties"].items()
                if name in schema.get("required", ()) or dice.random() < 0.6
            }
        if "items" in schema:
            return [self.value(schema["items"]) for _ in range(dice.randint(0, 3))]
        if "additionalProperties" in schema:
            return {
                key: self.value(schema["additionalProperties"])
                for key in dice.sample("pqr", dice.randint(0, 2))
            }
        if schema.get("format") == "date-time":
            return f"20{dice.randint(10, 30)}-01-02T03:04:05{dice.choice(['', '.123456'])}Z"
        kind = schema.get("type")
        if kind == "object":
            return {"free": dice.choice([None, 1, [1, True, 1.5], [True, 1, 1.5], {"a": [1]}, {"a": [True]}])}
        if kind is None:
            return dice.choice([dice.choice(INTEGERS), dice.choice(["25%", "", "*"])])
        words: dict[str, list[Json]] = {"string": WORDS, "integer": INTEGERS, "number": NUMBERS}
        return dice.choice(words.get(kind, [True, False]))


def constructed(annotation: Any, value: Json, dice: random.Random) -> Any:
    """``value`` as a user writes it: by constructors, with texts from literals and texts made at run time."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    for member in members:
        if isinstance(value, dict) and isinstance(member, type) and issubclass(member, msgspec.Struct):
            by_name = {field.encode_name: field for field in msgspec.structs.fields(member)}
            return member(
                **{
                    by_name[key].name: constructed(by_name[key].type, inner, dice)
                    for key, inner in value.items()
                }
            )
        if isinstance(value, list) and get_origin(member) is list:
            return [constructed(get_args(member)[0], item, dice) for item in value]
        if isinstance(value, dict) and get_origin(member) is dict:
            return {key: constructed(get_args(member)[1], inner, dice) for key, inner in value.items()}
        if member is datetime and isinstance(value, str):
            return datetime.fromisoformat(value)
    return "".join(list(value)) if isinstance(value, str) and dice.random() < 0.5 else value


def lost(sent: Json, stored: Json, place: str = "") -> Iterator[str]:
    """The places of values that were sent and are not stored as they were."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key not in stored:
                yield f"{place}.{key}: {value!r}"
            else:
                yield from lost(value, stored[key], f"{place}.{key}")
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for index, value in enumerate(sent):
            yield from lost(value, stored[index], f"{place}[{index}]")
    elif sent != stored or isinstance(sent, bool) != isinstance(stored, bool):
        yield f"{place}: {sent!r} became {stored!r}"


def count(value: Json) -> int:
    """How many values are in ``value``."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


def generated(folder: Path, name: str, spec: Json) -> ModuleType:
    """The package of a CRD, imported."""
    (folder / f"{name}.json").write_text(crd_text("Thing", json.dumps(spec)))
    built = build(Package(name=name, sources=(PathSource(folder / f"{name}.json"),)), folder)
    assert not built.diagnostics.has_errors, list(built.diagnostics)
    for path, content in built.tree.files.items():
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    importlib.invalidate_caches()
    return importlib.import_module(f"{name}.example_v1")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("things_")]:
        del sys.modules[name]


def test_no_value_that_a_user_sets_is_lost(folder: Path) -> None:
    written = seed = 0
    while written < WANTED:
        seed += 1
        draw = Draw(seed)
        shape = draw.struct(3)
        spec, newer = draw.with_defaults(shape), draw.with_defaults(shape)
        models = generated(folder, f"things_{seed}", spec)
        server = json.loads(crd_text("Thing", json.dumps(newer)))["spec"]["versions"][0]["schema"]
        schema = compile_custom(server["openAPIV3Schema"])
        scheme = importlib.import_module(f"things_{seed}.scheme").SCHEME
        codec = typed_codec(models.Thing)
        before: bytes | None = None
        for _ in range(20):
            obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}, "spec": draw.value(spec)}
            made = constructed(models.Thing, obj, draw.dice)
            raw = msgspec.json.encode(obj)
            forms = {
                "constructor": scheme.encode(made),
                "client": codec.encode(made),
                "json": scheme.encode(scheme.decode(raw)),
                "yaml": scheme.encode(scheme.decode_yaml(yaml.safe_dump(obj, sort_keys=False))),
                "read": codec.encode(codec.decode(raw)),
            }
            if before is not None:
                replaced = codec.decode(before)
                replaced.spec = made.spec
                forms["replace"] = codec.encode(replaced)
            for form, content in forms.items():
                stored = json.loads(content)
                schema.default(stored)
                faults = list(lost(obj, stored))
                assert not faults, (seed, form, faults)
                written += count(obj["spec"])
            forms.pop("replace", None)  # in the order of the object it replaces
            assert len(set(forms.values())) == 1, (seed, forms)
            before = json.dumps(stored).encode()
