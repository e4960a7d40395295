"""What schemas cannot say about a valid object, as plain functions: ``<group_version>/validation.py``.

Each type with checks, or holding a type with checks, gets a generator function of its value and path; a kind's
function takes the new object and the stored one, gives a list, and is in ``VALIDATORS``; those of subresources are in
``SUBRESOURCE_VALIDATORS``. Checks run in the order of
the rule file; types held by fields that no line goes ``into`` come after a type's own checks, in the order of the
fields. ``status`` is never gone into by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.render import docstring, literal, module_of
from kubewright.emit.interface import Options
from kubewright.emit.python.code.rule_code import FunctionBody, Scope, equals, imports
from kubewright.emit.python.code.type_plan import TypePlan
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.entering import enters, held_types
from kubewright.ir.paths import Items, Key, Step
from kubewright.ir.rules import CheckRule, TypeChecks
from kubewright.ir.shape import type_at
from kubewright.ir.types import Definition, Scalar
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
    return Validation(options)


@dataclass(frozen=True, slots=True)
class Validation:
    """One module per group-version with at least one check."""

    options: Options
    name: str = "validation"

    def emit(self, api: Api) -> Iterable[File]:
        """``validation.py`` of each group-version."""
        checks = {(c.group, c.version, c.type_name): c for c in api.fact("validation") or ()}
        plan = TypePlan.of(api, checks, enters)
        for (group, version), definitions in plan.by_group_version():
            writer = _Module(self.options.package, plan, plan.modules[group, version])
            functions = [writer.type_function(definition) for definition in definitions]
            kinds = {d.kinds[0][2]: d for d in definitions if plan.is_kind(d)}
            functions += [writer.kind_function(definition) for definition in kinds.values()]
            api_version = join_api_version(group, version)
            yield File(
                f"{plan.modules[group, version]}/validation.py",
                module_of(
                    "validation",
                    self.options.origins,
                    f"What objects of {api_version} must obey beside their schemas.",
                    imports="\n".join(writer.imports()),
                    functions="\n\n\n".join(functions),
                    kinds=[
                        f"{literal(kind)}: {plan.function_name(definition, 'validate')}"
                        for kind, definition in sorted(kinds.items())
                    ],
                    subresources=[
                        f"({literal(kind)}, {literal(subresource)}): "
                        f"check_{names.attribute_name(subresource)}_of_{names.attribute_name(kind)}"
                        for kind, definition in sorted(kinds.items())
                        for subresource, _ in _subresources(plan.rules.get(definition.name))
                    ],
                ),
            )


def _subresources(rules: TypeChecks | None) -> tuple[tuple[str, tuple[CheckRule, ...]], ...]:
    return rules.on_subresource if rules else ()


def _phases(rules: TypeChecks | None) -> tuple[CheckRule, ...]:
    """The lines about objects that are created or updated."""
    return (*rules.on_create, *rules.on_update) if rules else ()


def _entered(rules: Iterable[CheckRule]) -> set[tuple[Step, ...]]:
    """The fields that lines go into."""
    return {rule.target.steps for rule in rules if rule.is_into}


def _check_imports(modules: Iterable[str]) -> list[str]:
    """The import lines of modules below ``apimachinery.kinds``, given by their dotted paths."""
    homes: dict[str, list[str]] = {}
    for path in sorted(modules):
        folder, _, module_name = path.rpartition(".")
        homes.setdefault(f"apimachinery.kinds.{folder}".rstrip("."), []).append(module_name)
    return [f"from {home} import {', '.join(homes[home])}" for home in sorted(homes)]


@dataclass(slots=True)
class _Module:
    package: str
    plan: TypePlan[TypeChecks]
    module: str
    uses: set[str] = field(default_factory=set)
    checks: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def imports(self) -> list[str]:
        lines = ["from collections.abc import Callable, Iterator", ""]
        lines += sorted(
            [
                "from apimachinery.meta.field_errors import FieldError",
                *_check_imports(self.checks),
                *imports(self.uses | {"Json"}),
            ]
        )
        lines += [
            f"from {self.package}.{other} import validation as {other}" for other in sorted(self.others)
        ]
        return lines

    def name(self, definition: Definition) -> str:
        """The generator function of a type."""
        return self.plan.function_name(definition, "check")

    def type_function(self, definition: Definition) -> str:
        """The generator function of one definition."""
        plan = self.plan
        class_name = plan.class_names[definition.name]
        rules = plan.rules.get(definition.name)
        given = rules.given if rules else ()
        scope = Scope(names.attribute_name(class_name))
        body = FunctionBody(pure=True)
        held = self._held(definition)
        mentioned = _entered(_phases(rules))
        for rule in rules.checks if rules else ():
            if rule.is_into:
                mentioned.add(rule.target.steps)
                if rule.target.steps in held:
                    self._enter(body, scope, rule.target.steps, held[rule.target.steps], rule)
            else:
                self._check(body, scope, rule, definition)
        for steps, name in held.items():
            if steps not in mentioned:
                self._enter(body, scope, steps, name)
        self.uses |= scope.uses
        remembers = rules is not None and rules.remembered
        if remembers:
            self.checks.add("remembered")
        return (
            f"{'@remembered.unless_known' + chr(10) if remembers else ''}"
            f"def {self.name(definition)}({scope.root}: Json, prefix: str"
            f"{''.join(f', given_{each}: object = None' for each in given)}) -> Iterator[FieldError]:\n"
            f"    {docstring(f'What is wrong with {_article(class_name)} {class_name}.', 4)}\n"
            f"{body.render() or '    yield from ()'}"
        )

    def _held(self, definition: Definition) -> dict[tuple[Step, ...], str]:
        """The types with checks that a definition holds, by the way to each."""
        rules = self.plan.rules.get(definition.name)
        return {
            steps: name
            for steps, name in held_types(definition.value.type)
            if name in self.plan.needed and enters(rules, steps)
        }

    def kind_function(self, definition: Definition) -> str:
        """The function of one kind over the new and the stored object, with those it calls."""
        rules = self.plan.rules.get(definition.name)
        kind = definition.kinds[0][2]
        word = names.attribute_name(kind)
        functions: list[str] = []
        calls: list[str] = []
        for phase, lines, arguments in (
            ("create", rules.on_create if rules else (), "new"),
            ("update", rules.on_update if rules else (), "new, old"),
        ):
            if not lines:
                continue
            scope, body = Scope("new"), FunctionBody(pure=True)
            held = self._held(definition)
            for rule in lines:
                if not rule.is_into:
                    self._check(body, scope, rule, definition)
                elif rule.target.steps in held:
                    self._enter(body, scope, rule.target.steps, held[rule.target.steps], rule)
            self.uses |= scope.uses
            parameters = ", ".join(f"{name}: Json" for name in arguments.split(", "))
            text = {
                "create": f"What is wrong with a new {kind} and may be so in one that is stored.",
                "update": f"What may not change in {_article(kind)} {kind}.",
            }[phase]
            functions.append(
                f'def check_{word}_{phase}({parameters}, prefix: str = "") -> Iterator[FieldError]:\n'
                f"    {docstring(text, 4)}\n{body.render()}"
            )
            calls += [
                f"    if old is {'' if phase == 'create' else 'not '}None:",
                f"        errors.extend(check_{word}_{phase}({arguments}))",
            ]
        first = f'{self.name(definition)}(new, "")'
        body_lines = (
            [f"    errors = list({first})", *calls, "    return errors"]
            if calls
            else [f"    return list({first})"]
        )
        public = "\n".join(
            [
                f"def {self.plan.function_name(definition, 'validate')}"
                "(new: Json, old: Json | None = None) -> list[FieldError]:",
                f"    {docstring(f'The faults of a new {kind}, or of one that is to replace the stored one.', 4)}",
                *body_lines,
            ]
        )
        functions += [
            self._subresource_function(definition, *each) for each in (rules.on_subresource if rules else ())
        ]
        return "\n\n\n".join([public, *functions])

    def _subresource_function(
        self, definition: Definition, subresource: str, rules: tuple[CheckRule, ...]
    ) -> str:
        """The function of one subresource's writes; ``into: ''`` asks everything that is asked of the object too."""
        kind = definition.kinds[0][2]
        scope, body = Scope("new"), FunctionBody(pure=True)
        for rule in rules:
            if rule.is_into:
                body.add((), f"yield from {self.name(definition)}(new, prefix)")
            else:
                self._check(body, scope, rule, definition)
        self.uses |= scope.uses
        return (
            f"def check_{names.attribute_name(subresource)}_of_{names.attribute_name(kind)}"
            '(new: Json, old: Json, prefix: str = "") -> Iterator[FieldError]:\n'
            f"    {docstring(f'What is wrong with a write of the {subresource} of {_article(kind)} {kind}.', 4)}\n"
            f"{body.render() or '    yield from ()'}"
        )

    def _enter(
        self,
        body: FunctionBody,
        scope: Scope,
        steps: tuple[Step, ...],
        name: str,
        rule: CheckRule | None = None,
    ) -> None:
        held = self.plan.table[name]
        function = self.name(held)
        other = self.plan.modules[held.group, held.version]
        if other != self.module:
            self.others.add(other)
            function = f"{other}.{function}"
        conditions = _conditions(scope, rule) if rule else ()
        given = "".join(f", given_{key}={literal(value)}" for key, value in rule.arguments) if rule else ""
        if rule and rule.made_by:
            value = f"{self._called(rule.made_by)}({scope.variable(())})"
        elif rule and rule.of_missing:
            keys = ", ".join(literal(step.name) for step in steps if isinstance(step, Key))
            value = f"{scope.use('struct')}({scope.variable(())}, {keys}) or {{}}"
        else:
            headers, place = _walk(scope, steps)
            call = f"yield from {function}({scope.variable(steps)}, {_prefix(place)}{given})"
            body.add((*headers, *conditions), call)
            return
        body.add(conditions, f"yield from {function}({value}, {_prefix(_whole(steps))}{given})")

    def _called(self, function: str) -> str:
        """How code calls a function of ``apimachinery.kinds``; notes that its module is imported."""
        module_path, _, name = function.rpartition(".")
        self.checks.add(module_path or "checks")
        return f"{module_path.rpartition('.')[2] or 'checks'}.{name}"

    def _check(self, body: FunctionBody, scope: Scope, rule: CheckRule, definition: Definition) -> None:
        steps = rule.target.steps
        anchor = scope.anchor(rule.target)
        last = steps[-1] if steps else None
        if isinstance(
            last, Key
        ):  # a check of a field says nothing where the object that has the field is missing
            headers, place = _walk(scope, steps[:-1])
            owner = scope.variable(steps[:-1])
            value = f"{owner}.get({literal(last.name)})"
            if not rule.of_missing and not rule.takes_old:
                headers = (*headers, f"if {value} is not None")
                value = f"{owner}[{literal(last.name)}]"
            place = _below(place, (last.name,))
        else:
            of = type_at(definition.value.type, steps, self.plan.table)
            headers, place = _walk(scope, steps, plain=isinstance(of, Scalar))
            value = scope.variable(steps)
        arguments = [value, _path(place)]
        if rule.takes_old:
            keys = [s.name for s in steps if isinstance(s, Key)]
            arguments.append(
                f"{scope.use('lookup')}(old, {', '.join(literal(key) for key in keys)})" if keys else "old"
            )
        if rule.beside is not None:
            arguments.append(scope.read(rule.beside, anchor))
        for name, argument in rule.arguments:
            shown = tuple(argument) if isinstance(argument, list) else argument
            arguments.append(f"{name}={literal(shown)}")
        call = f"{self._called(rule.check)}({', '.join(arguments)})"
        bound = steps[:-1] if isinstance(last, Key) else ()
        body.add((*headers, *_conditions(scope, rule, bound)), f"yield from {call}")


