"""Defaults of a schema, as CustomResourceDefinitions apply them.

Rules. A missing field gets a copy of its default; what was there, zero values and nulls of nullable fields
included, stays. A null for a field that is not nullable counts as missing: it gives way to the default, or
is dropped where there is none (items of lists stay, and are refused later). Then the fields that are there
are entered: below an object that is missing nothing is defaulted, unless a default just put the object
there. Items of lists and values of maps are entered likewise; ``allOf`` and its like hold no defaults.
Source: apiextensions' schema/defaulting.

A short object may have room for many defaults: a million empty list items, each of which is filled in. So what one
object is given is counted, and past ``DEFAULTED_BYTES`` it is given up: it could not be stored.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from apimachinery.meta.errors import ApiError
from apimachinery.schema.node import MISSING, SchemaNode

DEFAULTED_BYTES = 8 << 20
FIELD_BYTES = 8


class DefaultsTooLarge(ApiError):
    """More defaults than an object can be stored with: refused as kube-apiserver refuses the object then."""

    def __init__(self) -> None:
        super().__init__(500, "", "etcdserver: request is too large", has_details=False)


class _Spent(threading.local):
    size = 0


_spent = _Spent()


def begin_defaults() -> None:
    """Counts from here on, for another object."""
    _spent.size = 0


def _spend(size: int) -> None:
    _spent.size += size
    if _spent.size > DEFAULTED_BYTES:
        raise DefaultsTooLarge


def _size(default: Any) -> int:
    return len(json.dumps(default)) + FIELD_BYTES


Defaulter = Callable[[Any], None]
Maker = Callable[[], Any]


def compile_defaulter(node: SchemaNode) -> Defaulter | None:
    """The closure that fills in the defaults below a node, in place; None where there is nothing to enter."""
    if node.items is not None and not (node.properties or isinstance(node.additional, SchemaNode)):
        return _list_defaulter(node.items)
    if not node.properties and not isinstance(node.additional, SchemaNode):
        return None
    enter_list = _list_defaulter(node.items) if node.items is not None else None
    children = {name: made for name, child in node.properties.items() if (made := compile_defaulter(child))}
    values = compile_defaulter(node.additional) if isinstance(node.additional, SchemaNode) else None
    missing = [
        (name, value_maker(child.default), len(name) + _size(child.default))
        for name, child in node.properties.items()
        if child.default is not MISSING
    ]
    known, get_child, several = node.properties, children.get, list(children.items())

    def fill(value: Any) -> None:
        if type(value) is not dict:
            if enter_list is not None:
                enter_list(value)
            return
        if None in value.values():
            _replace_nulls(node, value)
        given = 0
        for name, make, size in missing:
            if name not in value:
                value[name] = make()
                given += size
        if given:
            _spend(given)
        if values is not None:
            for name, each in value.items():
                if name not in known:
                    values(each)
        if len(several) < len(value):
            for name, enter in several:
                if name in value:
                    enter(value[name])
        elif several:
            for name, each in value.items():
                if (enter_child := get_child(name)) is not None:
                    enter_child(each)

    return fill


def _list_defaulter(items: SchemaNode) -> Defaulter | None:
    enter = compile_defaulter(items)
    size = _size(items.default) if items.default is not MISSING else 0
    make = value_maker(items.default) if items.default is not MISSING and not items.nullable else None
    if enter is None and make is None:
        return None

    def fill(value: Any) -> None:
        if type(value) is not list:
            return
        if make is not None and None in value:
            _spend(size * value.count(None))
            value[:] = [make() if each is None else each for each in value]
        if enter is not None:
            for each in value:
                enter(each)

    return fill


def _replace_nulls(node: SchemaNode, value: dict[str, Any]) -> None:
    for name in [name for name, each in value.items() if each is None]:
        child = node.properties.get(name)
        if child is None and isinstance(node.additional, SchemaNode):
            child = node.additional
        if child is None or child.nullable:
            continue
        if child.default is MISSING:
            del value[name]
        else:
            _spend(_size(child.default))
            value[name] = value_maker(child.default)()


def value_maker(default: Any) -> Maker:
    """A function that gives a fresh copy of a default."""
    if isinstance(default, dict):
        return _dict_maker(default) if default else dict
    if isinstance(default, list):
        made = [value_maker(each) for each in default]
        return lambda: [make() for make in made]
    return lambda: default


def _dict_maker(default: dict[str, Any]) -> Maker:
    made = [(name, value_maker(each)) for name, each in default.items()]
    return lambda: {name: make() for name, make in made}
