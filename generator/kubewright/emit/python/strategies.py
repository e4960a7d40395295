"""How objects are written: ``<group_version>/strategies.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code import names
from kubewright.emit.code.render import CallText, Raw, docstring, expression, module_of
from kubewright.emit.interface import Options
from kubewright.emit.python.code.default_rule import write_rule
from kubewright.emit.python.code.rule_code import FunctionBody, Scope, imports
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.rules import DefaultRule, StrategyRules
from kubewright.ir.versions import join_api_version

_ARGUMENTS = {"admit": "admit", "create": "prepare_create", "update": "prepare_update"}


def emitter(options: Options) -> Emitter:
    return Strategies(options)


@dataclass(frozen=True, slots=True)
class Strategies:
    """One module per group-version whose kinds have a strategy of their own."""

    options: Options
    name: str = "strategies"

    def emit(self, api: Api) -> Iterable[File]:
        """``strategies.py`` of each group-version; kinds that the API does not serve are left out."""
        served = {(r.group, r.version, r.kind) for r in api.resources}
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        modules = names.module_names(pairs)
        tables: dict[tuple[str, str], list[StrategyRules]] = {}
        for entry in api.fact("strategies") or ():
            if (entry.group, entry.version, entry.kind) in served:
                tables.setdefault((entry.group, entry.version), []).append(entry)
        for (group, version), entries in sorted(tables.items()):
            uses = {"Json"}
            functions: list[str] = []
            table = {
                entry.kind: _strategy(entry, uses, functions)
                for entry in sorted(entries, key=lambda e: e.kind)
            }
            if not any(entry.phases for entry in entries):
                uses = set()
            api_version = join_api_version(group, version)
            yield File(
                f"{modules[group, version]}/strategies.py",
                module_of(
                    "strategies",
                    self.options.origins,
                    f"How objects of {api_version} are written.",
                    imports="\n".join(
                        [
                            *imports(uses if functions else uses - {"Json"}),
                            "from apimachinery.meta.strategies import Strategy",
                        ]
                    ),
                    functions=functions,
                    strategies=expression(table, 0, 34),
                ),
            )


def _strategy(entry: StrategyRules, uses: set[str], functions: list[str]) -> CallText:
    arguments = [(name, tuple(value) if name == "generation" else value) for name, value in entry.facts]
    for phase, rules in entry.phases:
        arguments.append((_ARGUMENTS[phase], Raw(_function(entry, phase, rules, uses, functions))))
    return CallText("Strategy", tuple(arguments))


def _function(
    entry: StrategyRules, phase: str, rules: tuple[DefaultRule, ...], uses: set[str], functions: list[str]
) -> str:
    """The name of the function for ``rules``: the one they name, or a new one in ``functions``."""
    if len(rules) == 1 and rules[0].action == "call" and not rules[0].target.steps and not rules[0].when:
        uses.add(f"defaulters.{rules[0].function}")
        return rules[0].function
    word = names.attribute_name(entry.kind)
    scope, body = Scope(word), FunctionBody()
    for rule in rules:
        write_rule(body, scope, rule)
    uses |= scope.uses
    name = f"{phase}_{word}"
    text = f"What the server adds to a new {entry.kind}."
    functions.append(f"def {name}({word}: Json) -> None:\n    {docstring(text, 4)}\n{body.render()}")
    return name
