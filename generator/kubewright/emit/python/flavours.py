"""Typed models in the flavours of datamodel-code-generator: ``pydantic``, ``dataclass`` and ``typeddict``.

It is fed from the layout, never from a spec: which classes there are, what they are called, in which module
they stand and what each field holds was decided there, so all flavours agree, int-or-string stays a union, and a
nested object is called after its place (``HTTPRouteSpecRules``). What this file gives it is a JSON schema of those
decisions; what comes back is taken apart again and held against what models may consist of, because a foreign
generator is not trusted to keep a spec's text out of code.

Names: pydantic has snake-case attributes with the wire name as alias. A TypedDict is the JSON form itself. A
dataclass keeps wire names where they are Python names, so that ``asdict`` and decoders of dataclasses meet the
JSON form; others (``from``, ``$ref``) have the attribute name of ``names``, which ``json_form.py`` knows. Times are
``datetime`` where the flavour reads and writes JSON by itself (pydantic), and the text of JSON elsewhere.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from kubewright.emit.code import names
from kubewright.emit.code.class_plans import ClassPlan, FieldPlan, Layout, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import LINE_LENGTH, docstring, expression, formatted, header, module, render
from kubewright.emit.interface import Options
from kubewright.emit.python.code.annotations import annotation
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.types import Json, ListOf, Primitive, Scalar
from kubewright.ir.versions import join_api_version

FLAVOURS = {
    "pydantic": "pydantic_v2.BaseModel",
    "dataclass": "dataclasses.dataclass",
    "typeddict": "typing.TypedDict",
}
_RELATIVE = re.compile(r"^from \. import ", re.MULTILINE)
_LEADING_COMMENTS = re.compile(r"\A(?:\s*#.*\n)*\s*")
_SCALARS: dict[str, Json] = {
    "str": {"type": "string"},
    "bytes": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string"},
    "Any": {},
}


def emitter(options: Options) -> Emitter:
    """The emitter of ``options.models``. Raises ``KeyError`` for a flavour that is not one of these."""
    return ForeignModels(options, FLAVOURS[options.models])


@dataclass(frozen=True, slots=True)
class ForeignModels:
    """Models written by datamodel-code-generator, one module per group-version."""

    options: Options
    form: str
    name: str = "models"

    def emit(self, api: Api) -> Iterable[File]:
        """``models.py`` and ``__init__.py`` of each group-version, and the package's own ``__init__.py``."""
        layout = lay_out(api, enums=self.options.enums and self.options.models != "typeddict")
        first_line = header(self.options.origins)
        yield File("__init__.py", f'{first_line}"""Models of {self.options.package}."""\n')
        yield File("py.typed", "")
        written = self._generate(layout)
        if self.options.models == "dataclass":
            yield self._json_form(layout, first_line)
        for plan in layout.modules:
            classes = [c.name for c in plan.classes] + [enum.name for enum in plan.enums]
            doc = docstring(f"Models of {plan.title}.")
            yield File(
                f"{plan.name}/__init__.py",
                module(
                    render(
                        "package",
                        header=first_line,
                        docstring=doc,
                        homes=[
                            (
                                f"{self.options.package}.{plan.name}.models",
                                sorted(classes, key=names.import_order),
                            )
                        ]
                        if classes
                        else [],
                        exported=sorted(classes, key=names.export_order),
                    )
                ),
            )
            body = written.get(plan.name, "")
            _inspect(body, plan)
            text = _LEADING_COMMENTS.sub("", body)
            yield File(f"{plan.name}/models.py", formatted(f"{first_line}{doc}\n\n{text}"))

    def _json_form(self, layout: Layout, first_line: str) -> File:
        """``json_form.py``: dataclasses from JSON and back, with the unknown fields that their schemas keep."""
        schema = _Schema(layout, self.options)
        keeping, attributes = [], {}
        for plan in layout.modules:
            for item in plan.classes:
                called = f"{plan.name}.{item.name}"
                if item.is_open:
                    keeping.append(called)
                renamed = {schema.attribute(member): member.wire_name for member in item.fields}
                renamed = {name: wire for name, wire in renamed.items() if name != wire}
                if renamed:
                    attributes[called] = renamed
        text = render(
            "json_form",
            header=first_line,
            docstring=docstring("These dataclasses from JSON values and back, unknown fields included."),
            keeping=expression(keeping, 4, 22),
            attributes=expression(attributes, 4, 13),
        )
        return File("json_form.py", module(text))

    def _generate(self, layout: Layout) -> dict[str, str]:
        """Module name → its source."""
        import datamodel_code_generator as generator
        from datamodel_code_generator.enums import DataModelType, InputFileType, TargetPydanticVersion
        from datamodel_code_generator.format import DatetimeClassType, Formatter, PythonVersion
        from datamodel_code_generator.parser import LiteralType

        schema = _Schema(layout, self.options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = generator.generate(
                schema.document(),
                input_file_type=InputFileType.JsonSchema,
                output_model_type=DataModelType(self.form),
                target_python_version=PythonVersion.PY_311,
                target_pydantic_version=TargetPydanticVersion.V2,
                aliases=schema.aliases(),
                allow_population_by_field_name=True,
                capitalise_enum_members=False,
                enum_field_as_literal=LiteralType.Off if self.options.enums else LiteralType.All,
                set_default_enum_member=True,
                field_constraints=True,
                custom_class_name_generator=str,  # names are the layout's: `Field_` stays `Field_`
                disable_timestamp=True,
                formatters=[Formatter.BUILTIN],
                builtin_format_line_length=LINE_LENGTH,
                enable_generated_header_marker=False,
                use_double_quotes=True,
                output_datetime_class=DatetimeClassType.Datetime,
                use_schema_description=True,
                use_standard_collections=True,
                use_union_operator=True,
                treat_dot_as_module=True,
            )
        if not isinstance(made, Mapping):  # one string where all is in one module
            return {plan.name: str(made) for plan in layout.modules if plan.classes}
        # It writes apps_v1.py where we want apps_v1/models.py: one folder further from the package.
        return {
            path[-1].removesuffix(".py"): _RELATIVE.sub(f"from {self.options.package} import ", str(text))
            for path, text in made.items()
        }


@dataclass(frozen=True, slots=True)
class _Schema:
    """The layout as one JSON schema; definition ``apps_v1.Deployment`` is that class of that module."""

    layout: Layout
    options: Options

    def document(self) -> Json:
        return {
            "$defs": {
                f"{plan.name}.{item.name}": self._object(plan, item)
                for plan in self.layout.modules
                for item in plan.classes
            }
            | {
                f"{plan.name}.{enum.name}": {
                    "type": "string" if enum.root == "StrEnum" else "integer",
                    "title": enum.name,
                    "description": f"What {enum.name} can be.",
                    "enum": [value for _, value in enum.members],
                    "x-enum-varnames": [name for name, _ in enum.members],
                }
                for plan in self.layout.modules
                for enum in plan.enums
            }
        }

    def aliases(self) -> dict[str, str]:
        """Wire name → attribute, for the flavours whose attributes are not wire names."""
        found: dict[str, str] = {}
        if self.options.models == "typeddict":
            return found
        for plan in self.layout.modules:
            for item in plan.classes:
                for member in item.fields:
                    attribute = self.attribute(member)
                    usual = found.setdefault(member.wire_name, attribute)
                    if usual != attribute:  # the class decides where a name would meet another one
                        found[f"{item.name}.{member.wire_name}"] = attribute
        return {wire_name: name for wire_name, name in found.items() if wire_name != name}

    def attribute(self, member: FieldPlan) -> str:
        """What a field is called in Python."""
        if self.options.models == "dataclass" and _is_attribute(member.wire_name):
            return member.wire_name
        if self.options.models == "pydantic" and member.attribute in _names_of_pydantic():
            return member.attribute + "_"
        return member.attribute

    def _object(self, home: ModulePlan, plan: ClassPlan) -> Json:
        schema: dict[str, Json] = {"type": "object", "title": plan.name, "description": self._doc(home, plan)}
        schema["properties"] = {m.wire_name: self._field(home, plan, m) for m in plan.fields}
        if plan.is_open and self.options.models == "pydantic":  # the other two keep what they are not told of
            schema["additionalProperties"] = True
        required = [m.wire_name for m in plan.fields if m.required]
        if required:
            schema["required"] = required
        return schema

    def _doc(self, home: ModulePlan, plan: ClassPlan) -> str:
        if self.options.documentation and plan.doc.strip():
            return plan.doc
        where = (
            f"{plan.path.lstrip('.')} of {plan.definition.name.rpartition('.')[2]}"
            if plan.path
            else plan.name
        )
        return f"{where}, {home.api_version}." if home.api_version else f"{where}."

    def _field(self, home: ModulePlan, plan: ClassPlan, member: FieldPlan) -> Json:
        if plan.kind and member.wire_name in ("apiVersion", "kind"):
            group, version, kind = plan.kind
            api_version = join_api_version(group, version)
            return {"type": "string", "default": api_version if member.wire_name == "apiVersion" else kind}
        schema = self._type(home, ast.parse(annotation(member.type), mode="eval").body)
        if self.options.models == "pydantic" and not member.nullable:  # in a union bounds become a model
            schema = self._bounded(schema, member)
        if member.nullable and schema:
            schema = {"anyOf": [schema, {"type": "null"}]}
        return schema

    def _bounded(self, schema: Json, member: FieldPlan) -> Json:
        """``schema`` with the bounds, the pattern and the date of a field as pydantic checks them."""
        node, said = member.value.type, member.value.constraints
        if member.value.location.file.startswith("kubernetes-validate:"):
            return schema  # the built-in kinds' rules are those of ``validation.py``
        if isinstance(node, Scalar) and node.primitive is Primitive.STRING and "enum" not in schema:
            if node.format == "date-time":
                return {**schema, "format": "date-time"}
            lengths = {"minLength": said.min_length, "maxLength": said.max_length}
            pattern = said.pattern if said.pattern and _is_pattern(said.pattern) else None
            return {**schema, **_given(lengths), **_given({"pattern": pattern})}
        if isinstance(node, Scalar) and node.primitive in (Primitive.INTEGER, Primitive.NUMBER):
            low = "exclusiveMinimum" if said.exclusive_minimum else "minimum"
            high = "exclusiveMaximum" if said.exclusive_maximum else "maximum"
            bounds = {low: said.minimum, high: said.maximum, "multipleOf": said.multiple_of}
            return {**schema, **_given(bounds)}
        if isinstance(node, ListOf):
            return {**schema, **_given({"minItems": said.min_items, "maxItems": said.max_items})}
        return schema

    def _type(self, home: ModulePlan, node: ast.expr) -> Json:
        """The schema of an annotation the layout wrote."""
        if isinstance(node, ast.Name) and node.id == "datetime" and self.options.models == "pydantic":
            return {"type": "string", "format": "date-time"}
        if isinstance(node, ast.Name) and node.id in _SCALARS:
            return dict(_SCALARS[node.id])
        if isinstance(node, ast.Constant) and node.value is None:
            return {"type": "null"}
        if isinstance(node, ast.Name):
            return self._reference(home, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._reference(self._module(node.value.id), node.attr)
        if ast.unparse(node) == "int | float":
            return {"type": "number"}
        if isinstance(node, ast.BinOp):
            return {"anyOf": [self._type(home, node.left), self._type(home, node.right)]}
        assert isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name), ast.dump(node)
        if node.value.id == "Literal":
            members = list(ast.literal_eval(node.slice)) if isinstance(node.slice, ast.Tuple) else []
            members = members or [ast.literal_eval(node.slice)]
            return {"type": "string" if isinstance(members[0], str) else "integer", "enum": members}
        if node.value.id in ("Untagged", "Open"):
            return self._type(home, node.slice)
        if node.value.id == "list":
            return {"type": "array", "items": self._type(home, node.slice)}
        assert node.value.id == "dict" and isinstance(node.slice, ast.Tuple), ast.dump(node)
        return {"type": "object", "additionalProperties": self._type(home, node.slice.elts[1]) or True}

    def _reference(self, home: ModulePlan, name: str) -> Json:
        for alias in home.aliases:
            if alias.name == name:
                return self._type(home, ast.parse(annotation(alias.type), mode="eval").body)
        return {"$ref": f"#/$defs/{home.name}.{name}"}

    def _module(self, name: str) -> ModulePlan:
        return next(plan for plan in self.layout.modules if plan.name == name)


@cache
def _names_of_pydantic() -> frozenset[str]:
    """Attributes that every pydantic model has; a field of that name would hide one (``schema``, ``copy``)."""
    from pydantic import BaseModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frozenset(dir(BaseModel))


@cache
def _is_pattern(pattern: str) -> bool:
    """Whether pydantic's engine reads ``pattern``."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


def _given(words: Mapping[str, Json]) -> Json:
    return {key: value for key, value in words.items() if value is not None and value is not False}


def _is_attribute(wire_name: str) -> bool:
    return wire_name.isidentifier() and wire_name.isascii() and wire_name not in names.RESERVED_ATTRIBUTES


def _inspect(source: str, plan: ModulePlan) -> None:
    """Raises ``ValueError`` unless ``source`` holds imports and models alone: one class a planned class, with a
    docstring and fields; a ``TypedDict`` call for one whose keys are not names; and what rebuilds references."""
    planned = {c.name for c in plan.classes} | {enum.name for enum in plan.enums}
    for node in ast.parse(source).body:
        if not _is_part_of_models(node, planned):
            raise ValueError(
                f"models of {plan.api_version} hold a statement that is none: {ast.unparse(node)}"
            )


def _is_part_of_models(node: ast.stmt, planned: set[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.ClassDef):
        return node.name in planned and all(map(_is_member, node.body))
    if isinstance(node, ast.Expr):  # docstrings, and `Model.model_rebuild()`
        call = node.value
        if isinstance(call, ast.Call):
            return (
                isinstance(call.func, ast.Attribute) and call.func.attr == "model_rebuild" and not call.args
            )
        return isinstance(call, ast.Constant)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return isinstance(node.value.func, ast.Name) and node.value.func.id == "TypedDict"
    return False


def _is_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AnnAssign):
        return all(map(_is_harmless_call, _calls(node)))
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets] == ["model_config"] or isinstance(
            node.value, ast.Constant
        )
    return isinstance(node, ast.Pass)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (found for found in ast.walk(node) if isinstance(found, ast.Call))


def _is_harmless_call(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in {"Field", "field", "TypedDict"}
