"""What the releases of Kubernetes define, without their prose: names, types, markers, in one small file.

``specs/kubernetes/releases.jsonl.xz`` holds a line of JSON for each release, the newest first, behind a line that names
them all: the releases differ so little that all of them take hardly more room than one, and the newest is read without
unpacking the others. The file is made from the package kubernetes-validate by ``make schemas``; its prose is packed by
the build of the wheel (``prose.py``).
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kubewright.config import specs_folder
from kubewright.ir.types import Json

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def packed_file() -> Path:
    """The file that the definitions are read from."""
    return specs_folder() / "kubernetes" / "releases.jsonl.xz"


@cache
def releases() -> tuple[str, ...]:
    """The releases that are known, oldest first."""
    with lzma.open(packed_file()) as lines:
        return tuple(reversed(msgspec.json.decode(lines.readline(), type=list[str])))


def definitions(release: str) -> Json | None:
    """The definitions of a release by name, as kubernetes-validate has them but without descriptions; ``None`` for a
    release that is not known. The caller may change them."""
    if release not in releases():
        return None
    with lzma.open(packed_file()) as lines:
        lines.readline()
        for name in reversed(releases()):
            line = lines.readline()
            if name == release:
                found: Json = msgspec.json.decode(line)
                return found
    return None


def add_kinds(known: Json, kinds: Iterable[tuple[str, str, str]], others: Json) -> None:
    """Adds to the definitions ``known`` those of ``kinds`` (group, version, kind), and what these refer to, from
    ``others``."""
    wanted = [name for name, schema in others.items() if not set(_kinds(schema)).isdisjoint(kinds)]
    while wanted:
        name = wanted.pop()
        if name not in known:
            known[name] = others[name]
            wanted += [reference.removeprefix("#/$defs/") for reference in _references(others[name])]


def _kinds(schema: Json) -> list[tuple[str, str, str]]:
    registered = schema.get("x-kubernetes-group-version-kind", ())
    return [(each["group"], each["version"], each["kind"]) for each in registered]


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def fields_since(newest: str) -> dict[str, dict[str, str]]:
    """Definition → field → the release that added the field, for fields of ``newest`` that are younger than their
    definition."""
    if newest not in releases():
        return {}
    found: dict[str, dict[str, str]] = {}
    seen: dict[str, set[str]] = {}
    for release in releases()[: releases().index(newest) + 1]:
        for name, schema in (definitions(release) or {}).items():
            fields = set(schema.get("properties", ()))
            before = seen.get(name)
            for field in sorted(fields - before) if before is not None else ():
                found.setdefault(name, {})[field] = release
            seen[name] = fields | (before or set())
    return found


def pack(described: Mapping[str, Json], path: Path) -> None:
    """Writes the definitions of releases (release → definitions) without their prose, the same bytes for the same
    input."""
    ordered = sorted(described, key=lambda release: [int(part) for part in release.split(".")], reverse=True)
    lines: Iterable[Any] = [ordered, *(without_prose(described[release]) for release in ordered)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(
        lzma.compress(text.encode(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=_FILTERS)
    )


def without_prose(value: Any) -> Any:
    """A schema without descriptions; a property that is called so stays."""
    if isinstance(value, dict):
        return {
            key: without_prose(item)
            for key, item in value.items()
            if not (key == "description" and isinstance(item, str))
        }
    return [without_prose(item) for item in value] if isinstance(value, list) else value
