"""Rules of CustomResourceDefinitions: are they valid, and does an object keep them.

    faults = check_schema(schema)               # one version's openAPIV3Schema: all refusals of its rules
    rules = compile_rules(schema)               # once per schema
    outcome = rules.validate(obj, old)          # per write; ``old`` only on update

Callers run ``validate`` after structural validation succeeded for the object; where it did not, kube-apiserver
adds one cause at ``<nil>`` instead of running the rules: ``NOT_CHECKED``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from .findings import RuleFault, RuleOutcome

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
RUNTIME_BUDGET = 10_000_000


class Absent:
    """No old value: the object is being created."""


ABSENT = Absent()


class Rules(Protocol):
    """The compiled rules of one schema."""

    has_rules: bool

    def validate(
        self, obj: Any, old: Any = ABSENT, *, budget: int = RUNTIME_BUDGET, field: str = ""
    ) -> RuleOutcome:
        """Run every rule on ``obj`` (plain JSON). ``field`` is put before the paths of violations.

        With ``old`` transition rules run where values correlate, and violations of unchanged values become
        warnings. Never raises for any JSON value.
        """
        ...


def check_schema(schema: Mapping[str, Any], *, is_root: bool = True) -> list[RuleFault]:
    """Return every refusal of the rules in ``schema``, in kube-apiserver's order (children before parents)."""
    raise NotImplementedError


def compile_rules(schema: Mapping[str, Any], *, is_root: bool = True) -> Rules:
    """Compile the rules of ``schema``; a rule that does not compile becomes a violation when it is run."""
    raise NotImplementedError
