"""Table columns and cells.

Columns come from the resource table. Of built-in kinds each cell is computed (``cells``); of custom resources it
is found by its column's JSONPath. ``Name`` comes first for every kind; a kind without columns has ``Age`` next to it.
"""

from __future__ import annotations

import time
from calendar import timegm
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.kinds.cells import CELLS
from apimachinery.kinds.durations import since
from apimachinery.meta.json_path import JsonPath, PathError, parse_path
from apimachinery.meta.resources import PrinterColumn
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served

Cell = Callable[[dict[str, Any]], Any]
_NAME = PrinterColumn(
    name="Name",
    type="string",
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may "
        "allow a client to request the generation of an appropriate name automatically. Name is primarily intended "
        "for creation idempotence and configuration definition. Cannot be updated. More info: "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
    ),
)
_AGE = PrinterColumn(
    name="Age",
    type="date",
    description=(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. "
        "It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. "
        "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    ),
    json_path=".metadata.creationTimestamp",
)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a resource and how a row's cells are made.

    ``nothing`` gives the cells of a bookmark's row. ``by_default``: a built-in kind has no printer of its own, so that
    a table without rows says ``null`` for them.
    """

    definitions: tuple[dict[str, Any], ...]
    makers: tuple[Cell, ...]
    nothing: Callable[[], list[Any]]
    by_default: bool = False

    def cells(self, obj: dict[str, Any]) -> list[Any]:
        """One row."""
        return [make(obj) for make in self.makers]


def _computed_columns(served: Served) -> Columns:
    """Columns of a built-in kind, whose printer is code: it also prints an object without anything."""
    columns = served.resource.printer_columns
    makers = [_computed(served, column) for column in columns]
    if served.kind == "IPAddress":
        makers.append(age)  # kube-apiserver has a cell too many here: it names no column for the age
    definitions = tuple(_definition(column) for column in columns)
    blank: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
    return Columns(
        definitions, tuple(makers), lambda: [make(blank) for make in makers], columns[-1].name == "Created At"
    )


def _found_columns(served: Served) -> Columns:
    """Columns of a custom kind, found by JSONPath: where there is no object there is no more than an empty name."""
    columns = (_NAME, *(served.resource.printer_columns or (_AGE,)))
    makers = (_name, *(_found(column) for column in columns[1:]))
    nothing: list[Any] = ["", *[None] * (len(columns) - 1)]
    return Columns(tuple(_definition(column) for column in columns), makers, nothing.copy)


_COLUMNS: Mapping[Family, Callable[[Served], Columns]] = {BUILT_IN: _computed_columns, CUSTOM: _found_columns}


def columns_of(served: Served) -> Columns:
    """The columns of a resource."""
    return _COLUMNS[served.family](served)


def _definition(column: PrinterColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _name(obj: dict[str, Any]) -> Any:
    return obj["metadata"].get("name", "")


def _created(obj: dict[str, Any]) -> Any:
    return obj["metadata"].get("creationTimestamp", "0001-01-01T00:00:00Z")


def age(obj: dict[str, Any]) -> str:
    """How long ago an object was created."""
    return since(obj["metadata"].get("creationTimestamp"))


def _computed(served: Served, column: PrinterColumn) -> Cell:
    if column.name == "Name":
        return _name
    if column.json_path:
        return _found(column)
    own = CELLS.get((served.kind, column.name))
    if own is not None:
        return own
    return {"Age": age, "Created At": _created}.get(column.name, lambda obj: "")


def _found(column: PrinterColumn) -> Cell:
    try:
        path: JsonPath | None = parse_path(column.json_path)
    except PathError:
        path = None

    def find(obj: dict[str, Any]) -> Any:
        if path is None:
            return None
        try:
            found = path.find(obj)
        except PathError:
            return None
        return _shown(found[0], column.type) if found else None

    return find


def _shown(value: Any, kind: str) -> Any:
    """A value as its column's type shows it; None where it does not fit."""
    match kind:
        case "integer":
            if isinstance(value, bool):
                return None
            if isinstance(value, float):
                return int(value)
            return value if isinstance(value, int) else None
        case "number":
            return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "string":
            return value if isinstance(value, str) else _go_text(value)
        case "date":
            return _date(value)
    return None


def _go_text(value: Any) -> str | None:
    from apimachinery.meta.json_path import print_value

    return None if value is None else print_value(value)


def _date(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if not value:
        return "<unknown>"
    try:
        timegm(time.strptime(value[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return "<invalid>"
    return since(value)