def _conditions(scope: Scope, rule: CheckRule, bound: tuple[Step, ...] = ()) -> tuple[str, ...]:
    anchor = scope.anchor(rule.target)
    headers = [f"if {scope.condition(condition, anchor, bound)}" for condition in rule.when]
    if rule.unless:
        together = " and ".join(scope.condition(condition, anchor, bound) for condition in rule.unless)
        headers.append(f"if not ({together})")
    return tuple(headers)


def _article(word: str) -> str:
    return "an" if word[:1] in "AEIO" else "a"


_LOOPS = {(True, False): "numbered", (True, True): "indexed", (False, False): "named", (False, True): "keyed"}
"""The functions that loops go over, by whether the values are a list's, and whether they are plain values."""


def _walk(scope: Scope, steps: tuple[Step, ...], plain: bool = False) -> tuple[tuple[str, ...], str]:
    """The headers that lead to the objects at ``steps``, or to ``plain`` values, and their path as the inside of an
    f-string."""
    headers: list[str] = []
    place = "{prefix}"
    here: tuple[Step, ...] = ()
    keys: list[str] = []
    for index, step in enumerate(steps):
        if isinstance(step, Key):
            keys.append(step.name)
            continue
        owner = _reach(scope, headers, here, steps[: index - 1], keys[:-1])
        here = steps[: index + 1]
        variable = scope.variable(here)
        counter = f"{variable}_{'index' if isinstance(step, Items) else 'key'}"
        whole = plain and index == len(steps) - 1
        function = scope.use(_LOOPS[isinstance(step, Items), whole])
        headers.append(f"if {owner}.get({literal(keys[-1])})")
        headers.append(f"for {counter}, {variable} in {function}({owner}, {literal(keys[-1])})")
        if isinstance(step, Items) and step.field:
            headers.append(f"if {variable}.get({literal(step.field)}) {equals(step.value)}")
        place = f"{_below(place, keys)}[{{{counter}}}]"
        keys = []
    _reach(scope, headers, here, steps, keys)
    return tuple(headers), _below(place, keys)


