"""The CEL rules of a schema, checked by ``apimachinery.cel``; its findings become field errors here.

Theory. A rule's own texts (is there one, a one-line message, a known reason, a field path that exists) are judged
with the schema; whether it compiles and what it costs only where the schema is sound at its node and below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.cel.schemas.crd import check_schema, compile_rules
from apimachinery.cel.schemas.findings import FaultKind, RuleFault, RuleViolation
from apimachinery.crd.form import Schema
from apimachinery.crd.schema_walk import any_node
from apimachinery.meta.field_errors import NO_VALUE, ROOT, FieldError, Reason
from apimachinery.meta.printing import Printed
from apimachinery.meta.release import RELEASE, current_release

_RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class RuleFaults:
    """``texts`` are faults of the schema, ``compiled`` those of its rules' meaning."""

    texts: list[FieldError]
    compiled: list[FieldError]


def rule_faults(
    schema: Schema, field: str, broken: list[FieldError], *, sound: bool, unchanged: bool
) -> RuleFaults:
    """The refusals of the schema's rules. Nothing is compiled where the schema, or one below, is ``broken``, and
    nothing at all where the whole is not ``sound``.

    ``unchanged``: the stored CRD has the very schema, so the cost of a single rule is not held against it.
    """
    if not any_node(schema, _has_rules):
        return RuleFaults([], [])
    faulty = (
        [_node_of(fault.field.removeprefix(field)) for fault in broken] if sound else list(_nodes(schema, ""))
    )
    texts, compiled = [], []
    # What a definition has already may use everything, as with kube-apiserver.
    release = RELEASE if unchanged else current_release()
    for fault in check_schema(schema, field=field, faulty=frozenset(faulty), version=release):
        if fault.kind is FaultKind.TEXT:
            texts.append(_field_error(fault, field))
        elif not (unchanged and fault.kind is FaultKind.SINGLE_COST):
            compiled.append(_field_error(fault, field))
    return RuleFaults(texts, compiled)


_REASONS = frozenset(reason.value for reason in Reason)


def default_rule_faults(schema: Schema, default: Any, field: str) -> list[FieldError]:
    """What the rules of a schema say of its own default: as a value that stays, then as one that is new."""
    if not any_node(schema, _has_rules):
        return []
    rules = compile_rules(schema, is_root=bool(schema.get("x-kubernetes-embedded-resource")))
    outcome = rules.validate(default, default, field=field, ratchets=False)
    if not outcome.violations:
        outcome = rules.validate(default, field=field)
    return [rule_error(each) for each in outcome.violations]


def rule_error(violation: RuleViolation) -> FieldError:
    """A broken rule as a field error: scalars are shown, objects and lists are not."""
    known = violation.reason in _REASONS  # a CRD may name none that is, and be refused for that
    reason = Reason(violation.reason) if known else Reason.INVALID
    value = NO_VALUE if isinstance(violation.value, (dict, list)) else violation.value
    if reason in (Reason.REQUIRED, Reason.FORBIDDEN):
        value = NO_VALUE
    detail = "" if reason is Reason.DUPLICATE else violation.detail
    return FieldError(reason, violation.field or ROOT, detail, value)


def _has_rules(schema: Schema) -> bool:
    return _RULES in schema


def _nodes(schema: Schema, path: str) -> Iterator[str]:
    """The paths of all nodes that may have rules."""
    yield path
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.properties[{name}]")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _nodes(schema[keyword], f"{path}.{keyword}")


def _node_of(path: str) -> str:
    """The node of a fault: its path without the keyword at its end. A property's name may hold dots."""
    depth = 0
    for place in range(len(path) - 1, -1, -1):
        depth += {"]": 1, "[": -1}.get(path[place], 0)
        if path[place] == "." and depth == 0:
            return path[:place]
    return ""


def _field_error(fault: RuleFault, field: str) -> FieldError:
    reason = Reason(fault.reason)
    bare = FieldError(reason, f"{field}{fault.path}", fault.detail)
    if fault.message == bare.body:
        return bare
    shown = fault.message.removeprefix(f"{FieldError(reason, '').body}: ").removesuffix(f": {fault.detail}")
    return FieldError(reason, bare.field, fault.detail, Printed(shown))
