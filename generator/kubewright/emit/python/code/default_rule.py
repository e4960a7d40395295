"""The code of one default rule, as ``defaults.py`` and ``strategies.py`` write it."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.emit.code.render import literal
from kubewright.emit.python.code.rule_code import FunctionBody, Scope, equals
from kubewright.ir.paths import Items, Key, Step
from kubewright.ir.rules import DefaultRule
from kubewright.ir.types import ABSENT


def write_rule(body: FunctionBody, scope: Scope, rule: DefaultRule) -> None:
    """Adds the code of one default rule."""
    steps = rule.target.steps
    last = steps[-1] if steps else None
    if not isinstance(last, Key):
        body.add((*scope.walk(steps), *_conditions(scope, rule, steps)), *_statement(scope, rule, "", steps))
        return
    anchor, holder = scope.anchor(rule.target), steps[:-1]
    if rule.create:
        headers = (
            *scope.walk(anchor),
            *_conditions(scope, rule, anchor),
            *scope.walk(holder, anchor, create=True),
        )
    else:
        headers = (*scope.walk(holder), *_conditions(scope, rule, anchor, holder))
    target = f"{scope.variable(holder)}[{literal(last.name)}]"
    guard, value = _value(scope, rule, anchor)
    if rule.action == "remove":
        body.add(headers, f"{scope.variable(holder)}.pop({literal(last.name)}, None)")
    elif rule.action == "default-entries":
        source = scope.read(rule.copy, anchor) if rule.copy else "None"
        function = scope.use("default_entries")
        body.add(headers, f"{function}({scope.variable(holder)}, {literal(last.name)}, {source})")
    else:
        tests = [guard] if guard else []
        if rule.action == "default":
            missing = (
                f"not {scope.variable(holder)}.get({literal(last.name)})"
                if rule.zero
                else f"{literal(last.name)} not in {scope.variable(holder)}"
            )
            tests.insert(0, missing)
        body.add((*headers, *(f"if {test}" for test in tests)), f"{target} = {value}")


def _conditions(
    scope: Scope, rule: DefaultRule, anchor: tuple[Step, ...], bound: tuple[Step, ...] = ()
) -> tuple[str, ...]:
    return tuple(f"if {scope.condition(condition, anchor, bound)}" for condition in rule.when)


def _statement(scope: Scope, rule: DefaultRule, target: str, steps: tuple[Step, ...]) -> tuple[str, ...]:
    scope.use(f"defaulters.{rule.function}")
    return (f"{rule.function}({scope.variable(steps)})",)


def _value(scope: Scope, rule: DefaultRule, anchor: tuple[Step, ...]) -> tuple[str, str]:
    """A test that must hold before there is a value (or nothing), and the value."""
    if rule.copy is not None:
        return f"(found := {scope.read(rule.copy, anchor)}) is not None", f"{scope.use('copied')}(found)"
    if rule.text:
        parts = ", ".join(_text_parts(rule.text))
        owner = scope.variable(anchor)
        value = "text.lower()" if rule.lower else "text"
        return f"(text := {scope.use('joined')}({owner}, {parts})) is not None", value
    if rule.collect is not None:
        return "", _collected(scope, rule)
    return "", literal(rule.value) if rule.value is not ABSENT else "None"


def _text_parts(text: str) -> Iterator[str]:
    """``{a.b}List`` as the arguments of ``joined``: a tuple of keys for each path, literals between."""
    rest = text
    while rest:
        before, brace, after = rest.partition("{")
        if before:
            yield literal(before)
        if not brace:
            return
        path, _, rest = after.partition("}")
        yield literal(tuple(path.split(".")))


def _collected(scope: Scope, rule: DefaultRule) -> str:
    assert rule.collect is not None
    steps = rule.collect.steps
    index = next(i for i, step in enumerate(steps) if isinstance(step, Items))
    item, name = steps[index], steps[-1]
    assert isinstance(item, Items) and isinstance(name, Key)
    keys = [step.name for step in steps[:index] if isinstance(step, Key)]
    owner = scope.root
    if keys[:-1]:
        owner = f"{scope.use('struct')}({owner}, {', '.join(literal(key) for key in keys[:-1])}) or {{}}"
    test = f"item.get({literal(item.field)}) {equals(item.value)} and " if item.field else ""
    return (
        f"[item[{literal(name.name)}] for item in {scope.use('items')}({owner}, {literal(keys[-1])}) "
        f"if {test}{literal(name.name)} in item]"
    )
