"""Which objects a list or watch shows: label and field selectors of a query, as a choice among records.

``metadata.name`` and ``metadata.namespace`` that are asked for exactly narrow the scope that is read, so a watch
of one object costs what one object costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.http.messages import LARGE_BYTES, Request
from apimachinery.meta.asked import Route
from apimachinery.meta.errors import bad_request
from apimachinery.meta.json_path import print_value
from apimachinery.meta.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from apimachinery.server.answer.view import Selection, Trigger, labels_of
from apimachinery.server.catalog.served import Served
from apimachinery.storage.interface import Record
from apimachinery.wire.json import decode

Selectors = tuple[LabelSelector, FieldSelector]
SELECTOR_CHARACTERS = 64 << 10
"""Room for the names of a thousand objects, which is more than any client asks for at once."""
Readers = dict[str, Callable[[dict[str, Any]], str]]
"""Field labels with the functions that read their values of an object."""
_IN_KEY = frozenset({"metadata.name", "metadata.namespace"})


def read_selectors(request: Request) -> Selectors | None:
    """The selectors of a query, None where it has none. Raises ApiError 400 for one that cannot be read."""
    label_text = request.first("labelSelector") if request.query_string else ""
    field_text = request.first("fieldSelector") if request.query_string else ""
    if not label_text and not field_text:
        return None
    for name, text in (("labelSelector", label_text), ("fieldSelector", field_text)):
        if len(text) > SELECTOR_CHARACTERS:
            raise bad_request(
                f"{name}: {len(text)} characters are too many: at most {SELECTOR_CHARACTERS} are read; "
                "ask in several requests"
            )
    try:
        return parse_label_selector(label_text), parse_field_selector(field_text)
    except SelectorError as fault:
        raise bad_request(str(fault)) from None


def selection_of(selectors: Selectors | None, route: Route, served: Served) -> tuple[Selection | None, str]:
    """The choice (None for all) and the storage scope. Raises ApiError 400 for labels of fields that are not known."""
    namespace, name = route.namespace, route.name
    if selectors is None:
        if name:
            return None, served.key(namespace, name)
        return None, served.scope(namespace)
    labels, fields = selectors
    readers = {term.field: field_reader(served, term.field) for term in fields.terms}
    if name and fields.terms and fields.exact("metadata.name") != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    scope, fields = _narrowed(served, namespace, name, fields)
    if not labels.requirements and not fields.terms:
        return None, scope
    matches = _matcher(served, labels, fields, readers)
    trigger = _trigger(served, fields, readers)
    spans_namespaces = served.namespaced and scope == served.prefix
    open_name = fields.exact("metadata.name") if spans_namespaces else None
    return Selection(f"{labels!r} {fields!r}", matches, trigger, open_name or ""), scope


def _narrowed(served: Served, namespace: str, name: str, fields: FieldSelector) -> tuple[str, FieldSelector]:
    if served.namespaced and not namespace:
        exact = fields.exact("metadata.namespace")
        namespace = exact if exact and "/" not in exact else ""
    if not name and (namespace or not served.namespaced):
        exact = fields.exact("metadata.name")
        name = exact if exact and "/" not in exact else ""
    if name and (namespace or not served.namespaced):
        return served.key(namespace, name), fields
    return served.scope(namespace), fields


def field_reader(served: Served, label: str) -> Callable[[dict[str, Any]], str]:
    """Reads a field label's value of an object. Raises ApiError 400 for a label that is not supported."""
    hooks = served.hooks
    if label == "metadata.namespace" and not served.has_namespace_label:
        raise bad_request(_unknown(served, label))
    if label in _IN_KEY:
        key = label.removeprefix("metadata.")
        return lambda obj: obj["metadata"].get(key, "")
    own = hooks.selectable.get(label)
    if callable(own):
        return own
    if own is None and label not in _selectable(served):
        raise bad_request(_unknown(served, label))
    path = (own or label).split(".")

    def read(obj: dict[str, Any]) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return "" if value is None else print_value(value)

    return read


def _unknown(served: Served, label: str) -> str:
    return served.hooks.unknown_label.replace("{label}", label).replace("{version}", served.api_version)


def _selectable(served: Served) -> set[str]:
    return {path.removeprefix(".") for path in served.resource.selectable_fields}


def _matcher(
    served: Served, labels: LabelSelector, fields: FieldSelector, readers: Readers
) -> Callable[[Record], bool]:
    if not fields.terms:
        return lambda record: labels.matches(labels_of(record))
    in_key = FieldSelector(tuple(term for term in fields.terms if term.field in _IN_KEY))
    only_key = len(in_key.terms) == len(fields.terms)

    def matches(record: Record) -> bool:
        if in_key.terms and not in_key.matches(lambda label: _value_in_key(served, record, label)):
            return False
        if labels.requirements and not labels.matches(labels_of(record)):
            return False
        if only_key:
            return True
        if len(record.value) > LARGE_BYTES:
            return fields.matches(_kept_values(served, record, readers).__getitem__)
        obj = decode(served.shown(record))
        return fields.matches(lambda name: readers[name](obj))

    return matches


def _value_in_key(served: Served, record: Record, label: str) -> str:
    """The name or the namespace of a record, from its key: nothing is decoded for them."""
    if label == "metadata.name":
        return record.key[record.key.rfind("/") + 1 :]
    return record.key.removeprefix(served.prefix).partition("/")[0] if served.namespaced else ""


def _trigger(served: Served, fields: FieldSelector, readers: Readers) -> Trigger | None:
    """The exact value by which watches are found; None where no field is demanded exactly."""
    exact = [term for term in fields.terms if not term.negated and term.field != "metadata.namespace"]
    if not exact:
        return None
    label, value = exact[0].field, exact[0].value
    if label == "metadata.name":
        return Trigger(label, value, lambda record: _value_in_key(served, record, label))
    reader = {label: readers[label]}

    def read(record: Record) -> str:
        if len(record.value) > LARGE_BYTES:
            return _kept_values(served, record, reader)[label]
        return readers[label](decode(served.shown(record)))

    return Trigger((served.number, label), value, read)


def _kept_values(served: Served, record: Record, readers: Readers) -> dict[str, str]:
    """The values of a large object's fields, kept with its record: each of many watches asks for them."""
    shown = served.shown(record)
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    values: dict[str, str] = memo.setdefault(("fields", served.number), {})
    if any(name not in values for name in readers):
        obj = decode(shown)
        values.update({name: read(obj) for name, read in readers.items()})
    return values
