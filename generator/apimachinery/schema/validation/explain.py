"""The slow pass: every fault of a value against its schema, in kube-apiserver's order.

Theory. kube-openapi runs eight validators on each value, in this order: type, logic (anyOf, oneOf, allOf,
not), string, format, number, list, enum, object; the last two of list and object descend. It counts the
checks made, for ``anyOf`` and ``oneOf`` report the faults of the alternative that went furthest. Siblings
come in random order there and by name here. A null meets the type and the enum only.
"""

from __future__ import annotations

from typing import Any

from apimachinery.cel.patterns import PatternError, match_test
from apimachinery.meta.printing import as_go, go_quote
from apimachinery.schema.formats import string_format_check
from apimachinery.schema.node import SchemaNode
from apimachinery.schema.numbers import is_json_integer
from apimachinery.schema.validation.faults import Fault, FaultRule, Result
from apimachinery.schema.validation.numbers import number_faults
from apimachinery.schema.validation.ratcheting import OldAndNew, frozen, same


def explain(node: SchemaNode, value: Any, path: str = "", correlation: OldAndNew | None = None) -> Result:
    """Every fault of ``value``; with a correlation those of unchanged values are left out."""
    result = _explain_value(node, value, path, correlation)
    if result.faults and correlation is not None and correlation.unchanged():
        ratcheted = Result()
        ratcheted.checks = result.checks
        return ratcheted
    return result


