"""Which class is which kind: lookup both ways, decoding of bytes to typed objects and back.

A ``Scheme`` is made by a generated ``scheme.py`` from a table ``apiVersion → kind → "module.Class"``; a model
module is imported when the first of its classes is asked for.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec

from apimachinery.typed import decoders, lossless
from apimachinery.typed.lenient import convert_leniently
from apimachinery.typed.object import Object


class UnknownKindError(LookupError):
    """No class is registered for an apiVersion and kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_TYPE_META = msgspec.json.Decoder(_TypeMeta)


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

        Fields that are left out, or null where null is not allowed, are unset; one that must be there has the zero
        value, as Go's decoder gives. Unknown fields that the schema keeps
        come back when the object is encoded. Raises ``UnknownKindError``, or ``msgspec.DecodeError`` where the JSON
        is broken or does not fit; of YAML the error says so.
        """
        try:
            meta = _TYPE_META.decode(content)
        except msgspec.DecodeError as fault:
            if _is_yaml(content):
                raise msgspec.DecodeError(f"{fault}. This is YAML, not JSON: use decode_yaml") from None
            raise
        cls = self.class_for(meta.api_version, meta.kind)
        decoder = self._decoders.get(cls)
        if decoder is None:
            decoder = self._decoders[cls] = decoders.decoder(cls)
        try:
            made = decoder.decode(content)
        except msgspec.ValidationError as refusal:
            made = convert_leniently(msgspec.json.decode(content), cls, refusal)
        if cls.KEEPS_ORIGIN:
            lossless.remember(made, content.encode() if isinstance(content, str) else bytes(content))
        return made

    def from_dict(self, value: Mapping[str, Any]) -> Object:
        """The typed object of plain JSON ``value``. Raises as ``decode`` does."""
        cls = self.class_for(str(value.get("apiVersion", "")), str(value.get("kind", "")))
        decoders.prepare(cls)
        try:
            made = msgspec.convert(value, cls)
        except msgspec.ValidationError as refusal:
            made = convert_leniently(copy.deepcopy(dict(value)), cls, refusal)
        if cls.KEEPS_ORIGIN:
            lossless.remember(made, msgspec.json.encode(value))
        return made

    def decode_yaml(self, content: bytes | str) -> Object:
        """The typed object in the one document of YAML (or JSON) ``content``, read as kubectl reads it. Raises as
        ``decode`` does, and ``msgspec.DecodeError`` where there is no document, or more than one."""
        found = self.decode_yaml_all(content)
        if len(found) != 1:
            more = ": use decode_yaml_all" if found else ""
            raise msgspec.DecodeError(f"YAML of one document is wanted, not of {len(found)}{more}")
        return found[0]

    def decode_yaml_all(self, content: bytes | str) -> list[Object]:
        """The typed objects in all documents of YAML ``content``; those that say nothing are left out. Raises as
        ``decode`` does."""
        yaml = _yaml()
        try:
            values = yaml.decode_all(content.encode() if isinstance(content, str) else content)
        except ValueError as fault:  # a DecodeFault
            raise msgspec.DecodeError(str(fault)) from None
        for value in values:
            if not isinstance(value, dict):
                raise msgspec.ValidationError(f"Expected `object`, got `{_JSON_NAMES[type(value)]}`")
        return [self.from_dict(value) for value in values]

    def encode_yaml(self, item: Object) -> bytes:
        """``item`` as one document of YAML."""
        written: bytes = _yaml().encode(self.to_dict(item))
        return written

    def encode(self, item: Object) -> bytes:
        """``item`` as JSON. apiVersion and kind are always written."""
        return lossless.encode(item) if item.KEEPS_ORIGIN else msgspec.json.encode(item)

    def to_dict(self, item: Object) -> dict[str, Any]:
        """``item`` as plain JSON values."""
        plain: dict[str, Any] = (
            msgspec.json.decode(lossless.encode(item)) if item.KEEPS_ORIGIN else msgspec.to_builtins(item)
        )
        return plain


_JSON_NAMES = {str: "str", int: "int", float: "float", bool: "bool", list: "array"}
_YAML_BEGINS = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:---|[A-Za-z\"'][\w.\"'/-]*:(?:\s|$))")


def _is_yaml(content: bytes | str) -> bool:
    """Whether what is no JSON begins as YAML manifests do: a comment, a document marker, or `key:`."""
    start = content[:4096]
    text = start if isinstance(start, str) else bytes(start).decode("utf-8", "replace")
    return _YAML_BEGINS.match(text) is not None


def _yaml() -> ModuleType:
    try:
        from apimachinery.wire import yaml
    except ModuleNotFoundError as missing:  # a bare install
        if missing.name != "yaml":
            raise
        raise ModuleNotFoundError(
            "YAML needs PyYAML: pip install 'kubewright[client]'", name="yaml"
        ) from None
    return yaml
