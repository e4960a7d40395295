"""The faults of a number, by the rules of kube-openapi's number validator.

Bounds are compared as integers for integers, ``multipleOf`` of fractions allows for rounding, and a constraint that
does not fit its own type is itself reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.printing import go_float
from apimachinery.schema.node import SchemaNode
from apimachinery.schema.numbers import as_go, fits_range, is_multiple
from apimachinery.schema.validation.faults import Fault, FaultRule


def number_faults(node: SchemaNode, number: int | float, path: str) -> Iterator[Fault]:
    """The faults of a number, in order: its range, multipleOf, minimum, maximum."""
    number = as_go(number)
    kind = node.types[0] if len(node.types) == 1 else ""
    yield from _range_fault(number, kind, node.format, "Checked", path)
    if node.multiple_of is not None:
        yield from _range_fault(node.multiple_of, kind, node.format, "MultipleOf", path)
        if node.multiple_of < 0:
            text = (
                f"factor MultipleOf declared for {path} must be positive: {_shown(number, node.multiple_of)}"
            )
            yield Fault(FaultRule.OTHER, path, text, node.multiple_of)
        elif not is_multiple(number, node.multiple_of):
            text = f"{path} in body should be a multiple of {_shown(number, node.multiple_of)}"
            yield Fault(FaultRule.OTHER, path, text, number)
    if node.minimum is not None:
        yield from _range_fault(node.minimum, kind, node.format, "Minimum boundary", path)
        bound = int(node.minimum) if isinstance(number, int) else node.minimum
        if number < bound or (node.exclusive_minimum and number == bound):
            words = "greater than" if node.exclusive_minimum else "greater than or equal to"
            yield Fault(
                FaultRule.OTHER, path, f"{path} in body should be {words} {_shown(number, bound)}", number
            )
    if node.maximum is not None:
        yield from _range_fault(node.maximum, kind, node.format, "Maximum boundary", path)
        bound = int(node.maximum) if isinstance(number, int) else node.maximum
        if number > bound or (node.exclusive_maximum and number == bound):
            words = "less than" if node.exclusive_maximum else "less than or equal to"
            yield Fault(
                FaultRule.OTHER, path, f"{path} in body should be {words} {_shown(number, bound)}", number
            )


def _shown(number: int | float, limit: Any) -> str:
    return str(int(limit)) if isinstance(number, int) else go_float(float(limit))


def _range_fault(number: int | float, kind: str, wanted: str, what: str, path: str) -> Iterator[Fault]:
    if not fits_range(number, kind, wanted):
        form = f"with format {wanted}" if wanted else "(default format)"
        yield Fault(FaultRule.PLAIN, path, f"{what} value must be of type {kind} {form} in {path}")
