"""Defaulting as plain functions: ``<group_version>/defaults.py``.

Each type that has rules, or holds a type that has, gets one function; a kind's function is in ``DEFAULTERS``. As in
Kubernetes the rules of the outer type run before those of the types it holds, and each type's in the order of the
rule file. What schemas say themselves (``default``) is not repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.render import docstring, literal, module_of
from kubewright.emit.interface import Options
from kubewright.emit.python.code.default_rule import write_rule
from kubewright.emit.python.code.rule_code import FunctionBody, Scope, imports
from kubewright.emit.python.code.type_plan import TypePlan
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.entering import held_types
from kubewright.ir.rules import TypeRules
from kubewright.ir.types import Definition
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
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
            api_version = join_api_version(group, version)
            yield File(
                f"{plan.modules[group, version]}/defaults.py",
                module_of(
                    "defaults",
                    self.options.origins,
                    f"Defaults of {api_version} that its schemas do not say.",
                    imports="\n".join(writer.imports()),
                    functions="\n\n\n".join(functions),
                    kinds=[f"{literal(kind)}: {function}" for kind, function in sorted(kinds.items())],
                ),
            )


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
        body = FunctionBody()
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
