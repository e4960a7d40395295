"""Objects drawn from the schema of a CRD, most of them valid; and the same with one thing wrong."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apimachinery.wire.yaml import decode_all

PUBLIC = Path(__file__).parents[3] / ".." / "shared" / "data" / "crds"
_TEXTS = (
    "a", "abc", "web-1", "example.com", "1h30m", "5m", "10", "10Gi", "100m", "A", "a/b", "/", "http://a.example/b",
    "https://a.example", "2024-05-06T07:08:09Z", "sha256:0a", "10.0.0.1", "10.0.0.0/8", "*.example.com", "v1", "True",
    "Ready", "0", "-1", "a.b.c/d", "aa-bb.example.com", "team@example.com", "arn:aws:iam::1:role/x", "#x", "==", "",
)  # fmt: skip
_FORMATTED = {"date-time": "2024-05-06T07:08:09Z", "byte": "aGk="}
_WRONG = (None, 5, -7, 1.5, True, "", "wrong thing!", [], ["x"], {}, {"unheard": 1}, "é" * 300)


def schemas(crd: Any) -> Iterator[tuple[str, str, Any]]:
    """apiVersion, kind and schema of each version."""
    spec = crd["spec"]
    for version in spec["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        yield f"{spec['group']}/{version['name']}", spec["names"]["kind"], schema


def definitions(folder: Path) -> list[Any]:
    """The CRDs in the files of a folder."""
    return [
        each
        for path in sorted(folder.rglob("*.yaml"))
        for each in decode_all(path.read_bytes())  # as servers read YAML: `=` is a text
        if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition"
    ]


def public_crds() -> list[Any]:
    """Those at hand; none where there are none."""
    return definitions(PUBLIC)


class Drawing:
    """Draws objects; equal seeds draw equal ones."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))

    def object(self, api_version: str, kind: str, schema: Any) -> dict[str, Any]:
        """A whole object."""
        drawn = self.value(schema)
        head = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "drawn"}}
        return {**(drawn if isinstance(drawn, dict) else {}), **head}

    def spoilt(self, drawn: dict[str, Any]) -> dict[str, Any]:
        """``drawn`` with something else in one place, added or taken away."""
        spoilt = copy.deepcopy(drawn)
        places = [place for place in _places(spoilt) if place[1] not in ("apiVersion", "kind", "metadata")]
        if not places:
            return spoilt
        holder, key = self.random.choice(places)
        way = self.random.randrange(4)
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder["unheardOf"] = "x"
        else:
            holder[key] = copy.deepcopy(self.random.choice(_WRONG))
        return spoilt

    def value(self, schema: Any, depth: int = 0) -> Any:
        """A value of a schema, as far as one is easily drawn."""
        if schema.get("enum"):
            return self.random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            # A pattern is that of a quantity, which Go writes as a string.
            return self.random.choice((8080, self.text(schema))) if "pattern" not in schema else "100m"
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            count = self.random.randrange(3) if depth < 8 else 0
            count = max(count, schema.get("minItems", 0))
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind == "string":
            return self.text(schema)
        if kind in ("integer", "number"):
            low = int(schema.get("minimum", 0))
            return self.random.randrange(low, int(min(schema.get("maximum", low + 5), low + 5)) + 1)
        if kind == "boolean":
            return self.random.random() < 0.5
        return {"any": ["thing", 1]} if schema.get("x-kubernetes-preserve-unknown-fields") else "any"

    def text(self, schema: Any) -> str:
        """A text of the format, else one that meets the pattern and the lengths, if one of a few does."""
        if schema.get("format") in _FORMATTED:
            return _FORMATTED[schema["format"]]
        pattern, least, most = (
            schema.get("pattern"),
            schema.get("minLength", 0),
            schema.get("maxLength", 1000),
        )
        fitting = [text for text in _TEXTS if least <= len(text) <= most and _matches(pattern, text)]
        return self.random.choice(fitting or ["a" * least])

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        drawn = {
            name: self.value(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or self.random.random() < (0.8 if depth < 2 else 0.35)
        }
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            drawn |= {key: self.value(extra, depth + 1) for key in ("one", "two")[: self.random.randrange(3)]}
        if schema.get("x-kubernetes-preserve-unknown-fields") and not extra:
            drawn["undeclared"] = {"kept": [1, None, 9007199254740993]}
        if schema.get("x-kubernetes-embedded-resource"):
            drawn |= {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}}
        return drawn


def _matches(pattern: str | None, text: str) -> bool:
    try:
        return pattern is None or re.search(pattern, text) is not None
    except re.error:
        return False


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in (
        list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from _places(value[key])
