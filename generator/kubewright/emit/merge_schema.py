"""How the values of each group-version merge, as a literal table: ``<group_version>/merge_schema.py``.

The table is what ``apimachinery.merge.schema`` describes; a reviewer can hold it against the markers of the spec.
The rules are those of kube-apiserver's type converter (``apimachinery.merge.from_openapi`` has them in words).
Beyond the markers one thing is said here: the default of a list key that an item may omit. It is what defaulting
sets there without condition, else the zero of the typed struct, else the schema's own default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubewright.emit.code import names
from kubewright.emit.code.render import Call, Raw, docstring, expression, header, module, render
from kubewright.emit.registry import Options
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

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_SCALARS = {
    Primitive.INTEGER: "NUMBER",
    Primitive.NUMBER: "NUMBER",
    Primitive.BOOLEAN: "BOOLEAN",
}


def emitter(options: Options) -> Emitter:
    """The emitter of ``merge_schema.py``."""
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
            api_version = f"{group}/{version}" if group else version
            yield File(
                f"{modules[group, version]}/merge_schema.py",
                module(
                    render(
                        "merge_schema",
                        header=header(self.options.origins),
                        docstring=docstring(f"How values of {api_version} merge."),
                        imports=sorted(_used(table) | {"Type"}, key=names.import_order),
                        table=expression(table, 0, 26),
                    )
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
            return Raw("UNTYPED")
        value = definition.value
        if isinstance(value.type, Struct):
            fields = {f.wire_name: self._field(f, False, self.defaults) for f in value.type.fields}
            if (
                definition.kinds
                and isinstance(fields.get("metadata"), Call)
                and fields["metadata"].name != "Ref"
            ):
                fields["metadata"] = _ref(OBJECT_META)
            return self._struct_of(fields, value.type, value, value.type.preserve_unknown)
        return self._type(value, False)

    def _type(self, value: Value, preserve: bool) -> Any:
        node: Type = value.type
        if isinstance(node, Ref):
            if value.merge.map_type_declared:
                return _ref(node.name, value.merge.map_type is MapType.ATOMIC)
            return _ref(node.name)
        if isinstance(node, Scalar):
            if node.primitive is Primitive.STRING:
                return Raw("STRING" if node.format in ("", "byte") else "ANY")
            return Raw(_SCALARS[node.primitive])
        if isinstance(node, Duration):
            return Raw("STRING")
        if isinstance(node, ListOf):
            return self._list(node, value, preserve)
        if isinstance(node, MapOf):
            return _map(self._type(node.values, preserve), value)
        if isinstance(node, RawJson):
            return _map(Raw("DEDUCED"), value) if node.object_only else Raw("DEDUCED")
        if isinstance(node, EmbeddedObject):
            body = node.body
            inner = preserve or body.preserve_unknown
            fields = {f.wire_name: self._field(f, inner) for f in body.fields}
            fields |= {"apiVersion": Raw("STRING"), "kind": Raw("STRING"), "metadata": _ref(OBJECT_META)}
            return self._struct_of(dict(sorted(fields.items())), body, value, inner)
        if isinstance(node, Struct):
            inner = preserve or node.preserve_unknown
            fields = {f.wire_name: self._field(f, inner) for f in node.fields}
            return self._struct_of(fields, node, value, inner)
        return Raw("ANY")

    def _struct_of(self, fields: dict[str, Any], node: Struct, value: Value, preserve: bool) -> Any:
        rest: Any = None
        if node.extra is not None:
            rest = self._type(node.extra, preserve)
        elif preserve or not fields:
            rest = Raw("DEDUCED")
        if not fields and rest is not None:
            return _map(rest, value)
        arguments: list[tuple[str, Any]] = [("", fields)]
        if value.merge.map_type is MapType.ATOMIC:
            arguments.append(("atomic", True))
        if rest is not None:
            arguments.append(("rest", rest))
        return Call("Struct", tuple(arguments))

    def _field(self, field: Field, preserve: bool, defaults: Mapping[str, Any] | None = None) -> Any:
        written = self._type(field.value, preserve)
        merge = field.value.merge
        extra: list[tuple[str, Any]] = []
        if defaults and field.wire_name in defaults:
            extra.append(("default", defaults[field.wire_name]))
        elif defaults is None and isinstance(field.value.default, str | int | float):
            extra.append(("default", field.value.default))
        if merge.patch_strategy:
            extra.append(("patch", tuple(word.value for word in merge.patch_strategy)))
        if merge.patch_merge_key:
            extra.append(("merge_key", merge.patch_merge_key))
        return Call("Field", (("", written), *extra)) if extra else written

    def _list(self, node: ListOf, value: Value, preserve: bool) -> Any:
        arguments: list[tuple[str, Any]] = [("", self._type(node.items, preserve))]
        if value.merge.list_type is ListType.SET:
            arguments.append(("", Raw("SET")))
        elif value.merge.list_type is ListType.MAP:
            arguments += [("", Raw("MAP")), ("", value.merge.list_map_keys)]
        return Call("ListOf", tuple(arguments))


def _ref(name: str, atomic: bool | None = None) -> Call:
    return Call("Ref", (("", name),) if atomic is None else (("", name), ("atomic", atomic)))


def _map(values: Any, value: Value) -> Call:
    atomic = value.merge.map_type is MapType.ATOMIC
    return Call("MapOf", (("", values), ("atomic", True)) if atomic else (("", values),))


def _used(value: Any) -> set[str]:
    """The names of ``apimachinery.merge.schema`` that a table uses."""
    if isinstance(value, Raw):
        return {value.text}
    if isinstance(value, Call):
        return {value.name}.union(*(_used(item) for _, item in value.arguments))
    if isinstance(value, dict):
        return set().union(*map(_used, value.values()))
    return set()
