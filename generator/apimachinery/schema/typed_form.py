"""The form an object of a built-in kind takes in typed structs: what decoding and encoding it once leaves.

Theory. kube-apiserver decodes built-in kinds into Go structs and writes them out again, so an object comes back in
a normal form that no schema states: null and zero values of optional fields are gone; fields without
``omitempty`` are always there (``status: {}``, ``eventTime: null``); a zero that a pointer holds stays
(``replicas: 0``); times are in UTC and quantities canonical. ``specs/kubernetes/zero_values.yaml`` holds the facts,
a generated ``zero_values.py`` holds them as ``ZERO_VALUES``, and ``compile_typed_form`` makes a function of them
and the definitions. Defaults run on an object in this form.

The function changes the object in place and never fails: a value of a wrong type stays as it is, for the decoder to
refuse. Applying it twice changes nothing more.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from apimachinery.meta.quantity import canonical
from apimachinery.meta.times import instant, utc_text

Apply = Callable[[Any], Any]
"""Takes a value, changes it in place where it can, and returns what is there now."""

ZeroTable = Mapping[str, tuple[Mapping[str, Any], Collection[str]]]
"""Definition → (fields always written, with their zero values; scalars kept although zero)."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# A schema within a schema, or a list of them, a word or a list of words.
_INNER_SCHEMA = re2.compile(r"(.+\.JSONSchemaProps)Or(?:Array|Bool|StringArray)")
LONGEST_KEPT = 40
_ZERO_SECONDS, _ZERO_MICROSECONDS = "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"


Empties = tuple[tuple[tuple[str | int, ...], bool], ...]
"""Where an object had empty lists (True) and maps that its typed form leaves out."""


class _Reading(threading.local):
    """``empties``: what is found while an object is read, the holders and keys of empty lists and maps, and whether
    they stay until the object is stored; None otherwise. ``unsets``: zero times become null."""

    empties: list[tuple[dict[str, Any], str, bool]] | None = None
    unsets: bool = False


_reading = _Reading()


class TypedForm:
    """Brings objects of one definition into typed form, in place."""

    def __init__(self, apply: Apply) -> None:
        self._apply = apply

    def __call__(self, obj: dict[str, Any]) -> None:
        """The form of an object that is to be stored or shown."""
        self._apply(obj)

    def unset(self, obj: dict[str, Any]) -> None:
        """Writes null for the zero times that pointers lead to, as Go does at the very end."""
        _reading.unsets = True
        try:
            self._apply(obj)
        finally:
            _reading.unsets = False

    def read(
        self,
        obj: dict[str, Any],
        fill_in: Callable[[dict[str, Any]], None],
        formed: Callable[[dict[str, Any]], None] | None = None,
    ) -> Empties:
        """The form of an object that a client sent, with defaults. An empty list that was sent is there for the
        defaults and for whoever judges the object (``with_empties``), though it is never stored. Where there is none,
        ``formed`` is called before the defaults."""
        _reading.empties = []
        try:
            self._apply(obj)
            found = _reading.empties
        finally:
            _reading.empties = None
        if formed is not None and not found:
            formed(obj)
        fill_in(obj)
        if not found:
            return ()
        keys: dict[int, list[tuple[str, bool]]] = {}
        # By identity: the holders are changed by defaults before they are looked at again.
        for holder, key, stays in found:
            keys.setdefault(id(holder), []).append((key, stays))
        return tuple(_taken_out(obj, (), keys))


