"""Checks that rule files name: each takes a value and its path and yields what is wrong, in kube-apiserver's words.

A missing value (``None``) is not a fault except for ``required`` and its kin, so that one line of a rule file says one
thing. Values of a wrong type are the decoder's business and pass here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from apimachinery.kinds.fields import (
    Json,
    numbered,
    of_missing,
    same,
)
from apimachinery.kinds.formats import FORMATS, port_name_faults
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    too_long,
    too_many,
)
from apimachinery.meta.field_errors import (
    required as required_error,
)
from apimachinery.meta.quantity import parse_quantity

Errors = Iterator[FieldError]

# Python's ``re`` is safe here: the patterns are ours and linear.
_PERCENT = re.compile(r"[0-9]+%")
MAX_INT32 = 2**31 - 1


@of_missing
def required(value: Any, path: str, detail: str = "") -> Errors:
    """Something must be there: not null, not empty."""
    if value is None or value in ("", [], {}):
        yield required_error(path, detail)


@of_missing
def required_number(value: Any, path: str, detail: str = "") -> Errors:
    """A number other than 0 must be there."""
    if not value:
        yield required_error(path, detail)


@of_missing
def not_null(value: Any, path: str, detail: str = "") -> Errors:
    """Something must be there, be it empty."""
    if value is None:
        yield required_error(path, detail)


def forbid(value: Any, path: str, detail: str = "") -> Errors:
    """Nothing may be there."""
    if value is not None and value != []:
        yield forbidden(path, detail)


@of_missing
def refuse(value: Any, path: str, detail: str) -> Errors:
    """The value is wrong as it is; conditions say when."""
    yield invalid_value(path, value, detail)


def wrong(value: Any, path: str, detail: str) -> Errors:
    """Whatever is there is wrong; conditions say when."""
    if value is not None:
        yield invalid_value(path, value, detail)


@of_missing
def demand(value: Any, path: str, detail: str = "") -> Errors:
    """Whatever is there, more is required; conditions say when."""
    del value
    yield required_error(path, detail)


def one_of(value: Any, path: str, values: Sequence[str], pointer: bool = False) -> Errors:
    """A string must be one of ``values``, which are named in this order.

    An empty one is none, except of a field that Kubernetes has as a ``pointer``, which tells empty from missing.
    """
    if value is not None and (value or pointer) and value not in values:
        yield not_supported(path, value, values)


@of_missing
def must_be_one_of(value: Any, path: str, values: Sequence[str], pointer: bool = False) -> Errors:
    """A string must be there and be one of ``values``; see ``one_of``."""
    if value is None or (value == "" and not pointer):
        yield required_error(path)
    elif value not in values:
        yield not_supported(path, value, values)


@of_missing
def supported(value: Any, path: str, values: Sequence[str]) -> Errors:
    """A string, empty where it is missing, must be one of ``values``."""
    if (value or "") not in values:
        yield not_supported(path, value or "", values)


def minimum(value: Any, path: str, least: int = 0, detail: str = "") -> Errors:
    """A number must not be less."""
    if _is_number(value) and value < least:
        yield invalid_value(path, value, detail or f"must be greater than or equal to {least}")


def maximum(value: Any, path: str, most: int, detail: str = "") -> Errors:
    """A number must not be more."""
    if _is_number(value) and value > most:
        yield invalid_value(path, value, detail or f"must be less than or equal to {most}")


def at_most(value: Any, path: str, other: Any, detail: str) -> Errors:
    """A number must not be more than another one, if there is one."""
    if _is_number(value) and _is_number(other) and value > other:
        yield invalid_value(path, value, detail)


@of_missing
def number(value: Any, path: str, detail: str, least: int = 0, most: int | None = None) -> Errors:
    """A number, 0 where it is missing, must lie between the two."""
    if (value or 0) < least or (most is not None and value > most):
        yield invalid_value(path, value or 0, detail)


def more_than(value: Any, path: str, bound: int = 0) -> Errors:
    """A number must be more."""
    if _is_number(value) and value <= bound:
        yield invalid_value(path, value, f"must be greater than {bound}")


def between(value: Any, path: str, least: int, most: int, detail: str = "") -> Errors:
    """A number must lie between the two, both allowed."""
    if _is_number(value) and not least <= value <= most:
        yield invalid_value(path, value, detail or f"must be between {least} and {most}, inclusive")


def port(value: Any, path: str) -> Errors:
    """A port number, 0 meaning none."""
    if value:
        yield from between(value, path, 1, 65535)


def port_or_name(value: Any, path: str) -> Errors:
    """A port number or the name of one."""
    if isinstance(value, str):
        for detail in port_name_faults(value):
            yield invalid_value(path, value, detail)
    elif _is_number(value) and not 1 <= value <= 65535:
        yield invalid_value(path, value, "must be between 1 and 65535, inclusive")


def int_or_percent(value: Any, path: str) -> Errors:
    """A number of at least 0, or a percentage."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid_value(
                path,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')",
            )
    else:
        yield from minimum(value, path)


