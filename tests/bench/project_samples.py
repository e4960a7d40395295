"""Whether objects come out of a package as they went in.

    python tests/bench/project_samples.py PACKAGE FOLDER < objects

FOLDER has the definitions, each line of ``objects`` is ``[name, object]``. What a server stores of an object, fields
that its schema does not know pruned, must come out of the types alone, out of the scheme, and out of the scheme after
a label was set. Prints ``[how many came out alike, a line for each fault]``. A null means absent, or the zero value of
a field that must be there.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from tests.compiler.real.minimal import definitions

from apimachinery.schema.custom import CustomSchema, compile_custom

Json = Any
LABEL = "example.com/seen"
SAME_MOMENT = ", the same moment"
"""A ``datetime`` has no trailing zeros; the scheme remembers them."""


def declared(schema: Json) -> Json:
    """The schema without fields that it keeps beyond those it declares."""
    if isinstance(schema, list):
        return [*map(declared, schema)]
    if not isinstance(schema, dict):
        return schema
    kept = bool(schema.get("properties"))
    left = {k: v for k, v in schema.items() if not (kept and k == "x-kubernetes-preserve-unknown-fields")}
    return {k: declared(v) for k, v in left.items()}


def fault(scheme: Any, schema: CustomSchema, types: CustomSchema, value: Json) -> str | None:
    """How an object comes out otherwise than it went in; None where it does not."""
    stored, seen = deepcopy(value), deepcopy(value)
    schema.prune(stored)
    types.prune(seen)
    obj = scheme.decode(json.dumps(stored))
    for name, got, expected in (
        ("types", json.loads(msgspec.json.encode(obj)), seen),
        ("scheme", json.loads(scheme.encode(obj)), stored),
    ):
        for found in differences(expected, got):
            if not (name == "types" and found.endswith(SAME_MOMENT)):
                return f"{name}: {found}"
    obj.metadata.labels = {**(obj.metadata.labels or {}), LABEL: "yes"}
    got = json.loads(scheme.encode(obj))
    if got["metadata"]["labels"].pop(LABEL, None) != "yes":
        return "changed: no label"
    stored["metadata"].setdefault("labels", {})
    return next((f"changed: {found}" for found in differences(stored, got)), None)


def differences(old: Json, new: Json, path: str = "") -> Iterator[str]:
    """Where two values differ."""
    if old is None and not new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}"
            if key not in old:
                yield f"{inner} came from nowhere"
            elif key not in new:
                if old[key] is not None:
                    yield f"{inner} is lost"
            else:
                yield from differences(old[key], new[key], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif old != new or type(old) is not type(new):
        yield f"{path}: {old!r} became {new!r}"[:300] + (SAME_MOMENT if _is_same_moment(old, new) else "")


def _is_same_moment(old: Json, new: Json) -> bool:
    try:
        return datetime.fromisoformat(old) == datetime.fromisoformat(new)
    except (TypeError, ValueError):
        return False


def main(package: str, folder: str) -> None:
    scheme = importlib.import_module(f"{package}.scheme").SCHEME
    schemas: dict[tuple[str, str], tuple[CustomSchema, CustomSchema]] = {}
    for crd in definitions(Path(folder)):
        for version in crd["spec"]["versions"]:
            kind = (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
            said = version.get("schema", {}).get("openAPIV3Schema", {})
            schemas.setdefault(kind, (compile_custom(said), compile_custom(declared(said))))
    alike, faults = 0, []
    for line in sys.stdin:
        name, value = json.loads(line)
        try:
            found = fault(scheme, *schemas[value["apiVersion"], value["kind"]], value)
        except Exception as exception:
            found = f"{type(exception).__name__}: {exception}"
        alike += found is None
        if found:
            faults.append(f"{name}: {found}")
    json.dump([alike, faults], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
