"""Table columns and cells.

Columns come from the resource table. Of built-in kinds each cell is computed (``cells``); of custom resources it
is found by its column's JSONPath. ``Name`` comes first for every kind; a kind without columns has ``Age`` next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.kinds.cells import CELLS
from apimachinery.kinds.durations import since
from apimachinery.meta.json_path import (
    JsonPath,
    PathError,
    PathTooCostly,
    SearchBudget,
    parse_path,
    print_value,
    searches,
)
from apimachinery.meta.printing import INT64_MAX, INT64_MIN, as_go
from apimachinery.meta.resources import PrinterColumn
from apimachinery.meta.times import SECONDS_LAYOUT, parse_fault
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served

Cell = Callable[[dict[str, Any], SearchBudget], Any]
CELL_VALUES = 10_000
ROW_VALUES = 20_000
LEAST_VALUES = 100
"""What the columns of a custom resource may look at, of an object's values and texts: for a cell, for all cells of a
row, and for a cell whatever the others took. Past that a cell is null. A pod of a service mesh has 3,000 values."""
USUAL_COLUMNS = 32
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
    a table without rows says ``null`` for them. ``searching`` columns may go through all of an object.
    ``doubles``: a cell may be a double. ``order``: what the rows are sorted by, where it is not the name.
    """

    definitions: tuple[dict[str, Any], ...]
    makers: tuple[Cell, ...]
    nothing: Callable[[], list[Any]]
    by_default: bool = False
    searching: int = 0
    doubles: bool = False
    order: Callable[[dict[str, Any]], Any] | None = None

    def cells(self, obj: dict[str, Any]) -> list[Any]:
        """One row."""
        budget = SearchBudget(ROW_VALUES)
        return [make(obj, budget) for make in self.makers]

    @property
    def weight(self) -> int:
        """How many times as much a row takes as one of a usual kind."""
        return 1 + self.searching + len(self.makers) // USUAL_COLUMNS


def _computed_columns(served: Served) -> Columns:
    """Columns of a built-in kind, whose printer is code: it also prints an object without anything."""
    columns = served.resource.printer_columns
    makers = [_computed(served, column) for column in columns]
    if served.kind == "IPAddress":
        makers.append(_plain(age))  # kube-apiserver has a cell too many here: it names no column for the age
    definitions = tuple(_definition(column) for column in columns)

    def nothing() -> list[Any]:
        return [make({"metadata": {}, "spec": {}, "status": {}}, SearchBudget(ROW_VALUES)) for make in makers]

    by_default = columns[-1].name == "Created At"
    return Columns(definitions, tuple(makers), nothing, by_default, order=served.hooks.order)


def _found_columns(served: Served) -> Columns:
    """Columns of a custom kind, found by JSONPath: where there is no object there is no more than an empty name.

    A column whose path cannot be read ends them: neither it nor those after it are shown.
    """
    columns: list[PrinterColumn] = [_NAME]
    makers: list[Cell] = [_plain(_name)]
    for column in served.resource.printer_columns or (_AGE,):
        try:
            makers.append(_found(column, parse_path(column.json_path)))
        except PathError:
            break
        columns.append(column)
    nothing: list[Any] = ["", *[None] * (len(columns) - 1)]
    definitions = tuple(_definition(column) for column in columns)
    searching = sum(searches(column.json_path) for column in columns)
    return Columns(
        definitions,
        tuple(makers),
        nothing.copy,
        searching=searching,
        doubles=any(column.type == "number" for column in columns),
    )


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


def _plain(make: Callable[[dict[str, Any]], Any]) -> Cell:
    return lambda obj, budget: make(obj)


def _computed(served: Served, column: PrinterColumn) -> Cell:
    own = CELLS.get((served.kind, column.name))
    if own is not None and (column.name == "Name" or not column.json_path):
        return _plain(own)
    if column.name == "Name":
        return _plain(_name)
    if column.json_path:
        return _found(column, parse_path(column.json_path))
    return _plain({"Age": age, "Created At": _created}.get(column.name, lambda obj: ""))


def _found(column: PrinterColumn, path: JsonPath) -> Cell:
    def find(obj: dict[str, Any], row: SearchBudget) -> Any:
        given = max(LEAST_VALUES, min(CELL_VALUES, row.left))
        budget = SearchBudget(given)
        try:
            for value in path.first(obj, budget):
                if column.type in ("string", "date"):
                    budget.spend_on(value)
                return _shown(value, column.type)
        except PathTooCostly:
            return None
        finally:
            row.left -= given - budget.left
        return None

    return find


def _shown(value: Any, kind: str) -> Any:
    """A value as its column's type shows it; None where it does not fit."""
    match kind:
        case "integer":
            if isinstance(value, bool):
                return None
            return _whole(value) if isinstance(value, (int, float)) else None
        case "number":
            # A float64 there, whatever it was: an integer beyond 2^53 is rounded.
            return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "string":
            return value if isinstance(value, str) else print_value(value)
        case "date":
            return _date(value)
    return None


def _whole(number: int | float) -> int:
    """An int64, as a processor makes it of a float64: the least one where it does not fit."""
    whole = int(number)
    if isinstance(as_go(number), int) or INT64_MIN <= whole <= INT64_MAX:
        return whole
    return INT64_MIN


def _date(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return "<unknown>"
    if parse_fault(value, SECONDS_LAYOUT) is not None:
        return "<invalid>"
    return since("" if value.startswith("0001-01-01T00:00:00") and value.endswith("Z") else value)
