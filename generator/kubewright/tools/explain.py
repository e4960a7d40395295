"""``kubewright explain``: what a field of a kind is for, from a release's definitions or from CRDs, without a cluster.

Exit codes: 0 explained, 1 no such kind or field, 2 the command line or input cannot be used.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.ir.versions import version_priority
from kubewright.source.kubernetes_validate import NEWEST, load
from kubewright.source.text import read_documents

FOUND, MISSING, MISUSED = 0, 1, 2
Json = dict[str, Any]
_MARKER = "x-kubernetes-group-version-kind"
_WIDTH = 100
_MAX_DEPTH = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument("path", help="a kind and fields of it: deployment.spec.template")
    parser.add_argument(
        "--kubernetes", default=NEWEST, metavar="RELEASE", help=f"whose kinds (default {NEWEST})"
    )
    parser.add_argument(
        "--crds", action="append", type=Path, default=[], metavar="FILE", help="CRDs to look in first"
    )
    parser.add_argument(
        "--api-version", default="", metavar="GROUP/VERSION", help="which version of the kind"
    )
    parser.add_argument("--recursive", action="store_true", help="only names and types, of all fields below")


def run(options: argparse.Namespace) -> int:
    """Prints kind, version, type, description and fields."""
    diagnostics = Diagnostics()
    described = [*_custom(options.crds, diagnostics)]
    document = load(options.kubernetes, diagnostics)
    if diagnostics.has_errors or document is None:
        for item in diagnostics:
            print(item, file=sys.stderr)
        return MISUSED
    definitions = document.value["$defs"]
    described += _builtin(definitions)
    first, *fields = options.path.split(".")
    word = first.lower()
    known = [d for d in described if word in d.names and options.api_version in ("", d.api_version)]
    if not known:
        where = f" in {options.api_version}" if options.api_version else ""
        print(f"kubewright explain: no kind {first!r}{where}; give its CRD by --crds", file=sys.stderr)
        return MISSING
    chosen = max(known, key=lambda d: d.rank)
    schema: Json | None = chosen.schema
    passed = chosen.kind
    for name in fields:
        properties = _properties(_resolved(schema or {}, definitions), definitions)
        schema = properties.get(name.removesuffix("[]"))
        if schema is None:
            there = ", ".join(properties) or "no fields"
            print(f"kubewright explain: {passed} has no field {name!r}; it has {there}", file=sys.stderr)
            return MISSING
        passed += f".{name}"
    sys.stdout.write(_text(chosen, passed, schema or {}, definitions, recursive=options.recursive))
    return FOUND


@dataclass(frozen=True, slots=True)
class _Described:
    api_version: str
    kind: str
    names: frozenset[str]
    schema: Json
    rank: tuple[int, bool, tuple[int, int, int, str]]


def _builtin(definitions: Mapping[str, Json]) -> Iterator[_Described]:
    for schema in definitions.values():
        for gvk in schema.get(_MARKER, ()):
            kind = gvk["kind"]
            api_version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
            rank = (0, not gvk["group"], version_priority(gvk["version"]))
            yield _Described(api_version, kind, _names(kind, ""), schema, rank)


def _custom(paths: list[Path], diagnostics: Diagnostics) -> Iterator[_Described]:
    for path in paths:
        for document in read_documents(path, diagnostics):
            crd = document.value
            spec = crd.get("spec") if isinstance(crd, dict) else None
            names = spec.get("names") if isinstance(spec, dict) else None
            if not isinstance(spec, dict) or not isinstance(names, dict):
                continue
            versions = spec.get("versions")
            for version in versions if isinstance(versions, list) else ():
                holder = version.get("schema") if isinstance(version, dict) else None
                schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
                if isinstance(schema, dict):
                    kind, name = str(names.get("kind")), str(version.get("name"))
                    known = _names(kind, str(names.get("plural", "")))
                    yield _Described(
                        f"{spec.get('group')}/{name}", kind, known, schema, (1, False, version_priority(name))
                    )


def _names(kind: str, plural: str) -> frozenset[str]:
    word = kind.lower()
    ending = word[:-1] + "ies" if word.endswith("y") else word + ("es" if word.endswith(("s", "x")) else "s")
    return frozenset({word, plural or ending})


def _resolved(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The schema with what it refers to; its own description wins."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if reference is None and len(only := schema.get("allOf") or []) == 1:
            reference = only[0].get("$ref")
        if not isinstance(reference, str):
            break
        target = definitions.get(reference.rpartition("/")[2], {})
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        schema = {**target, **own}
    return schema


def _properties(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The fields of an object, of a list's items, of a map's values."""
    for _ in range(_MAX_DEPTH):
        if "properties" in schema:
            found: Json = schema["properties"]
            return found
        inner = schema.get("items") or schema.get("additionalProperties")
        if not isinstance(inner, dict):
            return {}
        schema = _resolved(inner, definitions)
    return {}


def _type(schema: Json, definitions: Mapping[str, Json]) -> str:
    reference = schema.get("$ref") or next((one.get("$ref") for one in schema.get("allOf") or ()), None)
    named = str(reference).rpartition(".")[2] if reference else ""
    schema = _resolved(schema, definitions)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "")
    if schema.get("x-kubernetes-int-or-string"):
        return "IntOrString"
    if kind == "array":
        return f"[]{_type(schema.get('items') or {}, definitions)}"
    if isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
        return f"map[string]{_type(schema['additionalProperties'], definitions)}"
    return named or {"object": "Object"}.get(str(kind), str(kind or "any"))


def _text(
    chosen: _Described, path: str, schema: Json, definitions: Mapping[str, Json], *, recursive: bool
) -> str:
    whole = _resolved(schema, definitions)
    lines = [f"{path}  ({chosen.api_version}, {_type(schema, definitions)})", ""]
    lines += _wrapped(str(whole.get("description", "no description")), "")
    if enum := whole.get("enum"):
        lines += ["", "one of: " + ", ".join(map(str, enum))]
    if "default" in whole:
        lines += ["", f"default: {whole['default']}"]
    if fields := _properties(whole, definitions):
        lines += ["", "fields:"]
        lines += _fields(whole, definitions, "  ", recursive, ()) if fields else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _fields(
    schema: Json, definitions: Mapping[str, Json], indent: str, recursive: bool, above: tuple[int, ...]
) -> Iterator[str]:
    holder = schema
    while "properties" not in holder:
        holder = _resolved(holder.get("items") or holder.get("additionalProperties") or {}, definitions)
    if id(holder["properties"]) in above or len(above) > _MAX_DEPTH:
        return
    required = holder.get("required") or ()
    for name, field in sorted(holder["properties"].items()):
        needed = " (required)" if name in required else ""
        yield f"{indent}{name}  {_type(field, definitions)}{needed}"
        whole = _resolved(field, definitions)
        if not recursive:
            yield from _wrapped(str(whole.get("description", "")), indent + "  ")
        elif _properties(whole, definitions):
            below = (*above, id(holder["properties"]))
            yield from _fields(whole, definitions, indent + "  ", recursive, below)


def _wrapped(text: str, indent: str) -> list[str]:
    return [
        line
        for paragraph in text.split("\n")
        for line in textwrap.wrap(paragraph, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    ]