def _reach(
    scope: Scope, headers: list[str], here: tuple[Step, ...], there: tuple[Step, ...], keys: list[str]
) -> str:
    """The variable of the object under ``keys``; adds the header that binds it."""
    if not keys:
        return scope.variable(here)
    variable = scope.variable(there)
    arguments = ", ".join(literal(key) for key in keys)
    headers.append(
        f"if ({variable} := {scope.use('struct')}({scope.variable(here)}, {arguments})) is not None"
    )
    return variable


def _whole(steps: tuple[Step, ...]) -> str:
    """The path of a field that no list is on the way to."""
    return _below("{prefix}", [step.name for step in steps if isinstance(step, Key)])


def _below(place: str, keys: Sequence[str]) -> str:
    """The path of what is under ``keys`` of the object at ``place``."""
    for key in keys:
        dot = "" if place == "{prefix}" else "."
        place += dot + _escape_braces(key)
    return place


def _escape_braces(text: str) -> str:
    return literal(text)[1:-1].replace("{", "{{").replace("}", "}}")


def _path(place: str) -> str:
    """The expression for the path of a value at ``place``."""
    return 'prefix.removesuffix(".")' if place == "{prefix}" else f'f"{place}"'


def _prefix(place: str) -> str:
    """The expression for what the paths of the fields of the object at ``place`` begin with."""
    return "prefix" if place == "{prefix}" else f'f"{place}."'
