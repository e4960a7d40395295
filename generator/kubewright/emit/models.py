"""Typed models, msgspec flavour: ``<group_version>/models.py`` and its ``__init__.py``.

Optional fields are ``T | None = None`` and left out of JSON while ``None``: Kubernetes reads null as absent, and
users write ``if pod.spec.node_name is None``. Only a field that the spec calls nullable and that is not required
has three states; it is ``T | UnsetType | None = UNSET``. API defaults are never model defaults: they belong to
``defaults.py``. Times of meta/v1 are ``datetime``; other ``date-time`` strings stay ``str``, because
nothing promises that they have no more than microseconds. ``apiVersion`` and ``kind`` of a Kind are always written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from kubewright.emit.code import names
from kubewright.emit.code.layout import ClassPlan, FieldPlan, Layout, ModulePlan, lay_out
from kubewright.emit.code.render import class_header, docstring, header, render, statement, string_literal
from kubewright.emit.registry import Options
from kubewright.ir.api import Api, Emitter, File

FLAVOURS = ("msgspec", "pydantic", "dataclass", "typeddict")


def emitter(options: Options) -> Emitter:
    """The emitter of ``options.models``."""
    if options.models == "msgspec":
        return MsgspecModels(options)
    flavours = import_module("kubewright.emit.flavours")
    return cast(Emitter, flavours.emitter(options))


@dataclass(frozen=True, slots=True)
class MsgspecModels:
    """msgspec Structs, one module per group-version."""

    options: Options
    name: str = "models"

    def emit(self, api: Api) -> Iterable[File]:
        """``models.py`` and ``__init__.py`` of each group-version, and the package's own ``__init__.py``."""
        layout = lay_out(api)
        first_line = header(self.options.origins)
        yield File(
            "__init__.py", f'{first_line}"""Generated packages of {_shown(self.options.package)}."""\n'
        )
        yield File("py.typed", "")
        for plan in layout.modules:
            yield File(f"{plan.name}/__init__.py", self._table_of_contents(plan, first_line))
            yield File(f"{plan.name}/models.py", self._models(plan, layout, first_line))

    def _table_of_contents(self, plan: ModulePlan, first_line: str) -> str:
        exported = [item.name for item in plan.classes] + [item.name for item in plan.aliases]
        return render(
            "package",
            header=first_line,
            docstring=docstring(f"Models of {plan.api_version}."),
            package=self.options.package,
            module=plan.name,
            names=sorted(exported, key=names.import_order),
            exported=sorted(exported, key=names.export_order),
        )

    def _models(self, plan: ModulePlan, layout: Layout, first_line: str) -> str:
        return self.module_text(plan, first_line, "models", f"Models of {plan.api_version}.")

    def module_text(self, plan: ModulePlan, first_line: str, stem: str, title: str) -> str:
        """The text of one module of classes; ``stem`` is its name, and that of the modules it imports."""
        lines = {c.name: [_field_line(f, c.kind) for f in c.fields] for c in plan.classes}
        classes = [self._class(c, plan, lines[c.name]) for c in plan.classes]
        aliases = [statement(f"{a.name}: TypeAlias = {a.annotation}") for a in plan.aliases]
        text = "\n".join([*(line for body in lines.values() for line in body), *aliases])
        return render(
            "models",
            header=first_line,
            docstring=docstring(title),
            package=self.options.package,
            stem=stem,
            imports=sorted(plan.imports),
            uses=_Uses(plan, text),
            classes=classes,
            aliases=aliases,
        )

    def _class(self, plan: ClassPlan, home: ModulePlan, lines: list[str]) -> dict[str, object]:
        return {
            "header": class_header(plan.name, "Object" if plan.kind else "Part"),
            "docstring": docstring(self._doc(plan, home), 4),
            "kind": plan.kind
            and {
                "api_version": string_literal(home_version(plan.kind)),
                "kind": string_literal(plan.kind[2]),
            },
            "fields": [statement(line, 4) for line in lines],
        }

    def _doc(self, plan: ClassPlan, home: ModulePlan) -> str:
        where = (
            f"``{plan.path.lstrip('.')}`` of {plan.definition.name.rpartition('.')[2]}"
            if plan.path
            else plan.name
        )
        fallback = f"{where}, {home.api_version}."
        if not self.options.documentation:
            return fallback
        text = plan.doc or fallback
        described = [(f.attribute, " ".join(f.value.doc.split())) for f in plan.fields if f.value.doc]
        if not described:
            return text
        return "\n".join([text, "", "Fields:", *(f"    {name}: {doc}" for name, doc in described)])


@dataclass(frozen=True, slots=True)
class _Uses:
    """Which imports a module needs."""

    plan: ModulePlan
    text: str

    @property
    def typing(self) -> list[str]:
        names = {"Any": "Any" in self._words(), "TypeAlias": bool(self.plan.aliases)}
        return [name for name, used in names.items() if used]

    @property
    def msgspec(self) -> list[str]:
        words = self._words()
        return [name for name in ("UNSET", "UnsetType", "field") if name in words]

    @property
    def datetime(self) -> bool:
        return "datetime" in self._words()

    @property
    def roots(self) -> list[str]:
        kinds = {"Object" if c.kind else "Part" for c in self.plan.classes}
        return sorted(kinds)

    def _words(self) -> set[str]:
        return set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", re.sub(r'"[^"]*"', '""', self.text)))


def home_version(kind: tuple[str, str, str]) -> str:
    """The apiVersion of a GVK."""
    return f"{kind[0]}/{kind[1]}" if kind[0] else kind[1]


def _field_line(plan: FieldPlan, kind: tuple[str, str, str] | None) -> str:
    rename = f"name={string_literal(plan.wire_name)}, " if plan.renamed else ""
    if kind and plan.wire_name in ("apiVersion", "kind"):
        constant = home_version(kind) if plan.wire_name == "apiVersion" else kind[2]
        return f"{plan.attribute}: str = field({rename}default_factory=lambda: {string_literal(constant)})"
    annotation = plan.annotation
    is_any = annotation == "Any"
    if plan.required:
        annotation += " | None" if plan.nullable and not is_any else ""
        default = ""
    elif plan.nullable:
        annotation += " | UnsetType" if is_any else " | UnsetType | None"
        default = "UNSET"
    else:
        annotation += "" if is_any else " | None"
        default = "None"
    if rename and default:
        return f"{plan.attribute}: {annotation} = field({rename}default={default})"
    if rename:
        return f"{plan.attribute}: {annotation} = field({rename.removesuffix(', ')})"
    return f"{plan.attribute}: {annotation}" + (f" = {default}" if default else "")


def _shown(package: str) -> str:
    return "".join(character for character in package if character.isalnum() or character in "._")
