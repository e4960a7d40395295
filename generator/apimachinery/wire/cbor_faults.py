"""Faults of CBOR bodies in the words of the decoder that Kubernetes reads structs with (KEP-4222).

That decoder names the struct of the whole object and the object's own field, however deep the fault is; it reports
one unknown field alone, by its place in its map, the outermost before those within.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

_TYPED = re.compile(
    r"json: cannot unmarshal (?P<what>\w+)(?: (?P<shown>\S+))? into Go (?:struct field \w*\.(?P<path>[\w.-]+)|value)"
    r" of type (?P<wanted>.+)",
    re.DOTALL,
)
_NAMES = {"object": "map", "string": "UTF-8 text string", "bool": "primitives", "null": "primitives"}
_INDEX = re.compile(r"\[(\d{1,9})\]\.?")
_BASE64 = "illegal base64 data"
_NO_ARRAY = " (cannot decode CBOR array to struct without toarray option)"


def typed_fault(fault: str, root: str, data: bytes = b"") -> str:
    """A fault of JSON's decoder as that of CBOR; ``root`` is the Go type of the object, ``data`` the document, where
    what the fault leaves out is looked up."""
    if fault.startswith(_BASE64):
        return f"cbor: failed to decode base64 from byte string: {fault}"
    found = _TYPED.fullmatch(fault)
    if found is None:
        return fault
    wanted, shown = found["wanted"], found["shown"]
    # The struct that only has apiVersion and kind is called TypeMeta by Go.
    if wanted.startswith("struct {"):
        wanted = "v1.TypeMeta"
    what, more = _NAMES.get(found["what"], found["what"]), ""
    if data and not shown and found["what"] in ("number", "string"):
        from apimachinery.wire import cbor

        what = cbor.type_at(data, found["path"].split(".") if found["path"] else (), found["what"])
    if what == "number":
        what = "negative integer" if (shown or "").startswith("-") else "positive integer"
        if shown and not shown.lstrip("-").isdigit():
            what = "primitives"
        elif shown:
            more = f" ({shown} overflows {wanted})"
    elif what == "array" and "." in wanted and not wanted.startswith(("[]", "map[")):
        more = _NO_ARRAY
    where = f"struct field {root}.{found['path'].split('.')[0]}" if found["path"] else "value"
    return f"cbor: cannot unmarshal {what} into Go {where} of type {wanted}{more}"


def unknown_place(data: bytes, dropped: Collection[str]) -> int:
    """The place in its map of the unknown field that is reported; ``dropped`` are the paths of all of them."""
    from apimachinery.wire import cbor

    # The outermost first, as the decoder meets them.
    path = min(dropped, key=lambda path: path.count("."))
    value: Any = cbor.decode(data)
    while True:
        if isinstance(value, list) and (index := _INDEX.match(path)) and int(index[1]) < len(value):
            value, path = value[int(index[1])], path[index.end() :]
        elif not isinstance(value, dict):
            return 0
        elif path in value:
            return list(value).index(path)
        else:
            # A key may be empty, or have dots and brackets itself: the longest that fits is taken.
            fits = [
                key for key in value if path.startswith(key) and path[len(key) : len(key) + 1] in (".", "[")
            ]
            if not fits:
                return 0
            key = max(fits, key=len)
            value, path = value[key], path[len(key) :].removeprefix(".")
