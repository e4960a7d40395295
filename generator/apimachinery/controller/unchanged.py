"""Whether an apply would change anything, by what the cache has of the object: then none is sent. No I/O.

Theory. What a manager applied last is in ``managedFields``: a trie of fields, whose leaves are values, or lists and
maps that are owned whole. Another manager that changes one of these values takes the field out of the trie. So an apply
changes nothing where the trie has the fields of the configuration and no others, and the object has its values.

No schema is needed: the trie says which lists have keys. Whatever does not fit (a value that the server wrote
otherwise, a default among the keys of an item) counts as a change, and costs a request that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_IDENTITY = ("apiVersion", "kind")
_NAMES = ("name", "namespace")


def applied_already(wanted: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Whether ``live`` is as ``manager`` applying ``wanted`` would make it."""
    metadata = live.get("metadata") or {}
    entries = [
        entry
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    ]
    if len(entries) != 1 or entries[0].get("apiVersion") != wanted.get("apiVersion"):
        return False
    body = {key: value for key, value in wanted.items() if key not in _IDENTITY}
    meta = {key: value for key, value in (body.pop("metadata", None) or {}).items() if key not in _NAMES}
    if meta:
        body["metadata"] = meta
    return _same_members(entries[0].get("fieldsV1") or {}, body, live)


def _same_members(fields: Mapping[str, Any], wanted: Mapping[str, Any], live: Any) -> bool:
    names = {name[2:]: inner for name, inner in fields.items() if name != "."}
    if not isinstance(live, Mapping) or names.keys() != wanted.keys():
        return False
    if any(not name.startswith("f:") for name in fields if name != "."):
        return False
    return all(name in live and _same(inner, wanted[name], live[name]) for name, inner in names.items())


def _same(fields: Mapping[str, Any], wanted: Any, live: Any) -> bool:
    if not any(name != "." for name in fields):
        return type(wanted) is type(live) and bool(wanted == live)
    if isinstance(wanted, Mapping):
        return _same_members(fields, wanted, live)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str) and isinstance(live, Sequence):
        return _same_items(fields, wanted, live)
    return False


def _same_items(fields: Mapping[str, Any], wanted: Sequence[Any], live: Sequence[Any]) -> bool:
    members = {name: inner for name, inner in fields.items() if name != "."}
    if len(members) != len(wanted):
        return False
    for name, inner in members.items():
        key = msgspec.json.decode(name[2:])
        if name.startswith("k:"):
            mine, theirs = _item(wanted, key), _item(live, key)
            if mine is None or theirs is None or not _same(inner, mine, theirs):
                return False
        elif not name.startswith("v:") or key not in wanted or key not in live:
            return False
    # The order of keyed items is a change as well.
    return _order(members, wanted) == _order(members, live)


def _item(items: Sequence[Any], key: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for item in items:
        if isinstance(item, Mapping) and all(item.get(name) == value for name, value in key.items()):
            return item
    return None


def _order(members: Mapping[str, Any], items: Sequence[Any]) -> list[str]:
    order = []
    for item in items:
        for name in members:
            key = msgspec.json.decode(name[2:])
            if item == key or (name.startswith("k:") and _item([item], key) is not None):
                order.append(name)
    return order
