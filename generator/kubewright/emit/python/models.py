"""Typed models, msgspec flavour: ``<group_version>/models.py`` and its ``__init__.py``.

Optional fields are ``T | None = None`` and left out of JSON while ``None``: Kubernetes reads null as absent, and
users write ``if pod.spec.node_name is None``. Only a field that the spec calls nullable and that is not required
has three states; it is ``T | UnsetType | None = UNSET``. API defaults are never model defaults: they belong to
``defaults.py``. Times of meta/v1 and ``date-time`` strings are ``datetime``; an object that was read keeps the text
of those that nobody changes, so digits past microseconds are not lost. ``apiVersion`` and ``kind`` of a Kind are
always written, and so is the ``metadata`` of one that was made without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import cast

from kubewright.emit.code import names
from kubewright.emit.code.class_plans import ClassPlan, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import docstring, header, render
from kubewright.emit.code.type_expr import ForeignExpr, NamedExpr
from kubewright.emit.interface import Options
from kubewright.emit.python.code.annotations import annotation
from kubewright.emit.python.code.struct_classes import StructClasses
from kubewright.ir.api import Api, Emitter, File

FLAVOURS = ("msgspec", "pydantic", "dataclass", "typeddict")


def emitter(options: Options) -> Emitter:
    if options.models == "msgspec":
        return MsgspecModels(options)
    flavours = import_module("kubewright.emit.python.flavours")
    return cast(Emitter, flavours.emitter(options))


@dataclass(frozen=True, slots=True)
class MsgspecModels:
    """msgspec Structs, one module per group-version."""

    options: Options
    name: str = "models"

    def emit(self, api: Api) -> Iterable[File]:
        """``models.py`` and ``__init__.py`` of each group-version, and the package's own ``__init__.py``."""
        layout = lay_out(api, enums=self.options.enums)
        classes = StructClasses(self.options)
        first_line = header(self.options.origins)
        yield File(
            "__init__.py", f'{first_line}"""Generated packages of {_shown(self.options.package)}."""\n'
        )
        yield File("py.typed", "")
        for plan in layout.modules:
            yield File(f"{plan.name}/__init__.py", self._table_of_contents(plan, first_line))
            yield File(
                f"{plan.name}/models.py",
                classes.module_text(_with_metadata(plan), first_line, "models", f"Models of {plan.title}."),
            )
        yield from self._borrowed(api, first_line)

    def _borrowed(self, api: Api, first_line: str) -> Iterable[File]:
        """Names for what the specs only refer to, and another package has: ``<package>.meta_v1.ObjectMeta``."""
        homes: dict[tuple[str, str], list[str]] = {}
        for external in api.external:
            if external.definition in api.borrowed:
                homes.setdefault((external.package, external.module), []).append(external.class_name)
        for (package, module), shown in sorted(homes.items()):
            home = f"{package}.{module}"
            yield File(
                f"{module}/__init__.py",
                render(
                    "package",
                    header=first_line,
                    docstring=docstring(f"What this package uses of {home}."),
                    homes=[(home, sorted(shown, key=names.import_order))],
                    exported=sorted(shown, key=names.export_order),
                ),
            )

    def _table_of_contents(self, plan: ModulePlan, first_line: str) -> str:
        own = [c.name for c in plan.classes] + [e.name for e in plan.enums] + [a.name for a in plan.aliases]
        homes = {f"{self.options.package}.{plan.name}.models": own} if own else {}
        for home, name in plan.shared:
            if name not in own:
                homes.setdefault(f"{self.options.package}.{home}.models", []).append(name)
        exported = {name for several in homes.values() for name in several}
        return render(
            "package",
            header=first_line,
            docstring=docstring(f"Models of {plan.title}."),
            homes=[(home, sorted(homes[home], key=names.import_order)) for home in sorted(homes)],
            exported=sorted(exported, key=names.export_order),
        )


def _shown(package: str) -> str:
    return "".join(character for character in package if character.isalnum() or character in "._")


def _with_metadata(plan: ModulePlan) -> ModulePlan:
    """Kinds whose metadata is always there: every stored object has some, so readers need not ask."""
    return replace(plan, classes=[_with_its_metadata(c) if c.kind else c for c in plan.classes])


def _with_its_metadata(plan: ClassPlan) -> ClassPlan:
    return replace(
        plan,
        fields=tuple(
            replace(f, factory=annotation(f.type))
            if f.wire_name == "metadata"
            and isinstance(f.type, NamedExpr | ForeignExpr)
            and f.type.name == "ObjectMeta"
            else f
            for f in plan.fields
        ),
    )