def at_most_100_percent(value: Any, path: str) -> Errors:
    """A percentage must not be above 100."""
    if (percent := percent_of(value)) is not None and percent > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def percent_of(value: Any) -> int | None:
    """The number of a percentage, ``None`` for anything else."""
    return (
        int(value[:-1]) if isinstance(value, str) and len(value) < 12 and _PERCENT.fullmatch(value) else None
    )


def no_more_than(value: Any, path: str, limit: int) -> Errors:
    """A list or map has a largest size."""
    if isinstance(value, list | dict) and len(value) > limit:
        yield too_many(path, len(value), limit)


def max_bytes(value: Any, path: str, most: int) -> Errors:
    """A string has a longest length, in bytes."""
    if isinstance(value, str) and len(value.encode()) > most:
        yield too_long(path, most)


def unique(value: Any, path: str, key: str = "") -> Errors:
    """The items of a list, or one field of them, must differ."""
    seen: set[Any] = set()
    for index, item in enumerate(value if isinstance(value, list) else ()):
        place = f"{path}[{index}]"
        if key:
            item = item.get(key) if isinstance(item, dict) else None
            place = f"{place}.{key}"
        if item in (None, ""):
            continue
        known = item if isinstance(item, str | int | float) else json.dumps(item, sort_keys=True)
        if known in seen:
            yield duplicate(place, item)
        seen.add(known)


def distinct(value: Any, path: str, key: str) -> Errors:
    """The items of a list must differ in one field, which is empty where it is missing; errors name the items."""
    seen: list[Any] = []
    for index, item in enumerate(value if isinstance(value, list) else ()):
        name = (item.get(key) if isinstance(item, dict) else None) or ""
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.append(name)


def immutable(value: Any, path: str, old: Any, pointer: bool = False) -> Errors:
    """A field must stay as it is stored. A string that is missing is shown as empty unless it is a ``pointer``."""
    if not same(value, old):
        shown = "" if value is None and isinstance(old, str) and not pointer else value
        yield invalid_value(path, shown, "field is immutable")


def forbid_change(value: Any, path: str, old: Any, detail: str) -> Errors:
    """A field must stay as it is stored, and saying so is a refusal of its own words."""
    if not same(value, old):
        yield forbidden(path, detail)


def between_seconds(value: Any, path: str, least: int, most: int) -> Errors:
    """A time-out within limits."""
    if _is_number(value) and not least <= value <= most:
        yield invalid_value(path, value, f"the timeout value must be between {least} and {most} seconds")


def string_format(value: Any, path: str, format: str) -> Errors:
    """A string that is not empty must be of ``format``, one of ``FORMATS``."""
    if isinstance(value, str) and value:
        for detail in FORMATS[format](value):
            yield invalid_value(path, value, detail)


def each_fault(value: Any, path: str, format: str) -> Errors:
    """A string, which an empty one is too, must be of ``format``."""
    for detail in FORMATS[format](value) if isinstance(value, str) else ():
        yield invalid_value(path, value, detail)


@of_missing
def text(value: Any, path: str, format: str) -> Errors:
    """A string must be of ``format``; one that is missing is empty."""
    yield from each_fault(value or "", path, format)


def internal_error(path: str, detail: str) -> FieldError:
    """What a check could not decide."""
    return FieldError(Reason.INTERNAL, path, detail)


@of_missing
def name(value: Any, path: str, format: str = "dns-label") -> Errors:
    """A name must be there and of ``format``."""
    if value in (None, ""):
        yield required_error(path)
    else:
        yield from string_format(value, path, format)


