"""Defaulting as plain functions: ``<group_version>/defaults.py``.

Each type that has rules, or holds a type that has, gets one function; a kind's function is in ``DEFAULTERS``. As in
Kubernetes the rules of the outer type run before those of the types it holds, and each type's in the order of the
rule file. What schemas say themselves (``default``) is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kubewright.emit.code import names
from kubewright.emit.code.layout import definition_class_names
from kubewright.emit.code.render import docstring, header, literal, module, render
from kubewright.emit.code.rule_code import Body, Scope, equals, imports
from kubewright.emit.registry import Options
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.paths import Items, Key, Step, Values
from kubewright.ir.rules import DefaultRule, TypeRules
from kubewright.ir.types import ABSENT, Definition, EmbeddedObject, ListOf, MapOf, Ref, Struct, Type


def emitter(options: Options) -> Emitter:
    """The emitter of ``defaults.py``."""
    return Defaults(options)


@dataclass(frozen=True, slots=True)
class Defaults:
    """One module per group-version with at least one default."""

    options: Options
    name: str = "defaults"

    def emit(self, api: Api) -> Iterable[File]:
        """``defaults.py`` of each group-version."""
        plan = TypePlan.of(api, {(r.group, r.version, r.type_name): r for r in api.fact("defaults") or ()})
        for (group, version), definitions in plan.by_group_version():
            writer = _Module(self.options.package, plan, plan.modules[group, version])
            functions = [writer.function(definition) for definition in definitions]
            kinds = {
                definition.kinds[0][2]: plan.function_name(definition)
                for definition in definitions
                if plan.is_kind(definition)
            }
            if not functions:
                continue
            api_version = f"{group}/{version}" if group else version
            yield File(
                f"{plan.modules[group, version]}/defaults.py",
                module(
                    render(
                        "defaults",
                        header=header(self.options.origins),
                        docstring=docstring(f"Defaults of {api_version} that its schemas do not say."),
                        imports="\n".join(writer.imports()),
                        functions="\n\n\n".join(functions),
                        kinds=[f"{literal(kind)}: {function}" for kind, function in sorted(kinds.items())],
                    )
                ),
            )


Rules = TypeVar("Rules")


@dataclass(slots=True)
class TypePlan(Generic[Rules]):
    """Which definitions need a function because they, or what they hold, have rules."""

    api: Api
    table: dict[str, Definition]
    modules: dict[tuple[str, str], str]
    class_names: dict[str, str]
    rules: dict[str, Rules]
    needed: set[str] = field(default_factory=set)

    @staticmethod
    def of(
        api: Api,
        rules: dict[tuple[str, str, str], Rules],
        enters: Callable[[Rules | None, tuple[Step, ...]], bool] = lambda rules, steps: True,
    ) -> TypePlan[Rules]:
        """The plan for ``rules``, keyed by group, version and the last part of a definition's name. ``enters``
        says whether the type at a place counts as held."""
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        own = {}
        for definition in api.definitions:
            short = definition.name.rpartition(".")[2]
            if found := rules.get((definition.group, definition.version, short)):
                own[definition.name] = found
        plan = TypePlan(
            api,
            {d.name: d for d in api.definitions},
            names.module_names(pairs),
            definition_class_names(api),
            own,
        )
        holders: dict[str, set[str]] = {}
        for definition in api.definitions:
            for steps, name in held_types(definition.value.type):
                if enters(own.get(definition.name), steps):
                    holders.setdefault(name, set()).add(definition.name)
        pending = list(own)
        while pending:
            name = pending.pop()
            if name not in plan.needed:
                plan.needed.add(name)
                pending.extend(holders.get(name, ()))
        return plan

    def by_group_version(self) -> Iterator[tuple[tuple[str, str], list[Definition]]]:
        """The definitions that get a function, kinds first, then by name."""
        groups: dict[tuple[str, str], list[Definition]] = {}
        for definition in self.api.definitions:
            if definition.name in self.needed and not self.is_list(definition):
                groups.setdefault((definition.group, definition.version), []).append(definition)
        for pair in sorted(groups):
            yield (
                pair,
                sorted(groups[pair], key=lambda d: (not self.is_kind(d), self.class_names[d.name])),
            )

    def is_kind(self, definition: Definition) -> bool:
        """Whether a definition is one kind's, and not a list."""
        return len(definition.kinds) == 1 and not self.is_list(definition)

    def is_list(self, definition: Definition) -> bool:
        """Whether a definition is a kind's list: its items are objects of their own."""
        node = definition.value.type
        return (
            len(definition.kinds) == 1
            and isinstance(node, Struct)
            and definition.kinds[0][2].endswith("List")
            and any(member.wire_name == "items" for member in node.fields)
        )

    def function_name(self, definition: Definition, prefix: str = "default") -> str:
        """The function of a definition."""
        return f"{prefix}_{names.attribute_name(self.class_names[definition.name])}".rstrip("_")


def held_types(node: Type, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], str]]:
    """The named types that a type holds, with the way to each, in the order of its fields."""
    if isinstance(node, Ref):
        yield steps, node.name
    elif isinstance(node, ListOf):
        yield from held_types(node.items.type, (*steps, Items()))
    elif isinstance(node, MapOf):
        yield from held_types(node.values.type, (*steps, Values()))
    elif isinstance(node, Struct | EmbeddedObject):
        body = node.body if isinstance(node, EmbeddedObject) else node
        for member in body.fields:
            yield from held_types(member.value.type, (*steps, Key(member.wire_name)))


@dataclass(slots=True)
class _Module:
    package: str
    plan: TypePlan[TypeRules]
    module: str
    uses: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def imports(self) -> list[str]:
        lines = ["from collections.abc import Callable", ""]
        lines += imports(self.uses | {"Json"})
        lines += [f"from {self.package}.{other} import defaults as {other}" for other in sorted(self.others)]
        return lines

    def function(self, definition: Definition) -> str:
        """The function of one definition."""
        plan = self.plan
        class_name = plan.class_names[definition.name]
        scope = Scope(names.attribute_name(class_name))
        body = Body()
        rules = plan.rules.get(definition.name)
        for rule in rules.rules if rules else ():
            write_rule(body, scope, rule)
        for steps, name in held_types(definition.value.type):
            if name not in plan.needed:
                continue
            if name == definition.name and not steps:
                continue
            held = plan.table[name]
            function = plan.function_name(held)
            other = plan.modules[held.group, held.version]
            if other != self.module:
                self.others.add(other)
                function = f"{other}.{function}"
            body.add(scope.walk(steps), f"{function}({scope.variable(steps)})")
        self.uses |= scope.uses
        return (
            f"def {plan.function_name(definition)}({scope.root}: Json) -> None:\n"
            f"    {docstring(f'Fill in what {_article(class_name)} {class_name} leaves out.', 4)}\n"
            f"{body.render()}"
        )


def _article(word: str) -> str:
    return "an" if word[:1] in "AEIO" else "a"


def write_rule(body: Body, scope: Scope, rule: DefaultRule) -> None:
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
