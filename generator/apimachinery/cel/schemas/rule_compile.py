"""One entry of ``x-kubernetes-validations``, compiled: its programs, its costs, or what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.cel.cost.estimate import estimate_cost
from apimachinery.cel.environment import Environment, Program
from apimachinery.cel.schemas.schema_types import MAX_REQUEST, Declared, SchemaTypes, size_in
from apimachinery.cel.syntax.ast import CallNode, Comprehension, ListExpr, MapExpr, Node, Select, StructExpr
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError, CompileError

SELF, OLD_SELF = "self", "oldSelf"


@dataclass(slots=True)
class SchemaRule:
    """The texts of a rule as the schema has them."""

    rule: str
    message: str
    message_expression: str
    reason: str | None
    field_path: str
    optional_old_self: bool | None

    @classmethod
    def read(cls, data: Any) -> SchemaRule:
        """From an entry of the extension; what is not a text reads as none."""
        data = data if isinstance(data, Mapping) else {}

        def text(key: str) -> str:
            value = data.get(key)
            return value if isinstance(value, str) else ""

        optional = data.get("optionalOldSelf")
        reason = data.get("reason")
        return cls(
            text("rule"),
            text("message"),
            text("messageExpression"),
            reason if isinstance(reason, str) else None,
            text("fieldPath"),
            optional if isinstance(optional, bool) else None,
        )

    def as_json(self) -> str:
        """The entry as kube-apiserver prints it."""
        data = {
            "Rule": self.rule,
            "Message": self.message,
            "MessageExpression": self.message_expression,
            "Reason": self.reason,
            "FieldPath": self.field_path,
            "OptionalOldSelf": self.optional_old_self,
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        for char in "<>&\u2028\u2029":
            text = text.replace(char, f"\\u{ord(char):04x}")
        return text


@dataclass(slots=True)
class CompiledRule:
    """A rule's programs. ``error`` and ``message_error`` say why there is none; an empty rule has neither."""

    rule: SchemaRule
    program: Program | None = None
    message_program: Program | None = None
    error: str = ""
    message_error: str = ""
    cost: int = 0
    message_cost: int = 0
    cardinality: int = 0
    uses_old_self: bool = False


class RuleCompiler:
    """Compiles the rules of one schema node, whose type is ``declared``."""

    def __init__(self, base: Environment, types: SchemaTypes, declared: Declared):
        self.declared = declared
        of = declared.type
        self.plain = base.extend(variables={SELF: of, OLD_SELF: of}, provider=types)
        self.optional = base.extend(variables={SELF: of, OLD_SELF: t.optional_of(of)}, provider=types)

    def compile(self, rule: SchemaRule, *, estimate: bool = True) -> CompiledRule:
        """Compile a rule and its message expression."""
        result = CompiledRule(rule, cardinality=MAX_REQUEST // (self.declared.min_size + 1))
        if not rule.rule.strip():
            return result
        env = self.optional if rule.optional_old_self else self.plain
        try:
            node = env.check(rule.rule)
        except CompileError as error:
            result.error = f"compilation failed: {error}"
            return result
        if node.type != t.BOOL:
            result.error = "cel expression must evaluate to a bool"
            return result
        result.uses_old_self = names_variable(node, OLD_SELF)
        try:
            result.program = env.plan(rule.rule, node)
        except CelError as error:
            result.error = f"program instantiation failed: {error}"
            return result
        if estimate:
            result.cost = self.estimate(node)
        if rule.message_expression:
            self.compile_message(env, rule.message_expression, result, estimate)
        return result

    def compile_message(self, env: Environment, source: str, result: CompiledRule, estimate: bool) -> None:
        """Compile the message expression into ``result``."""
        try:
            node = env.check(source)
            if node.type != t.STRING:
                result.message_error = "messageExpression must evaluate to a string"
                return
            result.message_program = env.plan(source, node)
        except CompileError as error:
            result.message_error = f"messageExpression compilation failed: {error}"
            return
        except CelError as error:
            result.message_error = f"messageExpression instantiation failed: {error}"
            return
        if estimate:
            result.message_cost = self.estimate(node)

    def estimate(self, node: Node) -> int:
        """The most that the expression may cost."""
        return estimate_cost(node, lambda path, of: size_in(self.declared, path)).high


def names_variable(node: Node, name: str) -> bool:
    """Whether the checked tree reads the declared variable ``name``."""
    stack: list[Node] = [node]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.name == name:
            return True
        if isinstance(node, Select):
            stack.append(node.operand)
        elif isinstance(node, CallNode):
            stack.extend(node.args)
            if node.target is not None:
                stack.append(node.target)
        elif isinstance(node, ListExpr):
            stack.extend(node.elements)
        elif isinstance(node, MapExpr):
            for key, value, _ in node.entries:
                stack += [key, value]
        elif isinstance(node, StructExpr):
            stack.extend(value for _, value, _, _ in node.entries)
        elif isinstance(node, Comprehension):
            stack += [node.range, node.init, node.condition, node.step, node.result]
    return False
