"""Which class is which kind: lookup both ways, decoding of bytes to typed objects and back.

A ``Scheme`` is made by a generated ``scheme.py`` from a table ``apiVersion → kind → "module.Class"``; a model
module is imported when the first of its classes is asked for.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from apimachinery.meta.object import Object


class UnknownKindError(LookupError):
    """No class is registered for an apiVersion and kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


T = TypeVar("T")
_TYPE_META = msgspec.json.Decoder(_TypeMeta)


_NULL = re.compile(r"^Expected `([a-z |]+)`, got `null` - at `\$(.*)`$")
_MISSING = re.compile(r"^Object missing required field `([^`]*)`(?: - at `\$(.*)`)?$")
_STEPS = re.compile(r"\[[^\]]*\]|\.([^.\[]+)")
_ZEROS: dict[str, Any] = {"array": [], "object": {}, "str": "", "int": 0, "float": 0.0, "bool": False}


def convert_with_zeros(value: Any, cls: type[T], refusal: msgspec.ValidationError) -> T:
    """``value`` as ``cls``, reading null as the zero value where a field must be there, as Go does.

    Servers written in Go send ``"endpoints": null`` for an empty list that is required, and give back objects
    that were stored before a field became required; a field that is not there has its zero value too. Raises
    the refusal where something else is wrong.
    """
    for _ in range(len(_ZEROS) * 16):
        if not _mend(value, str(refusal)):
            raise refusal
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as again:
            refusal = again
    raise refusal


def _mend(value: Any, refusal: str) -> bool:
    """Writes the zero value where ``refusal`` finds null, or null where it finds nothing; whether it did."""
    if match := _MISSING.match(refusal):
        return _add(value, _STEPS.findall(match.group(2) or ""), match.group(1))
    match = _NULL.match(refusal)
    zero = _ZEROS.get(match.group(1).partition(" ")[0]) if match else None
    return match is not None and zero is not None and _fill(value, _STEPS.findall(match.group(2)), zero)


def _add(value: Any, steps: list[str], key: str) -> bool:
    """Gives every object that ``steps`` lead to a null ``key`` where it lacks one."""
    if not steps:
        if not isinstance(value, dict) or key in value:
            return False
        value[key] = None
        return True
    step, *rest = steps
    if step:
        return isinstance(value, dict) and step in value and _add(value[step], rest, key)
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    added = [_add(item, rest, key) for item in below]  # in all of them, not only up to the first
    return any(added)


def _fill(value: Any, steps: list[str], zero: Any) -> bool:
    """Writes ``zero`` over every null that ``steps`` lead to (an empty step is each item or value)."""
    if not isinstance(value, dict | list) or not steps:
        return False
    step, *rest = steps
    if step:
        keys: list[Any] = [step] if isinstance(value, dict) and step in value else []
    else:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    filled = False
    for key in keys:
        if rest:
            filled |= _fill(value[key], rest, zero)
        elif value[key] is None:
            value[key] = copy.copy(zero)
            filled = True
    return filled


class Scheme:
    """The kinds of one generated package."""

    def __init__(self, package: str, kinds: Mapping[str, Mapping[str, str]]) -> None:
        self._package = package
        self._kinds = kinds
        self._classes: dict[tuple[str, str], type[Object]] = {}
        self._decoders: dict[type[Object], msgspec.json.Decoder[Object]] = {}

    def __contains__(self, gvk: tuple[str, str]) -> bool:
        """Whether (apiVersion, kind) is registered."""
        return gvk[1] in self._kinds.get(gvk[0], {})

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """All (apiVersion, kind), sorted as the table is."""
        for api_version, kinds in self._kinds.items():
            for kind in kinds:
                yield api_version, kind

    def class_for(self, api_version: str, kind: str) -> type[Object]:
        """The model class of a kind. Raises ``UnknownKindError``."""
        found = self._classes.get((api_version, kind))
        if found is None:
            place = self._kinds.get(api_version, {}).get(kind)
            if place is None:
                raise UnknownKindError(api_version, kind)
            module, _, name = place.partition(".")
            found = getattr(import_module(f"{self._package}.{module}.models"), name)
            assert isinstance(found, type)
            self._classes[api_version, kind] = found
        return found

    def decode(self, content: bytes | str) -> Object:
        """The typed object in JSON ``content``, by its own apiVersion and kind.

        Null or nothing where a field must be is read as the zero value, as Go's decoder does. Raises
        ``UnknownKindError``, or ``msgspec.DecodeError`` where the JSON is broken or does not fit.
        """
        meta = _TYPE_META.decode(content)
        cls = self.class_for(meta.api_version, meta.kind)
        decoder = self._decoders.get(cls)
        if decoder is None:
            decoder = self._decoders[cls] = msgspec.json.Decoder(cls)
        try:
            return decoder.decode(content)
        except msgspec.ValidationError as refusal:
            return convert_with_zeros(msgspec.json.decode(content), cls, refusal)

    def from_dict(self, value: Mapping[str, Any]) -> Object:
        """The typed object of plain JSON ``value``. Raises as ``decode`` does."""
        cls = self.class_for(str(value.get("apiVersion", "")), str(value.get("kind", "")))
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as refusal:
            return convert_with_zeros(copy.deepcopy(dict(value)), cls, refusal)

    def encode(self, item: Object) -> bytes:
        """``item`` as JSON. apiVersion and kind are always written."""
        return msgspec.json.encode(item)

    def to_dict(self, item: Object) -> dict[str, Any]:
        """``item`` as plain JSON values."""
        plain: dict[str, Any] = msgspec.to_builtins(item)
        return plain
