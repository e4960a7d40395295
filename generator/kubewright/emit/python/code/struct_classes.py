"""A planned module as msgspec Structs: what ``models.py`` and ``apply.py`` consist of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from kubewright.emit.code.class_plans import ClassPlan, FieldPlan, ModulePlan
from kubewright.emit.code.names import camel
from kubewright.emit.code.render import class_header, docstring, literal, render, statement, string_literal
from kubewright.emit.code.type_expr import Literals
from kubewright.emit.code.unions import Tag
from kubewright.emit.interface import Options
from kubewright.emit.python.code.annotations import annotation
from kubewright.ir.types import ABSENT

MAX_SHOWN_DEFAULT = 60


@dataclass(frozen=True, slots=True)
class StructClasses:
    """Writes modules of msgspec Structs."""

    options: Options

    def module_text(self, plan: ModulePlan, first_line: str, stem: str, title: str) -> str:
        """The text of one module of classes; ``stem`` is its name, and that of the modules it imports."""
        lines = {
            c.name: [
                _tag_line(f, c.tag) if c.tag and f.wire_name == c.tag.field else _field_line(f, c.kind)
                for f in (*c.fields, *c.rest)
            ]
            for c in plan.classes
        }
        classes = [self._class(c, plan, lines[c.name]) for c in plan.classes]
        aliases = [statement(f"{a.name}: TypeAlias = {annotation(a.type)}") for a in plan.aliases]
        text = "\n".join([*(line for body in lines.values() for line in body), *aliases])
        return render(
            "models",
            header=first_line,
            docstring=docstring(title),
            package=self.options.package,
            stem=stem,
            imports=[
                f"from {package}.{module} import {stem} as {name}"
                for package, module, name in sorted(
                    [(self.options.package, name, name) for name in plan.imports]
                    + [(package, module, name) for name, (package, module) in plan.foreign.items()]
                )
            ],
            uses=_Uses(plan, text),
            enums=[
                {
                    "name": enum.name,
                    "root": enum.root,
                    "members": [f"{name} = {literal(value)}" for name, value in enum.members],
                    "docstring": docstring(f"What {enum.name} can be.", 4),
                }
                for enum in (plan.enums if stem == "models" else ())
            ],
            classes=classes,
            aliases=aliases,
        )

    def _class(self, plan: ClassPlan, home: ModulePlan, lines: list[str]) -> dict[str, object]:
        return {
            "header": class_header(plan.name, _root(plan)),
            "docstring": docstring(self._doc(plan, home), 4),
            "kind": plan.kind
            and {
                "api_version": string_literal(home_version(plan.kind)),
                "kind": string_literal(plan.kind[2]),
                "keeps_origin": plan.keeps_origin,
            },
            "known_by": plan.tag and plan.tag.loose and literal((plan.tag.field, plan.tag.words)),
            "fields": [statement(line, 4) for line in lines],
        }

    def _doc(self, plan: ClassPlan, home: ModulePlan) -> str:
        where = (
            f"``{plan.path.lstrip('.')}`` of {plan.definition.name.rpartition('.')[2]}"
            if plan.path
            else plan.name
        )
        fallback = f"{where}, {home.api_version}." if home.api_version else f"{where}."
        if not self.options.documentation:
            return fallback
        text = plan.doc or fallback
        described = [(f.attribute, said) for f in plan.fields if (said := _field_doc(f, plan))]
        if not described:
            return text
        return "\n".join([text, "", "Fields:", *(f"    {name}: {doc}" for name, doc in described)])


def _root(plan: ClassPlan) -> str:
    return "Object" if plan.kind else "OpenPart" if plan.rest else "Part"


def _field_doc(field: FieldPlan, plan: ClassPlan) -> str:
    """What the spec says of a field, and its default: the model has none, so this is where readers see it."""
    parts = [" ".join(field.value.doc.split())]
    given = field.default
    if not (given is ABSENT or given in ({}, [])):
        shown = json.dumps(given, ensure_ascii=False)
        parts += [f"Default: {shown}."] if len(shown) <= MAX_SHOWN_DEFAULT else []
    return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class _Uses:
    """Which imports a module needs."""

    plan: ModulePlan
    text: str

    @property
    def typing(self) -> list[str]:
        words = self._words()
        names = {
            "Any": "Any" in words,
            "ClassVar": "ClassVar" in words or any(c.keeps_origin for c in self.plan.classes),
            "Literal": "Literal" in words,
            "TypeAlias": bool(self.plan.aliases),
        }
        return [name for name, used in names.items() if used]

    @property
    def msgspec(self) -> list[str]:
        words = self._words()
        return [name for name in ("UNSET", "UnsetType", "field") if name in words]

    @property
    def unions(self) -> bool:
        return "Untagged" in self._words()

    @property
    def datetime(self) -> bool:
        return "datetime" in self._words()

    @property
    def enum(self) -> list[str]:
        return sorted({enum.root for enum in self.plan.enums})

    @property
    def roots(self) -> list[str]:
        return sorted({*map(_root, self.plan.classes)} - {"OpenPart"})

    @property
    def undeclared(self) -> list[str]:
        names = {"Open": "Open" in self._words(), "OpenPart": "OpenPart" in map(_root, self.plan.classes)}
        return [name for name, used in names.items() if used]

    def _words(self) -> set[str]:
        return set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", re.sub(r'"[^"]*"', '""', self.text)))


def home_version(kind: tuple[str, str, str]) -> str:
    """The apiVersion of a GVK."""
    return f"{kind[0]}/{kind[1]}" if kind[0] else kind[1]


def _tag_line(plan: FieldPlan, tag: Tag) -> str:
    """The field that tells the members of a union apart: where it has one value, it need not be given, and is always
    written."""
    if len(tag.words) > 1:
        kind = plan.type if tag.loose else Literals(tag.words)
        return _field_line(replace(plan, type=kind, required=True, nullable=False), None)
    word = string_literal(tag.words[0])
    shown = "str" if tag.loose else f"Literal[{word}]"
    rename = f"name={string_literal(plan.wire_name)}, " if camel(plan.attribute) != plan.wire_name else ""
    return f"{plan.attribute}: {shown} = field({rename}default_factory=lambda: {word})"


def _field_line(plan: FieldPlan, kind: tuple[str, str, str] | None) -> str:
    rename = f"name={string_literal(plan.wire_name)}, " if camel(plan.attribute) != plan.wire_name else ""
    if kind and plan.wire_name in ("apiVersion", "kind"):
        constant = home_version(kind) if plan.wire_name == "apiVersion" else kind[2]
        return f"{plan.attribute}: str = field({rename}default_factory=lambda: {string_literal(constant)})"
    text = annotation(plan.type)
    is_any = text == "Any"
    if plan.factory:
        return f"{plan.attribute}: {text} = field({rename}default_factory={plan.factory})"
    if plan.required:
        text += " | None" if plan.nullable and not is_any else ""
        default = ""
    elif plan.nullable:
        text += " | UnsetType" if is_any else " | UnsetType | None"
        default = "UNSET"
    else:
        text += "" if is_any else " | None"
        default = "None"
    if rename and default:
        return f"{plan.attribute}: {text} = field({rename}default={default})"
    if rename:
        return f"{plan.attribute}: {text} = field({rename.removesuffix(', ')})"
    return f"{plan.attribute}: {text}" + (f" = {default}" if default else "")
