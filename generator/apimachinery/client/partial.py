"""Objects of which only the metadata is asked for: a tenth of the memory where the rest does not matter.

``gc=False``: metadata has no cycles, so the collector need not know of it (16 bytes for each object).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from apimachinery.client.calls import Codec, no_event, typed_codec
from apimachinery.typed.object import Object, Part


class OwnerReference(Part, kw_only=True, gc=False):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part, kw_only=True, gc=False):
    """What every object has, without managedFields."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class PartialObjectMetadata(Object, kw_only=True):
    """The metadata of an object of any kind (meta.k8s.io/v1). Patch such objects; they cannot be written back."""

    API_VERSION = "meta.k8s.io/v1"
    KIND = "PartialObjectMetadata"

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_TYPED: Final = typed_codec(PartialObjectMetadata)
_DECODER: Final = msgspec.json.Decoder(PartialObjectMetadata)
PARTIAL: Final[Codec[PartialObjectMetadata]] = replace(
    _TYPED,
    # without the originals: nobody writes these back
    decode_all=lambda parts: [_DECODER.decode(part) for part in parts],
    decode=_DECODER.decode,
    decode_event=no_event,
    form="PartialObjectMetadata",
)
"""Asks for metadata alone."""
