"""Validity of the rules in a CRD's schema: every refusal, in kube-apiserver's words.

The walk is in the order of the API: children first, then the node's own rules; last the cost of all rules
together. A rule's estimated cost counts as often as its value may occur: the product of the bounds of the lists and
maps around it, or, where one has no bound, as often as the smallest such value fits into a request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.escaping import escape
from apimachinery.cel.schemas.findings import FaultKind, RuleFault
from apimachinery.cel.schemas.rule_compile import CompiledRule, RuleCompiler, SchemaRule
from apimachinery.cel.schemas.rule_paths import RulePathError, read_field_path
from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.cel.values.printing import go_quote
from apimachinery.cel.values.ranges import MAX
from apimachinery.cel.values.types import Type

RULE_COST_LIMIT = 10_000_000
SCHEMA_COST_LIMIT = 100_000_000
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
    "are declared)"
)
EXTENSION = "x-kubernetes-validations"
SELF = "selfType"


def shown_type(of: Type) -> str:
    """A type without the names that objects of schemas are given."""
    if of.kind == "object":
        return "object"
    if of.params:
        return f"{of.name}({', '.join(shown_type(p) for p in of.params)})"
    return str(of)


def cost_message(what: str, cost: int, limit: int) -> str:
    """How far ``cost`` is above ``limit``, and what to do."""
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def find_rule_faults(
    schema: Mapping[str, Any],
    env: Environment,
    *,
    is_root: bool,
    field: str,
    faulty: Collection[str],
) -> list[RuleFault]:
    """All refusals of the rules in ``schema``; see ``crd.check_schema`` for the arguments."""
    walk = _Walk(schema, env, is_root, field, faulty)
    walk.node(schema, "", walk.types.root, 1, None)
    walk.total()
    return walk.faults


@dataclass(frozen=True, slots=True)
class RuleCost:
    """What one rule may cost, times how often it may run; ``type`` is that of ``self``."""

    path: str
    rule: str
    type: str
    cost: int


def rule_costs(schema: Mapping[str, Any], env: Environment, *, is_root: bool = True) -> list[RuleCost]:
    """The estimated cost of every rule of ``schema`` that compiles."""
    walk = _Walk(schema, env, is_root, "openAPIV3Schema", ())
    walk.node(schema, "", walk.types.root, 1, None)
    return walk.costs


class _Walk:
    def __init__(
        self, schema: Mapping[str, Any], env: Environment, is_root: bool, field: str, faulty: Collection[str]
    ):
        self.env = env
        self.field = field
        self.faulty = faulty
        self.types = SchemaTypes(schema, is_root=is_root)
        self.faults: list[RuleFault] = []
        self.cost = 0
        self.dear: list[tuple[int, str, str]] = []
        self.costs: list[RuleCost] = []

    def fault(
        self,
        reason: str,
        node: str,
        path: str,
        detail: str,
        shown: str = "",
        kind: FaultKind = FaultKind.MEANING,
    ) -> None:
        words = {
            "FieldValueRequired": "Required value",
            "FieldValueForbidden": "Forbidden",
            "FieldValueInvalid": "Invalid value",
            "FieldValueNotSupported": "Unsupported value",
            "InternalError": "Internal error",
        }[reason]
        message = f"{words}: {shown}: {detail}" if shown else f"{words}: {detail}"
        self.faults.append(RuleFault(kind, reason, path, node, detail, message))

    def node(
        self,
        schema: Mapping[str, Any],
        path: str,
        declared: Any,
        cardinality: int | None,
        uncorrelatable: str | None,
        name: str = SELF,
    ) -> bool:
        """Walk a node and what is below; whether all of it is free of structural faults and rule-text faults. ``name``
        is what its type is called."""
        clean = path not in self.faulty
        if declared is None and schema.get(EXTENSION):
            # Around the first rules of a branch nothing needs to have a type that CEL knows.
            name = SELF
            declared = self.types.declare(schema, bool(schema.get("x-kubernetes-embedded-resource")), SELF)
        factor = _factor(schema)
        inner = None if cardinality is None or factor is None else min(cardinality * factor, MAX)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            element = declared.element if declared is not None else None
            clean &= self.node(
                values, f"{path}.additionalProperties", element, inner, uncorrelatable, f"{name}.@elem"
            )
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            below = uncorrelatable
            if schema.get("x-kubernetes-map-type") not in (None, "granular", "atomic") and below is None:
                below = self.field + path
            for key in sorted(properties):
                if isinstance(properties[key], Mapping):
                    child, called = self.child(declared, path, key), f"{name}.{escape(key) or key}"
                    clean &= self.node(
                        properties[key], f"{path}.properties[{key}]", child, inner, below, called
                    )
        items = schema.get("items")
        if isinstance(items, Mapping):
            element = declared.element if declared is not None else None
            below = uncorrelatable
            if schema.get("x-kubernetes-list-type") != "map" and below is None:
                below = self.field + path
            clean &= self.node(items, f"{path}.items", element, inner, below, f"{name}.@idx")
        rules = schema.get(EXTENSION)
        if isinstance(rules, list) and rules:
            before = len(self.faults)
            clean &= self.rules(schema, rules, path, declared, cardinality, uncorrelatable, clean)
            if name != SELF:  # each rule sees its own value as the type `selfType`
                self.faults[before:] = [
                    replace(
                        fault,
                        detail=fault.detail.replace(name, SELF),
                        message=fault.message.replace(name, SELF),
                    )
                    for fault in self.faults[before:]
                ]
        return clean

    def child(self, declared: Any, path: str, name: str) -> Any:
        if declared is None or declared.fields is None:
            return None
        return declared.fields.get(escape(name) or "")

    def rules(
        self,
        schema: Mapping[str, Any],
        entries: list[Any],
        path: str,
        declared: Any,
        cardinality: int | None,
        uncorrelatable: str | None,
        clean: bool,
    ) -> bool:
        rules = [SchemaRule.read(entry) for entry in entries]
        before = len(self.faults)
        for index, rule in enumerate(rules):
            self.texts(rule, schema, path, f"{path}.{EXTENSION}[{index}]")
        if len(self.faults) > before:
            return False
        if not clean:
            return False
        if declared is None:
            detail = "internal error: failed to retrieve type information for x-kubernetes-validations"
            self.fault("InternalError", path, f"{path}.{EXTENSION}", detail)
            return True
        compiler = RuleCompiler(self.env, self.types, declared)
        for index, rule in enumerate(rules):
            place = f"{path}.{EXTENSION}[{index}]"
            compiled = compiler.compile(rule)
            self.compiled(compiled, path, place, cardinality, uncorrelatable)
            if not compiled.error:
                times = compiled.cardinality if cardinality is None else cardinality
                shown = shown_type(declared.type)
                self.costs.append(RuleCost(place, rule.rule, shown, min(compiled.cost * times, MAX)))
        return True

    def text_fault(self, reason: str, node: str, path: str, detail: str, shown: str = "") -> None:
        self.fault(reason, node, path, detail, shown, FaultKind.TEXT)

    def texts(self, rule: SchemaRule, schema: Mapping[str, Any], node: str, place: str) -> None:
        """Faults that need no compiler."""
        message = rule.message.strip()
        if not rule.rule.strip():
            self.text_fault("FieldValueRequired", node, f"{place}.rule", "rule is not specified")
        elif rule.message and not message:
            shown = go_quote(rule.message)
            self.text_fault(
                "FieldValueInvalid", node, f"{place}.message", "must be non-empty if specified", shown
            )
        elif "\n" in message:
            shown = go_quote(rule.message)
            self.text_fault(
                "FieldValueInvalid", node, f"{place}.message", "must not contain line breaks", shown
            )
        elif "\n" in rule.rule.strip() and not message:
            detail = "message must be specified if rule contains line breaks"
            self.text_fault("FieldValueRequired", node, f"{place}.message", detail)
        if rule.message_expression and not rule.message_expression.strip():
            detail = "messageExpression must be non-empty if specified"
            self.text_fault("FieldValueRequired", node, f"{place}.messageExpression", detail)
        if rule.reason is not None and rule.reason not in REASONS:
            supported = ", ".join(f'"{reason}"' for reason in REASONS)
            shown = go_quote(rule.reason)
            detail = f"supported values: {supported}"
            self.text_fault("FieldValueNotSupported", node, f"{place}.reason", detail, shown)
        if rule.field_path:
            self.field_path(rule.field_path, schema, node, f"{place}.fieldPath")

    def field_path(self, path: str, schema: Mapping[str, Any], node: str, place: str) -> None:
        shown = go_quote(path)
        if not path.strip():
            self.text_fault("FieldValueInvalid", node, place, "must be non-empty if specified", shown)
        if "\n" in path:
            self.text_fault("FieldValueInvalid", node, place, "must not contain line breaks", shown)
        try:
            read_field_path(path, schema)
        except RulePathError:
            self.text_fault("FieldValueInvalid", node, place, "must be a valid path", shown)

    def compiled(
        self,
        compiled: CompiledRule,
        node: str,
        place: str,
        cardinality: int | None,
        uncorrelatable: str | None,
    ) -> None:
        """Faults of a rule that was given to the compiler."""
        rule = compiled.rule
        times = compiled.cardinality if cardinality is None else cardinality
        cost = min(compiled.cost * times, MAX)
        if cost > RULE_COST_LIMIT:
            detail = cost_message("estimated rule cost", cost, RULE_COST_LIMIT)
            self.fault("FieldValueForbidden", node, f"{place}.rule", detail, kind=FaultKind.SINGLE_COST)
        self.observe(cost, node, f"{place}.rule")
        if compiled.error:
            self.fault("FieldValueInvalid", node, f"{place}.rule", compiled.error, rule.as_json())
        if compiled.message_error:
            shown = rule.as_json()
            self.fault("FieldValueInvalid", node, f"{place}.messageExpression", compiled.message_error, shown)
        elif compiled.message_program is not None:
            if compiled.message_cost > RULE_COST_LIMIT:
                detail = cost_message(
                    "estimated messageExpression cost", compiled.message_cost, RULE_COST_LIMIT
                )
                place_of_message = f"{place}.messageExpression"
                self.fault("FieldValueForbidden", node, place_of_message, detail, kind=FaultKind.SINGLE_COST)
            self.observe(compiled.message_cost, node, f"{place}.messageExpression")
        if compiled.uses_old_self:
            if uncorrelatable is not None:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                self.fault("FieldValueInvalid", node, f"{place}.rule", detail, go_quote(rule.rule))
        elif rule.optional_old_self is not None:
            shown = "true" if rule.optional_old_self else "false"
            detail = "may not be set if oldSelf is not used in rule"
            self.fault("FieldValueInvalid", node, f"{place}.optionalOldSelf", detail, shown)

    def observe(self, cost: int, node: str, path: str) -> None:
        """Count a cost towards the schema's, remembering the four dearest."""
        self.cost = min(self.cost + cost, MAX)
        if cost >= SCHEMA_COST_LIMIT // 100:
            self.dear.append((cost, node, path))
            self.dear.sort(key=lambda entry: -entry[0])
            del self.dear[4:]

    def total(self) -> None:
        """Reports the rules that cost too much together."""
        if self.cost <= SCHEMA_COST_LIMIT:
            return
        for _, node, path in self.dear:
            detail = (
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            )
            self.fault("FieldValueForbidden", node, path, detail)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        self.fault("FieldValueForbidden", "", "", cost_message(what, self.cost, SCHEMA_COST_LIMIT))


def _factor(schema: Mapping[str, Any]) -> int | None:
    """How many values a value of ``schema`` may have at each place below it; None: no bound."""
    kind = schema.get("type")
    if kind == "object":
        if schema.get("additionalProperties") is None:
            return 1
        return _count(schema.get("maxProperties"))
    if kind == "array":
        return _count(schema.get("maxItems"))
    return 0


def _count(value: Any) -> int | None:
    return max(0, int(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
