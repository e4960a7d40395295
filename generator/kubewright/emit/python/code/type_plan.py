"""Which types of an API get a function of their own because they have rules, or hold a type that has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kubewright.emit.code import names
from kubewright.emit.code.layout import definition_class_names
from kubewright.ir.api import Api
from kubewright.ir.entering import types_with_rules
from kubewright.ir.paths import Step
from kubewright.ir.types import Definition, Struct

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
        plan.needed |= types_with_rules(api.definitions, own, enters)
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
