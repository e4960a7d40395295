"""Running a schema's rules on an object.

The walk is kube-apiserver's: the rules of a value first, in their order, then those of its items, map values and
fields. Rules of null values are not run. Rules that read ``oldSelf`` run where there is an old value, or with an
optional one where they ask for it. A budget is shared by all; when it is spent nothing more is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apimachinery.cel.environment import Environment, Outcome
from apimachinery.cel.schemas.correlation import ABSENT, NOTHING, Absent, Correlation, Pair, old_item
from apimachinery.cel.schemas.escaping import escape
from apimachinery.cel.schemas.findings import RuleOutcome, RuleViolation
from apimachinery.cel.schemas.rule_checks import EXTENSION
from apimachinery.cel.schemas.rule_compile import CompiledRule, RuleCompiler, SchemaRule
from apimachinery.cel.schemas.rule_paths import RulePathError, read_field_path, show_path
from apimachinery.cel.schemas.schema_types import Declared, SchemaTypes
from apimachinery.cel.schemas.schema_values import converter
from apimachinery.cel.values.errors import CostLimitError
from apimachinery.cel.values.printing import go_quote
from apimachinery.cel.values.values import ABSENT as NO_VALUE
from apimachinery.cel.values.values import Optional

OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
MESSAGE_OUT_OF_BUDGET = (
    "messageExpression evaluation failed due to running out of cost budget, "
    "no further validation rules will be run"
)
TOO_DEAR = "no further validation rules will be run due to call cost exceeds limit for"
NO_MATCH = "call arguments did not match a supported operator, function or macro signature"
MAX_MESSAGE = 5 * 1024
_TRIM = " \t\n\v\f\r\x85\xa0"

Pieces = tuple[str | int, ...]


class _Spent(Exception):
    """Nothing more may be run."""


class RuleNode:
    """The rules of one schema node and of those below it; ``all_of``: what its ``allOf`` adds for the same value."""

    __slots__ = ("all_of", "convert", "fields", "items", "paths", "rules", "schema", "type", "values")

    def __init__(self, schema: Mapping[str, Any]):
        self.schema = schema
        kind = schema.get("type")
        self.type = kind if isinstance(kind, str) else ""
        self.rules: list[CompiledRule] = []
        self.paths: list[tuple[str, Pieces]] = []
        self.convert: Any = None
        self.items: RuleNode | None = None
        self.values: RuleNode | None = None
        self.fields: dict[str, RuleNode] = {}
        self.all_of: list[RuleNode] = []


def compile_node(
    schema: Mapping[str, Any], env: Environment, types: SchemaTypes, declared: Declared | None, is_root: bool
) -> RuleNode | None:
    """Compile all rules at and below ``schema``; None if there are none."""
    return _Compiler(env, types).node(schema, schema, declared, is_root)


class _Compiler:
    def __init__(self, env: Environment, types: SchemaTypes):
        self.env = env
        self.types = types

    def node(
        self, schema: Mapping[str, Any], spine: Mapping[str, Any], declared: Declared | None, is_root: bool
    ) -> RuleNode | None:
        """The rules of ``schema`` for values of ``spine``, which is itself or the schema that it is ``allOf`` of."""
        node = RuleNode(spine)
        if declared is None:
            return None
        for place in ("items", "additionalProperties"):
            below, shape = schema.get(place), spine.get(place)
            if isinstance(below, Mapping) and isinstance(shape, Mapping):
                found = self.node(below, shape, declared.element, _is_embedded(shape))
                if place == "items":
                    node.items = found
                else:
                    node.values = found
        properties = spine.get("properties") or {}
        for name, sub in (schema.get("properties") or {}).items():
            shape = properties.get(name)
            if (
                not isinstance(sub, Mapping)
                or not isinstance(shape, Mapping)
                or not has_rules(sub, nested=True)
            ):
                continue
            compiled = self.node(sub, shape, self.field(declared, shape, name), _is_embedded(shape))
            if compiled is not None:
                node.fields[name] = compiled
        self.add_rules(node, schema, declared, is_root)
        for part in schema.get("allOf") or ():
            if isinstance(part, Mapping) and has_rules(part, nested=True):
                compiled = self.node(part, spine, declared, is_root)
                if compiled is not None:
                    node.all_of.append(compiled)
        if node.rules or node.items or node.values or node.fields or node.all_of:
            return node
        return None

    def field(self, declared: Declared, schema: Mapping[str, Any], name: str) -> Declared | None:
        identifier = escape(name)
        if identifier is None:
            return self.types.declare(schema, _is_embedded(schema), f"{declared.type.name}.{name}")
        return declared.fields.get(identifier) if declared.fields else None

    def add_rules(self, node: RuleNode, schema: Mapping[str, Any], declared: Declared, is_root: bool) -> None:
        entries = schema.get(EXTENSION)
        if not isinstance(entries, list) or not entries:
            return
        compiler = RuleCompiler(self.env, self.types, declared)
        for entry in entries:
            rule = SchemaRule.read(entry)
            node.rules.append(compiler.compile(rule, estimate=False))
            node.paths.append(_field_path(rule, node.schema))
        node.convert = converter(node.schema, is_root)


def _is_embedded(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def has_rules(schema: Mapping[str, Any], *, nested: bool = False) -> bool:
    """Whether there are rules at or below ``schema``; ``nested``: those within ``allOf`` count too."""
    stack: list[Any] = [schema]
    while stack:
        current = stack.pop()
        if not isinstance(current, Mapping):
            continue
        if current.get(EXTENSION):
            return True
        stack.append(current.get("items"))
        stack.append(current.get("additionalProperties"))
        if nested:
            stack.extend(current.get("allOf") or ())
        properties = current.get("properties")
        if isinstance(properties, Mapping):
            stack.extend(properties.values())
    return False


def _field_path(rule: SchemaRule, schema: Mapping[str, Any]) -> tuple[str, Pieces]:
    try:
        pieces = read_field_path(rule.field_path, schema) if rule.field_path else []
    except RulePathError:
        pieces = []
    return show_path(pieces), tuple(name for name, _ in pieces)


class RuleRun:
    """One validation of one object."""

    def __init__(self, budget: int):
        self.budget = budget
        self.left = budget
        self.outcome_violations: list[RuleViolation] = []
        self.outcome_warnings: list[RuleViolation] = []

    def start(
        self, node: RuleNode, obj: Any, old: Any, field: str, pieces: Pieces, *, ratchets: bool
    ) -> RuleOutcome:
        """Run everything; never raises for JSON values."""
        correlation = Correlation(Pair(obj, old)) if ratchets and not isinstance(old, Absent) else NOTHING
        try:
            self.value(node, obj, old, field, pieces, correlation)
        except _Spent:
            self.left = -1
        return RuleOutcome(self.outcome_violations, self.outcome_warnings, self.budget - self.left)

    def value(
        self, node: RuleNode, obj: Any, old: Any, field: str, pieces: Pieces, correlation: Correlation
    ) -> None:
        if obj is None:
            return
        if node.rules:
            self.rules(node, obj, ABSENT if old is None else old, field, pieces, correlation)
        for part in node.all_of:
            # What is wrong by an ``allOf`` is an old fault only where something around the value is unchanged.
            self.value(part, obj, old, field, pieces, Correlation(None, correlation.parent))
        if isinstance(obj, list):
            if node.items is not None:
                for index, item in enumerate(obj):
                    self.value(
                        node.items,
                        item,
                        old_item(node.schema, old, item),
                        f"{field}[{index}]",
                        (*pieces, index),
                        correlation.item(node.schema, item),
                    )
        elif isinstance(obj, dict):
            self.members(node, obj, old if isinstance(old, dict) else {}, field, pieces, correlation)

    def members(
        self,
        node: RuleNode,
        obj: dict[str, Any],
        old: dict[str, Any],
        field: str,
        pieces: Pieces,
        correlation: Correlation,
    ) -> None:
        if node.values is not None:
            for key in sorted(obj):
                below = correlation.field(node.schema, key, obj[key])
                old_value = old.get(key, ABSENT)
                self.value(node.values, obj[key], old_value, f"{field}[{key}]", (*pieces, key), below)
        for name in sorted(node.fields):
            if name in obj:
                below = correlation.field(node.schema, name, obj[name])
                place = f"{field}.{name}" if field else name
                old_value = old.get(name, ABSENT)
                self.value(node.fields[name], obj[name], old_value, place, (*pieces, name), below)

    def fault(
        self, node: RuleNode, rule: SchemaRule, field: str, pieces: Pieces, detail: str
    ) -> RuleViolation:
        return RuleViolation("FieldValueInvalid", field, pieces, detail, node.type, rule.rule)

    def rules(
        self, node: RuleNode, obj: Any, old: Any, field: str, pieces: Pieces, correlation: Correlation
    ) -> None:
        convert = node.convert
        value = convert(obj) if convert else obj
        plain: dict[str, Any] = {"self": value}
        has_old = not isinstance(old, Absent)
        old_value: Any = None
        if has_old and any(rule.uses_old_self for rule in node.rules):
            old_value = convert(old) if convert else old
            plain["oldSelf"] = old_value
        add = self.outcome_violations.append
        if self.left <= 0:
            add(self.fault(node, node.rules[0].rule, field, pieces, OUT_OF_BUDGET))
            raise _Spent
        for index, compiled in enumerate(node.rules):
            rule = compiled.rule
            if compiled.error:
                add(self.fault(node, rule, field, pieces, f"rule compile error: {compiled.error}"))
                continue
            program = compiled.program
            if program is None:
                continue
            variables = plain
            if rule.optional_old_self:
                variables = {"self": value, "oldSelf": Optional(old_value) if has_old else NO_VALUE}
            elif compiled.uses_old_self and not has_old:
                continue
            outcome = program.run(variables)
            self.spend(outcome, node, rule, field, pieces)
            if outcome.error is not None:
                self.failed(outcome, node, rule, field, pieces)
            elif outcome.value is not True:
                self.broken(node, compiled, node.paths[index], obj, plain, field, pieces, correlation)

    def spend(self, outcome: Outcome, node: RuleNode, rule: SchemaRule, field: str, pieces: Pieces) -> None:
        if outcome.cost > self.left:
            self.outcome_violations.append(self.fault(node, rule, field, pieces, OUT_OF_BUDGET))
            raise _Spent
        self.left -= outcome.cost

    def failed(self, outcome: Outcome, node: RuleNode, rule: SchemaRule, field: str, pieces: Pieces) -> None:
        """Reports a rule that could not be computed."""
        error, name = outcome.error, rule.message.strip(_TRIM) or rule.rule.strip(_TRIM)
        add = self.outcome_violations.append
        if isinstance(error, CostLimitError):
            detail = f"'{error}': {TOO_DEAR} rule: {name}"
            add(self.fault(node, rule, field, pieces, detail))
            raise _Spent
        if str(error).startswith("no such overload"):
            detail = f"'{error}': {NO_MATCH} for rule: {name}"
        else:
            detail = f"{error} evaluating rule: {name}"
        add(self.fault(node, rule, field, pieces, detail))

    def broken(
        self,
        node: RuleNode,
        compiled: CompiledRule,
        path: tuple[str, Pieces],
        obj: Any,
        variables: dict[str, Any],
        field: str,
        pieces: Pieces,
        correlation: Correlation,
    ) -> None:
        """Reports a rule that does not hold."""
        rule = compiled.rule
        if path[0]:
            field = f"{field}.{path[0]}" if field else path[0]
            pieces = (*pieces, *path[1])
        ratchet = not compiled.uses_old_self and correlation.unchanged()
        add = (self.outcome_warnings if ratchet else self.outcome_violations).append
        text = None
        if compiled.message_program is not None:
            outcome = compiled.message_program.run(variables)
            wrong = ""
            if outcome.cost > self.left:
                wrong = MESSAGE_OUT_OF_BUDGET
            elif isinstance(outcome.error, CostLimitError):
                quoted = go_quote(rule.message_expression)
                wrong = f"{TOO_DEAR} messageExpression: {quoted}"
            if wrong:
                add(RuleViolation("FieldValueInvalid", field, pieces, wrong, node.type, rule.rule))
                raise _Spent
            self.left -= outcome.cost
            text = _message(outcome)
        if text is None:
            text = rule.message.strip(_TRIM) if rule.message else f"failed rule: {rule.rule.strip(_TRIM)}"
        reason = rule.reason or "FieldValueInvalid"
        add(RuleViolation(reason, field, pieces, text, obj, rule.rule))


def _message(outcome: Outcome) -> str | None:
    """The text of a message expression, or None where it may not be used."""
    if outcome.error is not None or not isinstance(outcome.value, str):
        return None
    text = outcome.value.strip(_TRIM)
    too_long = len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE
    return None if not text or too_long or "\n" in text else text
