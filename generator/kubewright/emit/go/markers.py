"""Markers: what a spec says of a type or of a field, in the words of controller-gen and structured-merge-diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubewright.emit.code.presence import PRESERVE
from kubewright.emit.go.text import marker_value, one_line, string
from kubewright.emit.go.types import QUANTITY
from kubewright.ir.api import Resource
from kubewright.ir.merge import ListType, MapType, Merge
from kubewright.ir.types import (
    ABSENT,
    NO_CONSTRAINTS,
    Constraints,
    EmbeddedObject,
    IntOrString,
    ListOf,
    MapOf,
    RawJson,
    Rule,
    Scalar,
    Struct,
    Value,
)

_VALIDATION = "+kubebuilder:validation:"
_NUMBERS = {
    "minimum": "Minimum",
    "maximum": "Maximum",
    "multiple_of": "MultipleOf",
    "min_length": "MinLength",
    "max_length": "MaxLength",
    "min_items": "MinItems",
    "max_items": "MaxItems",
    "min_properties": "MinProperties",
    "max_properties": "MaxProperties",
}
_FLAGS = {
    "exclusive_minimum": "ExclusiveMinimum",
    "exclusive_maximum": "ExclusiveMaximum",
    "unique_items": "UniqueItems",
}
_ALTERNATIVES = {"all_of": "allOf", "any_of": "anyOf", "one_of": "oneOf"}
# Formats that Go types say by themselves.
_OF_TYPES = ("", "int32", "int64", "byte", "date-time")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTypes:
    """What types say by themselves of what is inside a value: of the innermost, that its ``enum`` is its, or that all
    its ``constraints`` are; and whether ``items`` of a list are of such a type, not only what they hold."""

    enum: bool = False
    constraints: bool = False
    items: bool = False


def of_field(value: Value, *, required: bool, said: AtTypes) -> Iterator[str]:
    """The markers of a field but for those that its types have."""
    yield "+required" if required else "+optional"
    if value.nullable:
        yield "+nullable"
    if value.default is not ABSENT and value.default is not None:
        yield f"+kubebuilder:default:={marker_value(value.default)}"
    if (example := dict(value.extensions).get("example")) is not None:
        yield f"+kubebuilder:example:={marker_value(example)}"
    yield from of_item(value, said)


def of_item(value: Value, said: AtTypes) -> Iterator[str]:
    """The markers of a type that is an item; of a field those about its value."""
    holds = isinstance(value.type, ListOf | MapOf)
    own = replace(value.constraints, enum=()) if said.enum else value.constraints
    yield from _of_value(value, NO_CONSTRAINTS if said.constraints and not holds else own, _VALIDATION)
    yield from _of_merge(value.merge, value)
    if isinstance(value.type, ListOf):
        items = value.type.items
        of_items = replace(items.constraints, enum=()) if said.enum else items.constraints
        if not (said.items and isinstance(items.type, Scalar | ListOf | MapOf)):
            yield from _of_value(items, NO_CONSTRAINTS if said.items else of_items, f"{_VALIDATION}items:")


def of_type(said: Constraints) -> Iterator[str]:
    """The markers of a class."""
    yield from _constraints(said, _VALIDATION)


def _of_value(value: Value, said: Constraints, prefix: str) -> Iterator[str]:
    node = value.type
    if isinstance(node, Scalar) and node.format not in _OF_TYPES:
        yield f"{prefix}Format={string(node.format)}"
    if isinstance(node, EmbeddedObject):
        yield f"{prefix}{'XEmbeddedResource' if 'items' in prefix else 'EmbeddedResource'}"
    if _preserves(value):
        yield (
            f"{prefix}XPreserveUnknownFields"
            if "items" in prefix
            else "+kubebuilder:pruning:PreserveUnknownFields"
        )
    if isinstance(node, IntOrString) and said.pattern:
        yield f"{prefix}XIntOrString"
    yield from _constraints(said, prefix)


def _preserves(value: Value) -> bool:
    node = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
    if (PRESERVE, True) in value.extensions:
        return True
    if isinstance(node, RawJson):
        return node.object_only
    return isinstance(node, Struct) and node.preserve_unknown


def _constraints(said: Constraints, prefix: str) -> Iterator[str]:
    if said is NO_CONSTRAINTS:
        return
    for name, word in _NUMBERS.items():
        if (number := getattr(said, name)) is not None:
            yield f"{prefix}{word}={number}"
    for name, word in _FLAGS.items():
        if getattr(said, name):
            yield f"{prefix}{word}=true"
    if said.pattern:
        yield f"{prefix}Pattern={_quoted(said.pattern)}"
    if said.enum:
        yield f"{prefix}Enum={';'.join(marker_value(member) for member in said.enum)}"
    for rule in said.rules:
        yield f"{prefix}XValidation:{_rule(rule)}"


def inexpressible(value: Value, *, at_type: bool) -> list[str]:
    """What no marker says of a value and of what lists and maps in it hold; with ``at_type`` its innermost type has
    markers of its own."""
    found = _alternatives(value)
    if isinstance(value.type, MapOf) and not at_type:
        inner = value.type.values
        if inner.constraints != NO_CONSTRAINTS and inner.constraints.pattern != QUANTITY:
            found.append("bounds of a map's values")
    while isinstance(value.type, ListOf | MapOf):
        holder, value = (
            ("items", value.type.items) if isinstance(value.type, ListOf) else ("values", value.type.values)
        )
        found += [f"{each} of {holder}" for each in _alternatives(value)]
        if value.nullable:
            found.append(f"nullable {holder}")
    return found


def _alternatives(value: Value) -> list[str]:
    constraints = value.constraints
    found = [word for name, word in _ALTERNATIVES.items() if getattr(constraints, name)]
    if isinstance(value.type, IntOrString):
        found = [word for word in found if word not in ("anyOf", "allOf")]
    return [*found, "not"] if constraints.negated is not None else found


def _rule(rule: Rule) -> str:
    words = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
    }
    said = [f"{key}={_quoted(text)}" for key, text in words.items() if text]
    if rule.optional_old_self is not None:
        said.append(f"optionalOldSelf={'true' if rule.optional_old_self else 'false'}")
    return ",".join(said)


def _quoted(text: str) -> str:
    """A string of a marker: raw where it can be, so that patterns are read as they are."""
    plain = text.isascii() and text.isprintable() and "`" not in text
    return f"`{text}`" if plain and ("\\" in text or '"' in text) else string(text)


def _of_merge(merge: Merge, value: Value) -> Iterator[str]:
    if merge.list_type_declared:
        yield f"+listType={merge.list_type.value}"
        if merge.list_type is ListType.MAP:
            yield from (f"+listMapKey={_word(key)}" for key in merge.list_map_keys)
    if merge.map_type_declared or merge.map_type is MapType.ATOMIC:
        yield f"+{'mapType' if isinstance(value.type, MapOf) else 'structType'}={merge.map_type.value}"


def _word(text: str) -> str:
    return text if text.isascii() and text.isalnum() else string(text)


def of_kind(resource: Resource, status: bool) -> Iterator[str]:
    """The markers of a kind, from the resource that serves it."""
    yield "+kubebuilder:object:root=true"
    if status:
        yield "+kubebuilder:subresource:status"
    for sub in resource.subresources:
        if sub.name == "scale" and sub.spec_replicas_path:
            selector = f",selectorpath={_quoted(sub.label_selector_path)}" if sub.label_selector_path else ""
            yield (
                f"+kubebuilder:subresource:scale:specpath={_quoted(sub.spec_replicas_path)},"
                f"statuspath={_quoted(sub.status_replicas_path)}{selector}"
            )
    words = [f"path={_word(resource.plural)}", f"scope={'Namespaced' if resource.namespaced else 'Cluster'}"]
    words.append(f"singular={_word(resource.singular)}")
    for key, several in (("shortName", resource.short_names), ("categories", resource.categories)):
        if several:
            words.append(f"{key}={'{' + ','.join(map(string, several)) + '}'}")
    yield "+kubebuilder:resource:" + ",".join(words)
    columns = resource.printer_columns if resource.manifest is not None else ()
    # The first is that of the name, which every table has.
    for column in (each for each in columns[1:] if not each.implied):
        said = [
            f"name={string(column.name)}",
            f"type={_word(column.type)}",
            f"JSONPath={_quoted(column.json_path)}",
        ]
        said += [f"description={string(column.description)}"] if column.description else []
        said += [f"priority={column.priority}"] if column.priority else []
        said += [f"format={_word(column.format)}"] if column.format else []
        yield "+kubebuilder:printcolumn:" + ",".join(said)
    for path in resource.selectable_fields:
        yield f"+kubebuilder:selectablefield:JSONPath={_quoted(path)}"
    if resource.storage and resource.manifest is not None:
        yield "+kubebuilder:storageversion"
    if not resource.served:
        yield "+kubebuilder:unservedversion"
    if resource.deprecated:
        warning = one_line(resource.deprecation_warning)
        if warning == f"{resource.group}/{resource.version} {resource.kind} is deprecated":
            warning = ""  # what a server says by itself
        yield "+kubebuilder:deprecatedversion" + (f":warning={string(warning)}" if warning else "")
