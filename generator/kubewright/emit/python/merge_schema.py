"""How the values of each group-version merge, as a table: ``<group_version>/merge_schema.py``.

The table is text that ``apimachinery.merge.table`` reads, a field a line; a reviewer can hold it against the markers
of the spec, and type checkers pass over it.
The rules are those of kube-apiserver's type converter (``apimachinery.merge.from_openapi`` has them in words).
Beyond the markers one thing is said here: the default of a list key that an item may omit. It is what defaulting
sets there without condition, else the zero of the typed struct, else the schema's own default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubewright.emit.code import names
from kubewright.emit.code.json_lines import json_lines
from kubewright.emit.code.render import docstring, header, render
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.merge import ListType, MapType
from kubewright.ir.types import (
    ABSENT,
    Definition,
    Duration,
    EmbeddedObject,
    Field,
    ListOf,
    MapOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.ir.versions import join_api_version

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_SCALARS = {
    Primitive.INTEGER: "number",
    Primitive.NUMBER: "number",
    Primitive.BOOLEAN: "boolean",
}


def emitter(options: Options) -> Emitter:
    return MergeSchema(options)


@dataclass(frozen=True, slots=True)
class MergeSchema:
    """One ``TYPES`` table per group-version, of all its definitions."""

    options: Options
    name: str = "merge_schema"

    def emit(self, api: Api) -> Iterable[File]:
        """``merge_schema.py`` of each group-version that defines something."""
        modules = names.module_names({(d.group, d.version) for d in api.definitions})
        defaults = key_defaults(api)
        tables: dict[tuple[str, str], dict[str, Any]] = {}
        for definition in sorted(api.definitions, key=lambda d: d.name):
            writer = _Writer(defaults.get(definition.name, {}))
            table = tables.setdefault((definition.group, definition.version), {})
            table[definition.name] = writer.definition(definition)
        for (group, version), table in sorted(tables.items()):
            api_version = join_api_version(group, version)
            yield File(
                f"{modules[group, version]}/merge_schema.py",
                render(
                    "merge_schema",
                    header=header(self.options.origins),
                    docstring=docstring(f"How values of {api_version or 'this API'} merge."),
                    table=_text(table),
                ),
            )


def key_defaults(api: Api) -> dict[str, dict[str, Any]]:
    """Definition → field → default, for the scalar fields by which lists of the definition are keyed."""
    definitions = {definition.name: definition for definition in api.definitions}
    zero = {
        entry.definition: {**dict(entry.keyed), **dict(entry.written)}
        for entry in api.fact("zero_values") or ()
    }
    declared: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rules in api.fact("defaults") or ():
        for rule in rules.rules:
            keys = rule.target.keys
            if (
                rule.action == "default"
                and not rule.when
                and keys
                and len(keys) == 1
                and rule.value is not ABSENT
            ):
                declared.setdefault((rules.group, rules.version, rules.type_name), {})[keys[0]] = rule.value
    out: dict[str, dict[str, Any]] = {}
    for name, keys in sorted(_keyed(api).items()):
        definition = definitions.get(name)
        if definition is None or not isinstance(definition.value.type, Struct):
            continue
        short = name.rpartition(".")[2]
        sources: tuple[Mapping[str, Any], ...] = (
            declared.get((definition.group, definition.version, short), {}),
            zero.get(name, {}),
            {
                f.wire_name: f.value.default
                for f in definition.value.type.fields
                if f.value.default is not ABSENT
            },
        )
        for key in sorted(keys):
            found = next((source[key] for source in sources if key in source), None)
            if isinstance(found, str | int | float):
                out.setdefault(name, {})[key] = found
    return out


def _keyed(api: Api) -> dict[str, set[str]]:
    """Definition → the fields that key a list of it somewhere."""
    out: dict[str, set[str]] = {}

    def visit(value: Value) -> None:
        node = value.type
        if isinstance(node, ListOf):
            if isinstance(node.items.type, Ref) and value.merge.list_type is ListType.MAP:
                out.setdefault(node.items.type.name, set()).update(value.merge.list_map_keys)
            visit(node.items)
        elif isinstance(node, MapOf):
            visit(node.values)
        elif isinstance(node, EmbeddedObject):
            visit_struct(node.body)
        elif isinstance(node, Struct):
            visit_struct(node)

    def visit_struct(struct: Struct) -> None:
        for field in struct.fields:
            visit(field.value)
        if struct.extra is not None:
            visit(struct.extra)

    for definition in api.definitions:
        visit(definition.value)
    return out


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the types of one definition; ``defaults`` are those of its fields that are list keys."""

    defaults: Mapping[str, Any]

    def definition(self, definition: Definition) -> Any:
        if definition.name == RAW_EXTENSION:
            return "untyped"
        value = definition.value
        if isinstance(value.type, Struct):
            fields = {f.wire_name: self._field(f, False, self.defaults) for f in value.type.fields}
            metadata = fields.get("metadata")
            if definition.kinds and metadata is not None and "ref" not in metadata:
                fields["metadata"] = {"ref": OBJECT_META}
            return self._struct_of(fields, value.type, value, value.type.preserve_unknown)
        return self._type(value, False)

    def _type(self, value: Value, preserve: bool) -> Any:
        node: Type = value.type
        if isinstance(node, Ref):
            if value.merge.map_type_declared:
                return {"ref": node.name, "atomic": value.merge.map_type is MapType.ATOMIC}
            return {"ref": node.name}
        if isinstance(node, Scalar):
            if node.primitive is Primitive.STRING:
                return "string" if node.format in ("", "byte") else "any"
            return _SCALARS[node.primitive]
        if isinstance(node, Duration):
            return "string"
        if isinstance(node, ListOf):
            return self._list(node, value, preserve)
        if isinstance(node, MapOf):
            return _map(self._type(node.values, preserve), value)
        if isinstance(node, RawJson):
            return _map("deduced", value) if node.object_only else "deduced"
        if isinstance(node, EmbeddedObject):
            body = node.body
            inner = preserve or body.preserve_unknown
            fields = {f.wire_name: self._field(f, inner) for f in body.fields}
            fields |= {"apiVersion": "string", "kind": "string", "metadata": {"ref": OBJECT_META}}
            return self._struct_of(dict(sorted(fields.items())), body, value, inner)
        if isinstance(node, Struct):
            inner = preserve or node.preserve_unknown
            fields = {f.wire_name: self._field(f, inner) for f in node.fields}
            return self._struct_of(fields, node, value, inner)
        return "any"

    def _struct_of(self, fields: dict[str, Any], node: Struct, value: Value, preserve: bool) -> Any:
        rest: Any = None
        if node.extra is not None:
            rest = self._type(node.extra, preserve)
        elif preserve or not fields:
            rest = "deduced"
        if not fields and rest is not None:
            return _map(rest, value)
        written: dict[str, Any] = {"struct": fields}
        if value.merge.map_type is MapType.ATOMIC:
            written["atomic"] = True
        if rest is not None:
            written["rest"] = rest
        return written

    def _field(self, field: Field, preserve: bool, defaults: Mapping[str, Any] | None = None) -> Any:
        written = self._type(field.value, preserve)
        merge = field.value.merge
        extra: dict[str, Any] = {}
        if defaults and field.wire_name in defaults:
            extra["default"] = defaults[field.wire_name]
        elif defaults is None and isinstance(field.value.default, str | int | float):
            extra["default"] = field.value.default
        if merge.patch_strategy:
            extra["patch"] = [word.value for word in merge.patch_strategy]
        if merge.patch_merge_key:
            extra["merge_key"] = merge.patch_merge_key
        if not extra:
            return written
        return {**({"word": written} if isinstance(written, str) else written), **extra}

    def _list(self, node: ListOf, value: Value, preserve: bool) -> Any:
        written: dict[str, Any] = {"list": self._type(node.items, preserve)}
        if value.merge.list_type is ListType.SET:
            written["set"] = True
        elif value.merge.list_type is ListType.MAP:
            written["keys"] = list(value.merge.list_map_keys)
        return written


def _map(values: Any, value: Value) -> Any:
    atomic = value.merge.map_type is MapType.ATOMIC
    return {"map": values, "atomic": True} if atomic else {"map": values}


def _text(table: Mapping[str, Any]) -> str:
    """The table as JSON, a field a line, those inside a long one too. It is the inside of a raw string in single
    quotes: it is ASCII and has no such quote in it."""
    entries = []
    for name, given in table.items():
        fields = given.get("struct") if isinstance(given, dict) else None
        if fields and next(iter(given)) == "struct":
            lines = ",\n".join(
                f"  {json.dumps(key)}: {json_lines(inner, 2, ascii_only=True)}"
                for key, inner in fields.items()
            )
            rest = {key: inner for key, inner in given.items() if key != "struct"}
            closing = f"}}, {json.dumps(rest)[1:]}" if rest else "}}"
            entries.append(f' {json.dumps(name)}: {{"struct": {{\n{lines}{closing}')
        else:
            entries.append(f" {json.dumps(name)}: {json_lines(given, 1, ascii_only=True)}")
    return ("{\n" + ",\n".join(entries) + "\n}\n").replace("'", "\\u0027")
