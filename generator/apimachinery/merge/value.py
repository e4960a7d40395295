"""JSON values: exact equality, order, and how Go prints them.

Equality is Python's except for one thing: ``true`` is not 1, as no JSON reader takes it to be; 1 and 1.0 are equal.
The order among forms is that of structured-merge-diff: numbers, strings, booleans, lists, objects, null; lists
compare item by item, objects by their sorted keys and values.
"""

from __future__ import annotations

import marshal
import re
from decimal import Decimal
from functools import cmp_to_key
from itertools import zip_longest
from json.encoder import encode_basestring
from typing import Any

from apimachinery.merge.errors import quote

_MISSING = object()


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: like ``==``, but ``true`` is not 1."""
    if a is b:
        return True
    if a != b:
        return False
    if isinstance(a, dict | list):
        # Equal by Python; equal bytes prove it for JSON too, and cost far less than a walk in Python.
        return marshal.dumps(a, 2) == marshal.dumps(b, 2) or _same_inside(a, b)
    return isinstance(a, bool) == isinstance(b, bool)


def _same_inside(a: Any, b: Any) -> bool:
    """``same`` for values that Python holds equal."""
    if isinstance(a, dict):
        return all(_same_inside(item, b[key]) for key, item in a.items())
    if isinstance(a, list):
        return all(map(_same_inside, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


def _rank(value: Any) -> int:
    if isinstance(value, bool):
        return 2
    if isinstance(value, int | float):
        return 0
    if isinstance(value, str):
        return 1
    if isinstance(value, list):
        return 3
    return 4 if isinstance(value, dict) else 5


def compare(a: Any, b: Any) -> int:
    """Negative, zero or positive as ``a`` sorts before, with or after ``b``. A total order on JSON values."""
    rank_a, rank_b = _rank(a), _rank(b)
    if rank_a != rank_b:
        return -1 if rank_a < rank_b else 1
    if rank_a == 5:
        return 0
    if rank_a == 3:
        for item_a, item_b in zip_longest(a, b, fillvalue=_MISSING):
            if item_a is _MISSING or item_b is _MISSING:
                return -1 if item_a is _MISSING else 1
            if order := compare(item_a, item_b):
                return order
        return 0
    if rank_a == 4:
        return compare([x for k in sorted(a) for x in (k, a[k])], [x for k in sorted(b) for x in (k, b[k])])
    return int(a > b) - int(a < b)


_slow_key = cmp_to_key(compare)


def sort_key(value: Any) -> tuple[int, Any]:
    """What sorts as ``compare`` says."""
    if isinstance(value, str):
        return 1, value
    if isinstance(value, int | float):
        return (2 if isinstance(value, bool) else 0), value
    return 3, _slow_key(value)


_IN_HTML = re.compile("[<>&\u2028\u2029]")


def encode_text(text: str) -> str:
    """A string as JSON that could stand in a page of HTML, as Go writes it."""
    encoded = encode_basestring(text)
    if _IN_HTML.search(encoded) is None:
        return encoded
    return _IN_HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def encode(value: Any) -> str:
    """The canonical JSON text of a value: keys sorted, no spaces, integral floats as integers."""
    if isinstance(value, str):
        return encode_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**63) <= value < 2**63 else _float_text(float(value))
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(encode, value))}]"
    return "{" + ",".join(f"{encode_text(k)}:{encode(value[k])}" for k in sorted(value)) + "}"


def _float_text(number: float) -> str:
    """A float as Go writes it in JSON: the shortest digits, an exponent for the very large and small alone."""
    if number == 0 or not 1e-6 <= abs(number) < 1e21:
        return "-0" if str(number) == "-0.0" else repr(number).removesuffix(".0")
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def go_text(value: Any) -> str:
    """A value as Go's ``%v`` prints it: ``map[a:1]``, ``[x y]``, ``<nil>``."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = float(value)
    if isinstance(value, float) and (value == 0 or 1e-4 <= abs(value) < 1e6):
        return f"{value:.17g}" if value == int(value) else repr(value)
    return _exponential(value) if isinstance(value, float) else encode(value)


def _exponential(number: float) -> str:
    """The shortest digits that say which float it is, and an exponent of two figures or more."""
    if number != number or number in (float("inf"), float("-inf")):
        return "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
    return next(text for length in range(17) if float(text := f"{number:.{length}e}") == number)


def go_syntax(value: Any) -> str:
    """A value as Go's ``%#v`` prints it: ``map[string]interface {}{"a":1}``."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return (
            "map[string]interface {}{"
            + ", ".join(f"{quote(k)}:{go_syntax(value[k])}" for k in sorted(value))
            + "}"
        )
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    return go_text(value)


def go_type(value: Any) -> str:
    """The name of the Go type that JSON decoding gives a value."""
    return _GO_TYPES[type(value)]


_GO_TYPES = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def json_form(value: Any) -> str:
    """What Go's JSON decoder calls a value: ``object``, ``array``, ``string``, ``number`` or ``bool``."""
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"
