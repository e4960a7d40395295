"""Why a value does not fit its merge type: the slow walk behind ``Misfit``, in kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.merge.compile import ItemsType
from apimachinery.merge.errors import TypeFault, TypeFaults, quote
from apimachinery.merge.fields_v1 import element_text
from apimachinery.merge.lists import KeyedType
from apimachinery.merge.structs import StructType
from apimachinery.merge.typed import AtomicType, EitherType, MergeType, Misfit, ScalarType
from apimachinery.merge.value import go_syntax, go_text, go_type

_Report = Callable[[str, str], None]


def explain(type_: MergeType, value: Any, *, strict: bool = True) -> TypeFaults:
    """All that is wrong with ``value``, in its own order. ``strict`` as in ``MergeType.owned``."""
    faults: list[TypeFault] = []
    _walk(type_, value, "", strict, lambda path, detail: faults.append(TypeFault(path, detail)))
    return TypeFaults(tuple(faults) or (TypeFault("", "does not fit the merge schema"),))


def _walk(type_: MergeType, value: Any, path: str, strict: bool, report: _Report) -> None:
    if value is None:
        return
    if isinstance(type_, EitherType):
        if type(value) in type_.leaf:
            return
        form = type_.map if isinstance(value, dict) else type_.list if isinstance(value, list) else None
        if form is None:
            report(path, f"expected any scalar, got &{{{go_text(value)}}}")
        else:
            _walk(form, value, path, strict, report)
    elif isinstance(type_, AtomicType):
        if type_.form is not None and type(value) is not type_.form:
            _report_form(type_.form, value, path, report)
        elif isinstance(type_.content, ItemsType):
            for index, item in enumerate(value):
                _walk(type_.content.items, item, f"{path}[{index}]", strict, report)
        elif type_.content is not None:
            _walk(type_.content, value, path, strict, report)
    elif isinstance(type_, KeyedType):
        _walk_items(type_, value, path, strict, report)
    elif isinstance(type_, StructType):
        _walk_fields(type_, value, path, strict, report)
    elif isinstance(type_, ScalarType) and type(value) not in type_.leaf:
        report(path, _scalar_fault(type_.kind, value))


def _walk_fields(type_: StructType, value: Any, path: str, strict: bool, report: _Report) -> None:
    if not isinstance(value, dict):
        _report_form(dict, value, path, report)
        return
    for key, item in value.items():
        try:
            entry = type_.entry(key)
        except Misfit:
            report(f"{path}.{key}", "field not declared in schema")
            return
        _walk(entry.type, item, f"{path}.{key}", strict, report)


def _walk_items(type_: KeyedType, value: Any, path: str, strict: bool, report: _Report) -> None:
    if not isinstance(value, list):
        _report_form(list, value, path, report)
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            element = type_.element(item)
        except Misfit:
            report(path, f"element {index}: {_element_fault(type_, item)}")
            return
        text = element_text(element)
        if element in seen and strict:
            report(path, f"duplicate entries for key {text}")
        seen.add(element)
        _walk(type_.items, item, f"{path}{text}", strict, report)


def _element_fault(type_: KeyedType, item: Any) -> str:
    if not type_.keys:
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's an explicit null"
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    names = " ".join(quote(name) for name, _ in type_.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{names}] "
        "(and doesn't have default values for any key fields)"
    )


def _report_form(form: type, value: Any, path: str, report: _Report) -> None:
    report(path, f"expected {'map' if form is dict else 'list'}, got &{{{go_text(value)}}}")


def _scalar_fault(kind: str, value: Any) -> str:
    if kind == "numeric":
        return f"expected numeric (int or float), got {go_type(value)}"
    if kind == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    return f"expected {'boolean' if kind == 'boolean' else 'any scalar'}, got &{{{go_text(value)}}}"
