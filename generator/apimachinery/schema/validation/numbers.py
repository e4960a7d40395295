"""The faults of a number, by the rules of kube-openapi's number validator.

Bounds are compared as integers for integers, ``multipleOf`` of fractions allows for rounding, and a constraint that
does not fit its own type is itself reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.meta.printing import as_go, go_value
from apimachinery.schema.node import SchemaNode
from apimachinery.schema.numbers import fits_range, is_multiple
from apimachinery.schema.validation.faults import Fault, FaultRule


def number_faults(node: SchemaNode, number: int | float, path: str) -> Iterator[Fault]:
    """The faults of a number, in order: its range, multipleOf, minimum, maximum."""
    number = as_go(number)
    kind = node.types[0] if len(node.types) == 1 else ""
    yield from _range_fault(number, kind, node.format, "Checked", path)
    if node.multiple_of is not None:
        yield from _range_fault(node.multiple_of, kind, node.format, "MultipleOf", path)
        value, factor = _compared(number, node.multiple_of, node, kind)
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {go_value(factor)}"
            yield Fault(FaultRule.OTHER, path, text, factor)
        elif not is_multiple(value, factor):
            text = f"{path} in body should be a multiple of {go_value(factor)}"
            yield Fault(FaultRule.OTHER, path, text, value)
    if node.minimum is not None:
        yield from _range_fault(node.minimum, kind, node.format, "Minimum boundary", path)
        value, bound = _compared(number, node.minimum, node, kind)
        if value < bound or (node.exclusive_minimum and value == bound):
            words = "greater than" if node.exclusive_minimum else "greater than or equal to"
            yield Fault(FaultRule.OTHER, path, f"{path} in body should be {words} {go_value(bound)}", value)
    if node.maximum is not None:
        yield from _range_fault(node.maximum, kind, node.format, "Maximum boundary", path)
        value, bound = _compared(number, node.maximum, node, kind)
        if value > bound or (node.exclusive_maximum and value == bound):
            words = "less than" if node.exclusive_maximum else "less than or equal to"
            yield Fault(FaultRule.OTHER, path, f"{path} in body should be {words} {go_value(bound)}", value)


def _compared(
    number: int | float, limit: int | float, node: SchemaNode, kind: str
) -> tuple[int | float, int | float]:
    """A number and what limits it as they are compared: as integers if the number is one and the limit fits the type,
    whatever fraction the limit has then; else as floats."""
    if isinstance(number, int) and fits_range(limit, kind, node.format):
        return number, int(limit)
    return float(number), float(limit)


def _range_fault(number: int | float, kind: str, wanted: str, what: str, path: str) -> Iterator[Fault]:
    if not fits_range(number, kind, wanted):
        form = f"with format {wanted}" if wanted else "(default format)"
        yield Fault(FaultRule.PLAIN, path, f"{what} value must be of type {kind} {form} in {path}")