def _taken_out(
    value: Any, path: tuple[str | int, ...], keys: Mapping[int, list[tuple[str, bool]]]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Takes the empty lists and maps that do not stay out of their holders; where they all were."""
    if isinstance(value, dict):
        for key, stays in keys.get(id(value), ()):
            if value.get(key) in ([], {}):
                # Defaults may have filled the field meanwhile.
                yield (*path, key), isinstance(value[key] if stays else value.pop(key), list)
        for key, item in value.items():
            yield from _taken_out(item, (*path, key), keys)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _taken_out(item, (*path, index), keys)


def with_empties(obj: dict[str, Any], empties: Empties) -> dict[str, Any]:
    """A copy of an object with the empty lists and maps that were sent, where there is nothing now."""
    made: dict[str, Any] = deepcopy(obj)
    for path, is_list in empties:
        holder: Any = made
        for step in path[:-1]:
            if isinstance(holder, list):
                holder = holder[step] if isinstance(step, int) and step < len(holder) else None
            else:
                holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and holder.get(str(path[-1])) is None:
            holder[str(path[-1])] = [] if is_list else {}
    return made


def compile_typed_form(definition: str, definitions: Mapping[str, Any], zero_values: ZeroTable) -> TypedForm:
    """What brings an object of ``definition`` into typed form, in place."""
    return TypedForm(_Compiler(definitions, zero_values).definition(definition))


@dataclass(slots=True)
class _Struct:
    """The form of one definition: which fields go when null, which when zero, which are always there."""

    written: Mapping[str, Any]
    nullable: set[str] = field(default_factory=set)
    omitted: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    inner: dict[str, Apply] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        # Most objects are in form: nothing empty, nothing missing.
        written = self.written
        if not all(value.values()) or (written and not written.keys() <= value.keys()):
            self._fill_in(value)
        inner = self.inner
        # Whichever are fewer: the fields that are there, or those with a form of their own.
        if len(value) < len(inner):
            for key, item in value.items():
                if item is not None and (apply := inner.get(key)) is not None:
                    value[key] = apply(item)
            return value
        for key, apply in inner.items():
            item = value.get(key)
            if item is not None:
                value[key] = apply(item)
        return value

    def _fill_in(self, value: dict[str, Any]) -> None:
        """Takes out what is empty and left out, puts there what is always written."""
        empty = [key for key, item in value.items() if not item]
        for key in empty:
            if key in self.omitted or (value[key] is None and key in self.nullable):
                if _reading.empties is not None and value[key] in ([], {}):
                    _reading.empties.append((value, key, False))
                else:
                    del value[key]
        for key, zero in self.written.items():
            item = value.get(key)
            # Storage forgets the difference between an empty list and none, so answers have none.
            if item is None:
                value[key] = {} if zero == {} else zero
            elif not item and key in self.forgotten:
                if _reading.empties is None:
                    value[key] = zero
                else:
                    _reading.empties.append((value, key, True))


class _Compiler:
    def __init__(self, definitions: Mapping[str, Any], zero_values: ZeroTable) -> None:
        self._definitions = definitions
        self._zero_values = zero_values
        self._known: dict[str, Apply] = {
            _QUANTITY: _quantity,
            _META + "Time": _seconds,
            _META + "MicroTime": _microseconds,
        }

    def definition(self, name: str) -> Apply:
        """The form of a definition; it is known before its fields are read, so recursive types end."""
        if name in self._known:
            return self._known[name]
        if (found := _INNER_SCHEMA.fullmatch(name)) is not None:
            schema = self.definition(found[1])
            self._known[name] = lambda value: (
                [schema(each) for each in value] if isinstance(value, list) else schema(value)
            )
            return self._known[name]
        properties = self._definitions.get(name, {}).get("properties")
        # Without facts about its zero values a definition is left as it is.
        if not properties or name not in self._zero_values:
            self._known[name] = _unchanged
            return _unchanged
        written, kept = self._zero_values[name]
        form = self._known[name] = _Struct(written)
        for key, schema in properties.items():
            if key not in written:
                form.nullable.add(key)
                if "$ref" not in schema and "type" in schema and key not in kept:
                    form.omitted.add(key)
            elif written[key] is None and ("items" in schema or "additionalProperties" in schema):
                form.forgotten.add(key)
            apply = self.value(schema)
            # A time that is always written is null where it is zero.
            if key in written and apply is _seconds:
                apply = _seconds_unless_zero
            if apply is not _unchanged:
                # Python calls a method without the detour that an instance takes.
                form.inner[key] = apply.__call__ if isinstance(apply, _Struct) else apply
        return form

    def _element(self, schema: Any) -> Apply:
        """The form of a list's item or a map's value: there Go reads null as the zero value of its type."""
        if isinstance(schema, dict) and "$ref" not in schema:
            if schema.get("format") == "byte":
                return lambda value: "" if value is None else _bytes(value)
            zero = _ZEROS.get(schema.get("type", ""))
            if zero is not None:
                return zero
        apply = self.value(schema)
        if apply is _quantity:
            return lambda value: "0" if value is None else _quantity(value)
        if isinstance(apply, _Struct):
            struct = apply
            return lambda value: struct({} if value is None else value)
        return apply

    def value(self, schema: Any) -> Apply:
        """The form of what is at one place."""
        if not isinstance(schema, dict):
            return _unchanged
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.definition(reference.rpartition("/")[2])
        if schema.get("type") == "array":
            if isinstance(struct := self.value(schema.get("items")), _Struct):
                return _each_struct(struct)
            inner = self._element(schema.get("items"))
            return _unchanged if inner is _unchanged else _each_item(inner)
        if schema.get("type") == "object" and "additionalProperties" in schema:
            inner = self._element(schema["additionalProperties"])
            return _unchanged if inner is _unchanged else _each_entry(inner)
        if schema.get("type") == "string" and schema.get("format") == "byte":
            return _bytes
        return _unchanged


def _bytes(value: Any) -> Any:
    """Bytes come back as Go writes them: base64 in one line, though they came as a list of numbers."""
    if isinstance(value, list):
        try:
            return base64.b64encode(bytes(0 if item is None else item for item in value)).decode()
        except (TypeError, ValueError):
            return value
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        return value.replace("\r", "").replace("\n", "")
    return value


def _unchanged(value: Any) -> Any:
    return value


def _zero_for_null(zero: str | int | bool) -> Apply:
    return lambda value: zero if value is None else value


_ZEROS: dict[str, Apply] = {
    "string": _zero_for_null(""),
    "integer": _zero_for_null(0),
    "boolean": _zero_for_null(False),
}


def _each_item(apply: Apply) -> Apply:
    def apply_to_items(value: Any) -> Any:
        if isinstance(value, list):
            value[:] = [apply(item) for item in value]
        return value

    if apply in _ZEROS.values():
        return lambda value: apply_to_items(value) if isinstance(value, list) and None in value else value
    return apply_to_items


def _each_struct(struct: _Struct) -> Apply:
    form = struct.__call__

    def apply_to_structs(value: Any) -> Any:
        if isinstance(value, list):
            if None in value:
                value[:] = [{} if item is None else item for item in value]
            # A struct stays where it is: its form changes it in place.
            for item in value:
                form(item)
        return value

    return apply_to_structs


def _each_entry(apply: Apply) -> Apply:
    def apply_to_entries(value: Any) -> Any:
        if isinstance(value, dict):
            for key, item in value.items():
                value[key] = apply(item)
        return value

    if apply in _ZEROS.values():
        return lambda value: (
            apply_to_entries(value) if isinstance(value, dict) and None in value.values() else value
        )
    return apply_to_entries


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return canonical(value)
    except ValueError:
        return value


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = _in_seconds(value) if len(value) < LONGEST_KEPT else _in_seconds.__wrapped__(value)
    return None if text == _ZERO_SECONDS and _reading.unsets else text


def _microseconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = _in_microseconds(value) if len(value) < LONGEST_KEPT else _in_microseconds.__wrapped__(value)
    return None if text == _ZERO_MICROSECONDS and _reading.unsets else text


def _seconds_unless_zero(value: Any) -> Any:
    """The form of a time that a struct holds itself: there is none where it is zero."""
    text = _seconds(value)
    return None if text == _ZERO_SECONDS else text


# The same few times come again and again: of the managers of an object, and of objects made together.
@lru_cache(maxsize=4096)
def _in_seconds(value: str) -> str:
    moment = instant(value)
    return value if moment is None else f"{utc_text(moment[0])}Z"


@lru_cache(maxsize=4096)
def _in_microseconds(value: str) -> str:
    moment = instant(value)
    return value if moment is None else f"{utc_text(moment[0])}.{moment[1] // 1000:06d}Z"