def _explain_value(node: SchemaNode, value: Any, path: str, correlation: OldAndNew | None) -> Result:
    result = Result()
    if node.types or node.format:
        _type(result, node, value, path)
    if value is None:
        _enum(result, node, value, path)
        return result
    if node.any_of or node.one_of or node.all_of or node.negated is not None:
        result.merge(_logic(node, value, path))
    else:
        result.checks += 1
    result.checks += 1
    if isinstance(value, str):
        _string(result, node, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        result.add(*number_faults(node, value, path))
        result.checks += 2
    elif isinstance(value, list):
        _list(result, node, value, path, correlation)
    _enum(result, node, value, path)
    if isinstance(value, dict):
        _object(result, node, value, path, correlation)
    result.checks += 1
    return result


def json_type(value: Any) -> tuple[str, str]:
    """The JSON type of a value, and the format that Go's type for it implies."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, (int, float)):
        return ("integer", "int64") if isinstance(as_go(value), int) else ("number", "float64")
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, list):
        return "array", ""
    return "object", ""


def _type(result: Result, node: SchemaNode, value: Any, path: str) -> None:
    result.checks += 1
    if value is None:
        if node.types and "null" not in node.types and not node.nullable:
            result.add(_type_fault(path, ",".join(node.types), "null"))
        else:
            result.checks += 1
        return
    kind, implied = json_type(value)
    types = node.types
    fits = (
        kind in types
        or (kind == "integer" and "number" in types)
        or (kind == "number" and "integer" in types and is_json_integer(float(value)))
    )
    textual = isinstance(value, (str, list))
    if not textual and node.format and not (fits or implied == node.format):
        result.add(_type_fault(path, node.format, implied))
    elif textual and node.format and "number" not in types and "integer" not in types:
        result.checks += 1
    elif not fits:
        result.add(_type_fault(path, ",".join(types), kind))
    else:
        result.checks += 1


def _type_fault(path: str, wanted: str, found: str) -> Fault:
    return Fault(FaultRule.TYPE, path, f'{path} in body must be of type {wanted}: "{found}"', found)


def _string(result: Result, node: SchemaNode, value: str, path: str) -> None:
    fault: Fault | None = None
    if node.max_length is not None and len(value) > node.max_length:
        text = f"{path} in body should be at most {node.max_length} chars long"
        fault = Fault(FaultRule.TOO_LONG, path, text, value, node.max_length)
    elif node.min_length is not None and len(value) < node.min_length:
        fault = Fault(
            FaultRule.OTHER, path, f"{path} in body should be at least {node.min_length} chars long", value
        )
    elif node.pattern:
        fault = _pattern_fault(node.pattern, value, path)
    if fault is not None:
        result.add(fault)
    result.checks += 1
    check = string_format_check(node.format) if node.format else None
    if check is not None:
        if not check(value):
            text = f"{path} in body must be of type {node.format}: {go_quote(value)}"
            result.add(Fault(FaultRule.TYPE, path, text, value))
        result.checks += 1


def _pattern_fault(pattern: str, value: str, path: str) -> Fault | None:
    try:
        if match_test(pattern)(value):
            return None
    except PatternError as error:
        pattern = f"{pattern}, but pattern is invalid: {error}"
    return Fault(FaultRule.OTHER, path, f"{path} in body should match '{pattern}'", value)


def _list(
    result: Result, node: SchemaNode, value: list[Any], path: str, correlation: OldAndNew | None
) -> None:
    if node.items is not None:
        for index, item in enumerate(value):
            inner = correlation.item(index) if correlation is not None else None
            result.merge(explain(node.items, item, f"{path}[{index}]", inner))
    if node.min_items is not None and len(value) < node.min_items:
        text = f"{path} in body should have at least {node.min_items} items"
        result.add(Fault(FaultRule.OTHER, path, text, len(value)))
    if node.max_items is not None and len(value) > node.max_items:
        text = f"{path} in body should have at most {node.max_items} items"
        result.add(Fault(FaultRule.TOO_MANY, path, text, len(value), node.max_items))
    if node.unique_items and len(set(map(frozen, value))) < len(value):
        result.add(Fault(FaultRule.OTHER, path, f"{path} in body shouldn't contain duplicates"))
    result.checks += 2


def in_enum(value: Any, allowed: tuple[Any, ...]) -> bool:
    """Is a value one of those allowed; a number is converted to the type of the one it is compared with.

    A null never is, not even where a null is listed: kube-openapi compares values of a type only.
    """
    return value is not None and any(_equals(value, each) for each in allowed)


def _equals(value: Any, allowed: Any) -> bool:
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, (int, float)) and isinstance(allowed, (int, float)):
        if isinstance(as_go(allowed), int):
            return -(2.0**63) <= value < 2.0**63 and int(value) == allowed
        return float(value) == float(allowed)
    return same(value, allowed)


def _enum(result: Result, node: SchemaNode, value: Any, path: str) -> None:
    if node.enum and not in_enum(value, node.enum):
        text = f"{path} in body should be one of {node.enum}"
        result.add(Fault(FaultRule.ENUM, path, text, value, node.enum))
    result.checks += 1


def _object(
    result: Result, node: SchemaNode, value: dict[str, Any], path: str, correlation: OldAndNew | None
) -> None:
    result.checks += 1
    if node.min_properties is not None and len(value) < node.min_properties:
        text = f"{path} in body should have at least {node.min_properties} properties"
        result.add(Fault(FaultRule.OTHER, path, text, len(value)))
    if node.max_properties is not None and len(value) > node.max_properties:
        text = f"{path} in body should have at most {node.max_properties} properties"
        result.add(Fault(FaultRule.TOO_MANY, path, text, len(value), node.max_properties))
    if node.additional is False:
        for name in sorted(value):
            if name not in node.properties:
                text = f"{path}.{name} in body is a forbidden property"
                result.add(Fault(FaultRule.OTHER, path, text, name))
    elif isinstance(node.additional, SchemaNode):
        for name in sorted(value):
            if name not in node.properties:
                inner = correlation.field(name) if correlation is not None else None
                result.merge(explain(node.additional, value[name], f"{path}.{name}", inner))
    for name in sorted(node.properties.keys() & value.keys()):
        inner = (
            correlation.field(name) if correlation is not None and (path or name not in _TYPE_META) else None
        )
        result.merge(explain(node.properties[name], value[name], f"{path}.{name}" if path else name, inner))
    for name in node.required:
        if name not in value:
            inner_path = f"{path}.{name}"
            result.add(Fault(FaultRule.REQUIRED, inner_path, f"{inner_path} in body is required"))


_TYPE_META = ("kind", "apiVersion")


def _logic(node: SchemaNode, value: Any, path: str) -> Result:
    """The faults of anyOf, oneOf, allOf and not; what is below them is judged as if the value were new."""
    result = Result()
    if node.any_of:
        best: Result | None = None
        for alternative in node.any_of:
            found = _explain_value(alternative, value, path, None)
            if not found.faults:
                best = found
                break
            if best is None or found.checks > best.checks:
                best = found
        if best is not None:
            if best.faults:
                result.add(
                    Fault(FaultRule.PLAIN, path, f'"{path}" must validate at least one schema (anyOf)')
                )
            result.merge(best)
    if node.one_of:
        _one_of(result, node, value, path)
    if node.all_of:
        parts = [_explain_value(each, value, path, None) for each in node.all_of]
        for part in parts:
            result.merge(part)
        broken = sum(bool(part.faults) for part in parts)
        if broken:
            none = ". None validated" if broken == len(parts) else ""
            result.add(Fault(FaultRule.PLAIN, path, f'"{path}" must validate all the schemas (allOf){none}'))
    if node.negated is not None and not _explain_value(node.negated, value, path, None).faults:
        result.add(Fault(FaultRule.PLAIN, path, f'"{path}" must not validate the schema (not)'))
    result.checks += 1
    return result


def _one_of(result: Result, node: SchemaNode, value: Any, path: str) -> None:
    outcomes = [_explain_value(each, value, path, None) for each in node.one_of]
    valid = [each for each in outcomes if not each.faults]
    if len(valid) == 1:
        result.merge(valid[0])
        return
    said = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.add(
        Fault(FaultRule.PLAIN, path, f'"{path}" must validate one and only one schema (oneOf). {said}')
    )
    if not valid:
        result.merge(max(outcomes, key=lambda each: each.checks))
