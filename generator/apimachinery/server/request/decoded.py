"""Decoded bodies, and how what is wrong with them is worded.

Every faulty body is refused in the words of whoever decodes it in kube-apiserver: a decoder for each codec, which works
otherwise for Go structs than for unstructured objects. ``decoded_as`` has the combinations that say something of their
own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from apimachinery.kinds.hooks import Json
from apimachinery.meta.printing import go_json
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import CBOR, JSON, YAML, WireCodec
from apimachinery.wire.cbor_faults import typed_fault, unknown_place
from apimachinery.wire.json import decode_first
from apimachinery.wire.strict import field_texts, in_order_of


class Decoded:
    """The value of a body and the texts about keys that are in it twice; in the words of decoders of text."""

    needs_api_version = False
    """Whether an object that names its kind alone is refused by the decoder, before it is compared with the path."""

    def __init__(self, data: bytes = b"", duplicates: Collection[str] = ()) -> None:
        self.data = data
        self.duplicates = list(duplicates)

    def explain(self, fault: str) -> str:
        """A fault of kind or apiVersion, which are read first."""
        return JSON.explain(fault)

    def shown(self, value: Json) -> str:
        """The whole body as a fault shows it."""
        return self.data.decode("utf-8", "replace")

    def sent(self, value: Json) -> str:
        """The same for the decoder that is strict."""
        return self.shown(value)

    def own_fault(self, served: Served) -> str | None:
        """A value of a wrong type that only the bytes show."""
        return None

    def misfit(self, fault: str, served: Served) -> str:
        """A value of a wrong type."""
        return fault

    def unknown(self, dropped: Collection[str]) -> list[str]:
        """The texts about both duplicate and unknown fields, in the order in which the decoder meets them."""
        return [*self.duplicates, *field_texts([], dropped)]


class _JsonStruct(Decoded):
    def own_fault(self, served: Served) -> str | None:
        """A repeated key has replaced the first value, which was decoded all the same."""
        return served.compiled.schema.decode_fault(decode_first(self.data)) if self.duplicates else None

    def unknown(self, dropped: Collection[str]) -> list[str]:
        duplicates = _of_known(self.duplicates, dropped)
        texts = [*duplicates, *field_texts([], dropped)]
        # Sorted only if both kinds occur: the order is found by reading the body again.
        return in_order_of(self.data, texts) if duplicates and dropped else texts


class _Yaml(Decoded):
    def shown(self, value: Json) -> str:
        """The JSON that it was made to before it was read."""
        return go_json(value)

    def sent(self, value: Json) -> str:
        return self.data.decode("utf-8", "replace")


class _YamlStruct(_Yaml):
    def unknown(self, dropped: Collection[str]) -> list[str]:
        """The keys of the JSON that YAML is made to are in order."""
        return [*_of_known(self.duplicates, dropped), *field_texts([], sorted(dropped, key=_along))]


class _Cbor(Decoded):
    def explain(self, fault: str) -> str:
        return CBOR.explain(typed_fault(fault, "v1.TypeMeta", self.data))

    def shown(self, value: Json) -> str:
        from apimachinery.wire.cbor_items import diagnosed

        return diagnosed(self.data)

    def own_fault(self, served: Served) -> str | None:
        """Text where there should be bytes, for which CBOR has a type of its own."""
        if not served.binary_fields:
            return None
        from apimachinery.wire.cbor import text_strings

        for name in text_strings(self.data, served.binary_fields):
            return f"json: cannot unmarshal string into Go struct field {served.kind}.{name} of type []uint8"
        return None


class _CborStruct(_Cbor):
    def misfit(self, fault: str, served: Served) -> str:
        return typed_fault(fault, f"{served.version}.{served.kind}", self.data)

    def unknown(self, dropped: Collection[str]) -> list[str]:
        # CBOR names one field only: Go's decoder stops at the first.
        if not dropped:
            return self.duplicates
        place = unknown_place(self.data, dropped)
        return [*self.duplicates, f"cbor: found unknown field at map element index {place}"]


class _CborMap(_Cbor):
    needs_api_version = True

    def unknown(self, dropped: Collection[str]) -> list[str]:
        """Nothing: what a CRD's schema drops is noticed in text alone."""
        return []


class _Protobuf(Decoded):
    """Only structs have messages; what those do not know is not there."""

    def explain(self, fault: str) -> str:
        return fault


_DECODED: Mapping[tuple[str, Family], type[Decoded]] = {
    (JSON.media_type, BUILT_IN): _JsonStruct,
    (JSON.media_type, CUSTOM): Decoded,
    (YAML.media_type, BUILT_IN): _YamlStruct,
    (YAML.media_type, CUSTOM): _Yaml,
    (CBOR.media_type, BUILT_IN): _CborStruct,
    (CBOR.media_type, CUSTOM): _CborMap,
}


def decoded_as(codec: WireCodec, family: Family) -> type[Decoded]:
    """The class of a body's ``Decoded``."""
    return _DECODED.get((codec.media_type, family), _Protobuf)


def _of_known(duplicates: Collection[str], dropped: Collection[str]) -> list[str]:
    """The duplicates without those of unknown fields: a struct has no place for them, so they are not there twice."""
    if not dropped:
        return list(duplicates)
    strangers = {*field_texts(dropped, [])}
    return [text for text in duplicates if text not in strangers]


def _along(path: str) -> list[tuple[int, str]]:
    """What paths are sorted by in the order of a document whose keys are: indices as numbers."""
    parts = re.findall(r"\[\d+\]|[^.\[]+", path)
    return [(int(part[1:-1]), "") if part.startswith("[") else (0, part) for part in parts]
