"""One fault as the explaining pass holds it, and its translation to a field error.

Theory. kube-openapi words a fault with the path in it (``spec.x in body should be at least 2 chars long``)
and tells equal texts apart no further: a text that was reported is not reported again. The API server then
sorts by the rule that was broken: some keep that text as their detail, some get the words of field errors,
and what is not a fault of one value (a number that overflows, a broken ``anyOf``) is at the object as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from apimachinery.meta.field_errors import (
    ROOT,
    FieldError,
    Reason,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from apimachinery.meta.printing import go_json


class FaultRule(Enum):
    """The rules whose faults are worded apart; ``PLAIN`` is a fault of the object as a whole."""

    TYPE = 1
    REQUIRED = 2
    ENUM = 3
    TOO_LONG = 4
    TOO_MANY = 5
    OTHER = 6
    PLAIN = 7


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``path`` starts with a dot or not, as it came about; ``limit`` is what the rule allows."""

    rule: FaultRule
    path: str
    text: str
    value: Any = ""
    limit: Any = None


class Result:
    """Faults gathered, each text once, and how many checks were made.

    ``anyOf`` reports its best alternative.
    """

    __slots__ = ("_seen", "checks", "faults")

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.checks = 0
        self._seen: set[str] = set()

    def add(self, *faults: Fault) -> None:
        """Add faults but those whose text is known."""
        for fault in faults:
            if fault.text not in self._seen:
                self._seen.add(fault.text)
                self.faults.append(fault)

    def merge(self, other: Result) -> None:
        """Add another result's faults and checks."""
        self.add(*other.faults)
        self.checks += other.checks


def field_errors(faults: Iterable[Fault], base: str = "") -> list[FieldError]:
    """Word faults as the API server does; ``base`` is put before their paths."""
    return [_field_error(fault, base) for fault in faults]


def _field_error(fault: Fault, base: str) -> FieldError:
    relative = fault.path.removeprefix(".") if fault.rule is not FaultRule.PLAIN else ""
    field = f"{base}.{relative}" if base and relative else base or relative or ROOT
    match fault.rule:
        case FaultRule.REQUIRED:
            return required(field)
        case FaultRule.ENUM:
            allowed = (each if isinstance(each, str) else go_json(each) for each in fault.limit)
            return not_supported(field, fault.value, allowed)
        case FaultRule.TOO_LONG:
            return too_long(field, fault.limit)
        case FaultRule.TOO_MANY:
            return too_many(field, fault.value, fault.limit)
        case FaultRule.TYPE:
            return FieldError(Reason.TYPE_INVALID, field, fault.text, fault.value)
        case _:
            return invalid_value(field, fault.value, fault.text)