def keys_format(value: Any, path: str, format: str) -> Errors:
    """Every key of a map must be of ``format``."""
    for key in value if isinstance(value, dict) else ():
        for detail in FORMATS[format](key):
            yield invalid_value(f"{path}[{key}]", key, detail)


def labels(value: Any, path: str) -> Errors:
    """A map of labels: qualified names to label values."""
    for key, text in value.items() if isinstance(value, dict) else ():
        for detail in names.qualified_name_faults(key):
            yield invalid_value(path, key, detail)
        for detail in names.label_value_faults(text) if isinstance(text, str) else ():
            yield invalid_value(path, text, detail)


def annotation_map(value: Any, path: str) -> Errors:
    """A map of annotations: qualified names, 256 KiB in all."""
    total = 0
    for key, text in value.items() if isinstance(value, dict) else ():
        for detail in names.qualified_name_faults(key.lower()):
            yield invalid_value(path, key, detail)
        total += len(key.encode()) + len(str(text).encode("utf-8", "surrogatepass"))
    if total > 256 * 1024:
        yield too_long(path, 256 * 1024)


def label_selector(value: Any, path: str, name_values: bool = True) -> Errors:
    """A label selector: ``matchLabels`` and ``matchExpressions``."""
    if not isinstance(value, dict):
        return
    yield from labels(value.get("matchLabels"), f"{path}.matchLabels")
    for index, expression in numbered(value, "matchExpressions"):
        yield from selector_requirement(expression, f"{path}.matchExpressions[{index}]", name_values)


def selector_requirement(
    expression: Json, path: str, name_values: bool = True, known_operator: bool = True
) -> Errors:
    """One requirement of a selector: a key, an operator, and values where the operator takes some."""
    operator, values = expression.get("operator"), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required_error(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(
                f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    elif known_operator:
        yield invalid_value(f"{path}.operator", operator or "", "not a valid selector operator")
    key = expression.get("key") or ""
    for detail in names.qualified_name_faults(key) if isinstance(key, str) else ():
        yield invalid_value(f"{path}.key", key, detail)
    for index, text in enumerate(values if name_values and isinstance(values, list) else ()):
        for detail in names.label_value_faults(text) if isinstance(text, str) else ():
            yield invalid_value(f"{path}.values[{index}]", text, detail)


def selects(selector: Any, given: Any) -> bool:
    """Whether a label selector selects an object with the labels ``given``."""
    held = given if isinstance(given, dict) else {}
    if not isinstance(selector, dict):
        return False
    for key, text in (selector.get("matchLabels") or {}).items():
        if held.get(key) != text:
            return False
    for expression in selector.get("matchExpressions") or ():
        key, operator, values = (
            expression.get("key"),
            expression.get("operator"),
            expression.get("values") or [],
        )
        if operator == "In" and held.get(key) not in values:
            return False
        if operator == "NotIn" and key in held and held[key] in values:
            return False
        if operator in ("Exists", "DoesNotExist") and (key in held) != (operator == "Exists"):
            return False
    return True


@of_missing
def plain_selector_matches(value: Any, path: str, selector: Any) -> Errors:
    """The labels of a pod template must have every label of the plain selector next to it."""
    if isinstance(selector, dict) and selector and not selects({"matchLabels": selector}, value):
        yield invalid_value(path, value, "`selector` does not match template `labels`")


def quantity(value: Any, path: str, least: int | None = 0) -> Errors:
    """A resource quantity, by default not negative."""
    if value is None or isinstance(value, bool):
        return
    try:
        parsed = parse_quantity(str(value))
    except ValueError:
        return
    if least is not None and parsed.value < least:
        yield invalid_value(path, str(parsed), f"must be greater than or equal to {least}")


def quantity_above_zero(value: Any, path: str) -> Errors:
    """A resource quantity of more than nothing."""
    try:
        parsed = parse_quantity(str(value))
    except ValueError:
        return
    if parsed.value <= 0:
        yield invalid_value(path, str(parsed), "must be greater than zero")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def not_found(path: str, value: Any) -> FieldError:
    """A name that nothing bears."""
    return FieldError(Reason.NOT_FOUND, path, "", value)
