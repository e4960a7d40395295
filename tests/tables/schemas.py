"""Values against structural schemas: validated, defaulted, pruned, their metadata and lists looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from apimachinery.schema.defaulting import compile_defaulter
from apimachinery.schema.metadata import embedded_fault, prune_embedded
from apimachinery.schema.node import SchemaNode, SchemaNodeReader
from apimachinery.schema.pruning import prune_value
from apimachinery.schema.validation.embedded import embedded_faults
from apimachinery.schema.validation.explain import explain
from apimachinery.schema.validation.faults import field_errors
from apimachinery.schema.validation.lists import list_faults
from apimachinery.schema.validation.ratcheting import OldAndNew

from . import faults
from .agreement import TEXT, VALUE, VERDICT, Answer, Line


def _node(line: Line) -> SchemaNode:
    node = SchemaNodeReader(implied_types=False).read(line["schema"] or {})
    return replace(node, embedded=True) if line.get("root") else node


def _base(line: Line) -> str:
    return "" if line.get("path") in (None, "<nil>") else str(line["path"])


def validated(line: Line, *, ratchets: bool) -> Iterator[Answer]:
    """``old`` values that are unchanged count where the write ``ratchets``."""
    node = _node(line)
    old = line["old"]
    correlation = OldAndNew(node, line["obj"], old) if ratchets and old is not None else None
    found = field_errors(explain(node, line["obj"], "", correlation).faults, _base(line))
    yield from faults.compared(line["errs"], found)


def defaulted(line: Line) -> Iterator[Answer]:
    """Values that are missing filled in."""
    fill = compile_defaulter(_node(line))
    if fill is not None:
        fill(line["in"])
    yield Answer(VALUE, line["out"], line["in"])


def pruned(line: Line) -> Iterator[Answer]:
    """``root``: the value is an object with metadata. ``track``: the paths are wanted too."""
    node = SchemaNodeReader(implied_types=False).read(line["schema"] or {})
    paths = prune_value(node, line["in"], is_resource=bool(line["root"]))
    yield Answer(VALUE, line["out"], line["in"])
    if line["track"]:
        yield Answer("paths", sorted(line["paths"] or ()), sorted(paths))


def coerced(line: Line) -> Iterator[Answer]:
    """The metadata of embedded objects decoded, and written back."""
    node = _node(line)
    fault = embedded_fault(node, line["in"])
    yield Answer(VERDICT, line.get("err") is not None, fault is not None)
    if line.get("err") is None and fault is None:
        paths = prune_embedded(node, line["in"])
        yield Answer(VALUE, line["out"], line["in"])
        if line.get("unknown") is not None:
            yield Answer("paths", line["unknown"], sorted(paths))
    elif not line["drop"]:
        base = _base(line)
        yield Answer(TEXT, line.get("err"), f"{base}.{fault}" if base and fault else fault)


def embedded(line: Line) -> Iterator[Answer]:
    """What is wrong with embedded objects."""
    yield from faults.compared(line["errs"], embedded_faults(_node(line), line["in"], _base(line)))


def lists(line: Line) -> Iterator[Answer]:
    """Duplicates in sets and keyed lists."""
    yield from faults.compared(line["errs"], list_faults(_node(line), line["in"], _base(line)))


RUNNERS: dict[str, Callable[[Line], Iterator[Answer]]] = {
    "crval": partial(validated, ratchets=False),
    "crvalupdate": partial(validated, ratchets=True),
    "crvalupdate-noratchet": partial(validated, ratchets=False),
    "default": defaulted,
    "prune": pruned,
    "coerce": coerced,
    "objectmeta": embedded,
    "listtype": lists,
}
