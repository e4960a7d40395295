"""Descriptions of Kubernetes' own definitions, apart from them: JSON pointer → text.

They are the Kubernetes project's and not part of this repository. The build of the wheel (``hatch_build.py``) takes
them from the package kubernetes-validate and packs those of all releases next to the definitions (``releases.py``): a
line that names the releases, then a line for each, the newest first, with the texts that differ from the line before.
Nothing but the standard library is imported here, for the environment of a build has nothing else.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = "prose.jsonl.xz"

Texts = dict[str, str]


def texts_of(definitions: Mapping[str, Any]) -> Texts:
    """The descriptions in definitions, each by the pointer of the schema that it describes."""
    return dict(_texts(definitions, ""))


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in items:
        if key == "description" and isinstance(item, str):
            yield pointer, item
        else:
            yield from _texts(item, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


def describe(definitions: dict[str, Any], texts: Texts) -> int:
    """Put descriptions into definitions that have none, in place; return how many fitted. Those of schemas that the
    definitions lack are skipped: they may be another release's."""
    count = 0
    for pointer, text in texts.items():
        schema: Any = definitions
        try:
            for token in pointer.split("/")[1:]:
                key = token.replace("~1", "/").replace("~0", "~")
                schema = schema[int(key)] if isinstance(schema, list) else schema[key]
            schema["description"] = text
        except (KeyError, IndexError, ValueError, TypeError):
            continue
        count += 1
    return count


def pack(texts: Mapping[str, Texts], path: Path) -> None:
    """Writes the texts of releases (release → texts), the same bytes for the same input."""
    ordered = sorted(texts, key=lambda release: [int(part) for part in release.split(".")], reverse=True)
    lines: list[Any] = [ordered]
    newer: Texts = {}
    for release in ordered:
        own = texts[release]
        changed = {pointer: text for pointer, text in own.items() if newer.get(pointer) != text}
        lines.append(changed | dict.fromkeys(newer.keys() - own.keys()))
        newer = own
    content = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in lines)
    path.write_bytes(lzma.compress(content.encode(), check=lzma.CHECK_CRC32, preset=9))


@cache
def releases(path: Path) -> Sequence[str]:
    """The releases whose texts are packed in a file; none where there is no file."""
    try:
        with lzma.open(path) as lines:
            return tuple(json.loads(lines.readline()))
    except FileNotFoundError:
        return ()


def read(path: Path, release: str) -> Texts:
    """The texts of a release. Raises ``KeyError`` for one that is not in the file."""
    if release not in releases(path):
        raise KeyError(release)
    found: dict[str, str | None] = {}
    with lzma.open(path) as lines:
        for name in json.loads(lines.readline()):
            found |= json.loads(lines.readline())
            if name == release:
                break
    return {pointer: text for pointer, text in found.items() if text is not None}
