"""The ../shared folder of recordings and real inputs, as the CEL tests need it."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

SHARED = Path(__file__).parents[2] / "../shared"

needs_shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.exists(), reason="the ../shared folder of recordings is absent"),
]


@cache
def crd(name: str) -> dict[str, Any]:
    """A real CRD of data/crds; do not change it."""
    with (SHARED / "data/crds" / name).open(encoding="utf-8") as file:
        found: dict[str, Any] = next(d for d in yaml.load_all(file, Loader=yaml.CSafeLoader) if d)
    return found


def crd_names() -> list[str]:
    root = SHARED / "data/crds"
    return sorted(str(path.relative_to(root)) for path in root.glob("*/*.yaml"))


@cache
def verdicts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((SHARED / "parity/crd-verdicts.json").read_text())
    return found


def scenario(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        steps: list[dict[str, Any]] = yaml.load(file, Loader=yaml.CSafeLoader)["steps"]
    return steps


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """``document`` after add, replace and remove operations of RFC 6902."""
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in operation["path"].split("/")[1:]]
        holder = document
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        if isinstance(holder, list):
            if operation["op"] == "add":
                holder.insert(len(holder) if last == "-" else int(last), operation["value"])
            else:
                holder[int(last)] = operation["value"]
        elif operation["op"] == "remove":
            del holder[last]
        else:
            holder[last] = operation["value"]
    return document
