"""Values of the schemas of an OpenAPI document, drawn for calls of its operations."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import referencing
import referencing.jsonschema
from openapi_schema_validator import OAS30Validator, OAS31Validator

Json = Any
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
DEEPEST = 5


class Undrawable(Exception):
    """No value of a schema was found."""


@dataclass(slots=True)
class Described:
    """A document: references, schemas, operations."""

    value: Json
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def follow(self, node: Json) -> Json:
        for _ in range(20):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                return node
            target, node = node["$ref"], self.value
            for token in target[2:].split("/"):
                node = node[unquote(token).replace("~1", "/").replace("~0", "~")]
        raise Undrawable("references without end")

    def faults(self, schema: Json, value: Json) -> list[str]:
        modern = "swagger" in self.value or str(self.value["openapi"]).startswith("3.1")
        kind = OAS31Validator if modern else OAS30Validator
        # In the document itself, so that references and discriminators lead where they do there.
        whole = {**self.value, "x-judged": schema}
        resource: Any = referencing.jsonschema.DRAFT202012.create_resource(whole)
        registry: Any = referencing.Registry().with_resource("urn:doc", resource)
        judge = kind({"$ref": "urn:doc#/x-judged"}, registry=registry)
        return [error.message[:150] for error in judge.iter_errors(value)]

    def operations(self) -> Iterator[tuple[str, str, Json, list[Json]]]:
        for path, item in self.value.get("paths", {}).items():
            item = self.follow(item)
            for method in METHODS:
                if isinstance(item.get(method), dict):
                    said = item[method]
                    given = [*item.get("parameters", []), *said.get("parameters", [])]
                    merged = {(p["name"], p["in"]): p for p in map(self.follow, given)}
                    for name in re.findall(r"\{([^{}]+)\}", path):  # some are used and not declared
                        merged.setdefault(
                            (name, "path"), {"name": name, "in": "path", "schema": {"type": "string"}}
                        )
                    yield path, method, said, list(merged.values())

    # drawing

    def draw(self, schema: Json, depth: int = 0, *, sent: bool = True) -> Json:
        """A value of ``schema``; what is optional is there half the time, and never far inside."""
        schema = self.follow(schema)
        if schema is True or not schema:
            return "any"
        if depth > 12:
            raise Undrawable("too deep")
        if "const" in schema:
            return schema["const"]
        members = [m for m in schema.get("enum", ()) if m is not None]
        if "enum" in schema and not members:
            raise Undrawable("an enum without members")
        if members:
            return self.random.choice(members)
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return self._alternative(schema, key, depth, sent)
        if "allOf" in schema:
            return self._whole(schema, depth, sent)
        word = schema.get("type")
        if isinstance(word, list):
            word = next((w for w in word if w != "null"), "null")
        if not word:
            word = (
                "object"
                if "properties" in schema or "additionalProperties" in schema
                else "array"
                if "items" in schema
                else ""
            )
        return self._of_type(word, schema, depth, sent)

    def _whole(self, schema: Json, depth: int, sent: bool) -> Json:
        """A value of ``allOf``, drawn until it is one: a part may require what another declares."""
        members = [self.follow(part) for part in schema["allOf"]]
        rest = {k: v for k, v in schema.items() if k not in ("allOf", "x-needed")}
        needed = [name for part in (*members, rest) for name in part.get("required", ())]
        needed += schema.get("x-needed", ())  # of the schema that this is a part of
        for _ in range(12):
            parts = []
            for part in (*members, rest):
                if part is rest and not {"properties", "type"} & part.keys():
                    continue
                own = {**part, "required": needed} if "properties" in part else part
                own = {**own, "x-needed": needed} if "allOf" in part else own
                parts.append(self.draw(own, depth + 1, sent=sent))
            objects = [part for part in parts if isinstance(part, dict)]
            value = {k: v for part in objects for k, v in part.items()} if objects else parts[0]
            if not self.faults(schema, value):
                return value
        raise Undrawable("allOf")

    def _alternative(self, schema: Json, key: str, depth: int, sent: bool) -> Json:
        around = {k: v for k, v in schema.items() if k not in (key, "discriminator")}
        for given in schema[key] * 4:  # what is optional may make two alternatives fit
            part = self.follow(given)
            if part.get("type") == "null":
                continue
            part = _discriminated(schema, given, part)
            merged = {**around, **part}
            if "properties" in around and "properties" in part:
                merged["properties"] = {**around["properties"], **part["properties"]}
            merged["required"] = [*around.get("required", ()), *part.get("required", ())]
            try:
                value = self.draw(merged, depth + 1, sent=sent)
            except Undrawable:
                continue
            if not self.faults(schema, value):
                return value
        raise Undrawable(f"no alternative of {key}")

    def _of_type(self, word: str, schema: Json, depth: int, sent: bool) -> Json:
        if word == "object":
            return self._object(schema, depth, sent)
        if word == "array":
            count = max(schema.get("minItems", 0), 1 if depth < DEEPEST else 0)
            items = schema.get("items", {})
            drawn = [self.draw(items, depth + 1, sent=sent) for _ in range(count)]
            if schema.get("uniqueItems") and count > 1:
                drawn = [f"{value}{number}" for number, value in enumerate(drawn)]
                if self.faults(schema, drawn):
                    raise Undrawable("several unique items")
            return drawn
        if word == "integer":
            return int(self._number(schema))
        if word == "number":
            return self._number(schema)
        if word == "boolean":
            return True
        if word == "null":
            return None
        return self._text(schema) if word == "string" else "any"

    def _object(self, schema: Json, depth: int, sent: bool) -> Json:
        found = {}
        required = set(schema.get("required", ()))
        for name, member in (schema.get("properties") or {}).items():
            said = self.follow(member)
            aside = isinstance(said, dict) and said.get("readOnly" if sent else "writeOnly") is True
            if aside or (name not in required and (depth >= 3 or self.random.random() < 0.5)):
                continue
            try:
                found[name] = self.draw(member, depth + 1, sent=sent)
            except Undrawable:
                if name in required:
                    raise
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and not schema.get("properties") and depth < DEEPEST:
            found["key"] = self.draw(more, depth + 1, sent=sent)
        return found

    def _number(self, schema: Json) -> float:
        low, high = schema.get("minimum"), schema.get("maximum")
        step = schema.get("multipleOf", 1)
        value = low if low is not None else min(high, 1) if high is not None else 1
        if schema.get("exclusiveMinimum"):
            value = (value if schema["exclusiveMinimum"] is True else schema["exclusiveMinimum"]) + step
        return value if value % step == 0 else value + step - value % step

    def _text(self, schema: Json) -> str:
        form = schema.get("format", "")
        known = {
            "date-time": "2026-01-02T03:04:05Z",
            "date": "2026-01-02",
            "uuid": "123e4567-e89b-12d3-a456-426614174000",
            "email": "a@example.com",
            "uri": "https://example.com/a",
            "url": "https://example.com/a",
            "ipv4": "192.0.2.1",
            "ipv6": "2001:db8::1",
            "byte": "YWJj",
            "snowflake": "1234567890",
        }
        tries = [
            known.get(form, "text"),
            schema.get("example"),
            *(schema.get("examples") or ()),
            *known.values(),
        ]
        tries += [
            "a",
            "A1",
            "abc123",
            "1",
            "0",
            "12345678901234567",
            "AC" + "0" * 32,
            "#aabbcc",
            "v1.0.0",
            "1.2.3",
            "ssh-rsa AAAA",
            "a/b",
            "sha256:" + "a" * 64,
        ]
        tries += ["a" * schema.get("minLength", 1), "0" * schema.get("minLength", 1)]
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            tries += [m + "0" * 32 for m in re.findall(r"\^?\(?([A-Z]{2})", pattern)] + [
                "a" * 40,
                "0" * 40,
                "+15550100",
            ]
        for text in tries:
            if (
                isinstance(text, str)
                and not self.faults(schema, text)
                and (not form or form not in known or text == known[form] or pattern)
            ):
                return text
        raise Undrawable(f"text of {pattern!r}")


def _discriminated(schema: Json, given: Json, part: Json) -> Json:
    """A member of a union with the value of the discriminator by which it is known."""
    about = schema.get("discriminator")
    field = about.get("propertyName") if isinstance(about, dict) else None
    if field is None or "$ref" not in given:
        return part
    declared = part.get("properties", {}).get(field, {"type": "string"})
    name = given["$ref"].rpartition("/")[2]
    words = [word for word, to in about.get("mapping", {}).items() if to.rpartition("/")[2] == name]
    words = words or declared.get("enum") or [name]
    told = {**declared, "enum": [word for word in words if word in declared.get("enum", words)]}
    if not told["enum"] or {"const", "$ref"} & declared.keys():
        return part
    return {
        **part,
        "properties": {**part.get("properties", {}), field: told},
        "required": [*part.get("required", ()), field],
    }
