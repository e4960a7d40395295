"""Rules of CustomResourceDefinitions: are they valid, and does an object keep them.

    faults = check_schema(schema)               # one version's openAPIV3Schema: all refusals of its rules
    rules = compile_rules(schema)               # once per schema
    outcome = rules.validate(obj, old)          # per write; ``old`` only on update

Callers run ``validate`` after structural validation succeeded for the object; where it did not, kube-apiserver
adds one cause at ``<nil>`` instead of running the rules: ``NOT_CHECKED``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.correlation import ABSENT, Absent
from apimachinery.cel.schemas.findings import RuleFault, RuleOutcome
from apimachinery.cel.schemas.rule_checks import find_rule_faults
from apimachinery.cel.schemas.rule_runs import RuleNode, RuleRun, compile_node, has_rules
from apimachinery.cel.schemas.schema_types import SchemaTypes

__all__ = [
    "ABSENT",
    "NOT_CHECKED",
    "RUNTIME_BUDGET",
    "Absent",
    "CompiledRules",
    "check_schema",
    "compile_rules",
]

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
RUNTIME_BUDGET = 10_000_000
DEFAULT_VERSION = "1.36"


class CompiledRules:
    """The compiled rules of one schema. ``has_rules`` is False where there is nothing to run."""

    __slots__ = ("_node", "has_rules")

    def __init__(self, node: RuleNode | None):
        self._node = node
        self.has_rules = node is not None

    def validate(
        self,
        obj: Any,
        old: Any = ABSENT,
        *,
        budget: int = RUNTIME_BUDGET,
        field: str = "",
        pieces: tuple[str | int, ...] = (),
        ratchets: bool = True,
    ) -> RuleOutcome:
        """Run every rule on ``obj`` (plain JSON). ``field`` and ``pieces`` are put before violations' paths.

        With ``old`` transition rules run where values correlate, and violations of unchanged values become
        warnings if the write ``ratchets``. Never raises for any JSON value.
        """
        if self._node is None:
            return RuleOutcome()
        return RuleRun(budget).start(self._node, obj, old, field, pieces, ratchets=ratchets)


def check_schema(
    schema: Mapping[str, Any],
    *,
    is_root: bool = True,
    field: str = "openAPIV3Schema",
    faulty: Collection[str] = (),
    version: str = DEFAULT_VERSION,
) -> list[RuleFault]:
    """Return every refusal of the rules in ``schema``, children before parents, the whole schema last.

    ``field`` is the schema's own path, for messages that name it. ``faulty`` are the paths of nodes with
    structural faults, relative as in ``RuleFault.node``: rules there and around are not compiled.
    """
    env = Environment.kubernetes(version)
    return find_rule_faults(schema, env, is_root=is_root, field=field, faulty=faulty)


def compile_rules(
    schema: Mapping[str, Any], *, is_root: bool = True, version: str = DEFAULT_VERSION
) -> CompiledRules:
    """Compile the rules of ``schema``; a rule that does not compile becomes a violation when it is run.

    Rules within ``allOf`` are run next to others only: as in kube-apiserver, a schema with no other rule has none.
    """
    if not has_rules(schema):
        return CompiledRules(None)
    types = SchemaTypes(schema, is_root=is_root)
    return CompiledRules(compile_node(schema, Environment.kubernetes(version), types, types.root, is_root))
