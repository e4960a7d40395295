"""What the CRD rule checks hand back: plain data, so that this package imports nothing of its callers.

Theory. A *fault* is a refusal of a rule while a CRD is read; a *violation* is a rule that an object breaks.
Both carry the four facts that kube-apiserver words a cause from: reason, field, detail and bad value. The
``reason`` is metav1's CauseType (``FieldValueInvalid`` …). Field paths are relative: a fault's path starts at
the schema (``.properties[spec].x-kubernetes-validations[0].rule``, empty for the schema itself), a
violation's at the object (``spec.ports[0]``, empty for the root, which the server shows as ``<nil>``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class NoShownValue(Enum):
    """Marks a finding that shows no value."""

    NO_VALUE = "no value"


NO_VALUE = NoShownValue.NO_VALUE


class FaultKind(Enum):
    """What a refusal of a rule is about."""

    TEXT = "text"
    """How the entry is written: seen without compiling anything."""
    MEANING = "meaning"
    """Whether the rule compiles, and what all rules cost together."""
    SINGLE_COST = "single cost"
    """What one expression may cost."""


@dataclass(frozen=True, slots=True)
class RuleFault:
    """A refusal of one entry of ``x-kubernetes-validations``, or of all of a schema together (cost).

    ``path``: relative to the schema, starts with ``.`` or is empty. ``node``: the same, of the schema node
    that holds the rule. ``message``: the cause's whole text, ``Invalid value: {…}: compilation failed: …``.
    """

    kind: FaultKind
    reason: str
    path: str
    node: str
    detail: str
    message: str


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A rule that does not hold, or could not be computed, for one value of an object.

    ``pieces`` is ``field`` as data: property names and map keys as strings, list indices as integers.
    ``value`` is what the cause shows: the value itself where it is a scalar, the schema's type name (a string)
    where the rule failed to compute; objects and lists are given as they are and by custom not shown.
    """

    reason: str
    field: str
    pieces: tuple[str | int, ...]
    detail: str
    value: Any
    rule: str


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """All that the rules of a schema say of one object.

    ``violations`` refuse the object; ``warnings`` are violations of values that an update left as they were
    (ratcheting), to be sent as Warning headers. ``cost`` is what was spent of the budget, one more than
    that where it did not do.
    """

    violations: list[RuleViolation] = field(default_factory=list)
    warnings: list[RuleViolation] = field(default_factory=list)
    cost: int = 0
