"""CEL rules of CRDs: compiled with their costs, and run with what they spend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apimachinery.cel.environment import PER_CALL_LIMIT, Environment
from apimachinery.cel.schemas.crd import ABSENT, CompiledRules, compile_rules
from apimachinery.cel.schemas.rule_compile import CompiledRule, RuleCompiler, SchemaRule
from apimachinery.cel.schemas.rule_runs import compile_node
from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.crd.rules import rule_error

from . import faults
from .agreement import COST, TEXT, VERDICT, Answer, Line, Suite

_UNLIMITED = 2**63 - 1


def compiled(line: Line) -> Iterator[Answer]:
    """Each rule of a schema: what is wrong with it, its highest costs, how often it may stand in an object."""
    types = SchemaTypes(line["schema"], is_root=_is_root(line["schema"]))
    declared = types.root
    theirs = line["out"] or []
    rules = [SchemaRule.read(entry) for entry in line["schema"].get("x-kubernetes-validations") or ()]
    if declared is None:
        yield Answer(VERDICT, [_wrong(each) for each in theirs], [True for _ in rules])
        return
    compiler = RuleCompiler(Environment.kubernetes("1.36"), types, declared)
    ours = [compiler.compile(rule) for rule in rules]
    yield Answer(
        VERDICT, [_wrong(each) for each in theirs], [bool(each.error or each.message_error) for each in ours]
    )
    yield Answer(
        TEXT,
        [_named(each.get("err") or each.get("msgerr") or "") for each in theirs],
        [_error(each) for each in ours],
    )
    yield Answer(
        COST,
        [[each["maxcost"], each["msgcost"]] for each in theirs],
        [[each.cost, each.message_cost] for each in ours],
    )


_UNIQUE = re.compile(r"selfType\d+")


def _named(text: str) -> str:
    """With the type of ``self`` called as we call it: Kubernetes gives it a number, another one each time."""
    return _UNIQUE.sub("selfType", text)


_OF_OBJECTS = re.compile(r"\bself\.(apiVersion|kind|metadata)\b")


def _is_root(schema: dict[str, Any]) -> bool:
    """Lines do not say it: embedded objects, and where rules speak of a field that only whole objects have."""
    spoken = {
        name
        for rule in schema.get("x-kubernetes-validations") or ()
        for name in _OF_OBJECTS.findall(rule["rule"])
    }
    return bool(schema.get("x-kubernetes-embedded-resource")) or bool(
        spoken - set(schema.get("properties") or {})
    )


def _wrong(rule: dict[str, Any]) -> bool:
    return bool(rule.get("err") or rule.get("msgerr"))


def _error(rule: CompiledRule) -> str:
    return rule.error or rule.message_error


def run(line: Line) -> Iterator[Answer]:
    """An object held against the rules: errors, and what is left of the budget."""
    root = "" if line["path"] in ("<nil>", None) else line["path"]
    rules = _rules(line)
    old = ABSENT if line["old"] is None else line["old"]
    outcome = rules.validate(line["obj"], old, budget=line["budget"], field=root)
    found = [rule_error(each) for each in outcome.violations]
    if not line["ratchet"]:
        found += [rule_error(each) for each in outcome.warnings]
    wanted = [{**each, "text": _named(each["text"])} for each in line["errs"] or ()]
    yield from faults.compared(wanted, found)
    left = line["budget"] - outcome.cost
    yield Answer(COST, line["left"], left)


def _rules(line: Line) -> CompiledRules:
    if line["limit"] == PER_CALL_LIMIT:
        return compile_rules(line["schema"], is_root=line["root"])
    env = replace(Environment.kubernetes("1.36"), limit=line["limit"] or _UNLIMITED)
    types = SchemaTypes(line["schema"], is_root=line["root"])
    return CompiledRules(compile_node(line["schema"], env, types, types.root, line["root"]))


SUITE = Suite("cel-rules", ("cel-rules.jsonl",), {"celcompile": compiled, "celvalidate": run})
