"""The metadata of custom and embedded resources.

Decoded as ObjectMeta, and written back without what is empty.

Rules of apiextensions' objectmeta coercion. Metadata that does not decode fails the request; unknown fields
of it are dropped, in the order of their names; what ObjectMeta leaves out when it is empty is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, invalid_value
from apimachinery.meta.object_meta_schema import DEFINITIONS, OBJECT_META
from apimachinery.schema.decoding import Decoder
from apimachinery.schema.node import SchemaNode, SchemaNodeReader
from apimachinery.schema.validation.embedded import embedded_resources

_DECODER = Decoder(SchemaNodeReader(DEFINITIONS).definition(OBJECT_META))
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_EMPTY: tuple[Any, ...] = (None, "", 0, {}, [])
_KEPT_ZERO = frozenset({"deletionGracePeriodSeconds"})


def metadata_fault(resource: Any) -> str | None:
    """Why a resource's ``metadata`` cannot be decoded, None where it can or is missing."""
    if not isinstance(resource, dict):
        return None
    metadata = resource.get("metadata")
    fault = None if metadata is None else _DECODER.fault(metadata)
    return None if fault is None else str(fault)


def prune_metadata(resource: Any, path: str = "") -> list[str]:
    """Normalize a resource's ``metadata`` in place; the paths of the unknown fields that were dropped."""
    if not isinstance(resource, dict) or not isinstance(resource.get("metadata"), dict):
        return []
    metadata = resource["metadata"]
    dropped: list[str] = []
    if not _DECODER.fits(metadata):
        in_order = _sorted(metadata)
        dropped = _DECODER.unknown(in_order, drop=True, path=f"{path}.metadata" if path else "metadata")
        metadata.clear()
        metadata.update(in_order)
    for name in [name for name, each in metadata.items() if not each and name not in _KEPT_ZERO]:
        if metadata[name] is not False:
            del metadata[name]
    if metadata.get("deletionGracePeriodSeconds", 0) is None:
        del metadata["deletionGracePeriodSeconds"]
    for name in ("labels", "annotations"):
        texts = metadata.get(name)
        if texts and None in texts.values():
            # A null is the zero value of a text.
            metadata[name] = {key: "" if text is None else text for key, text in texts.items()}
    if None in (finalizers := metadata.get("finalizers") or ()):
        metadata["finalizers"] = [name or "" for name in finalizers]
    if None in (owners := metadata.get("ownerReferences") or ()):
        metadata["ownerReferences"] = [owner or {} for owner in owners]
    for owner in metadata.get("ownerReferences") or ():
        if isinstance(owner, dict):
            for name in [name for name, each in owner.items() if each is None]:
                del owner[name]
            for name in _OWNER_FIELDS:
                owner.setdefault(name, "")
    return dropped


def embedded_fault(node: SchemaNode, value: Any) -> str | None:
    """Why an embedded resource cannot be decoded: the first such fault, with its field and value."""
    fault = next(decoding_faults(node, value, ""), None)
    return None if fault is None else str(fault)


def decoding_faults(node: SchemaNode, value: Any, field: str) -> Iterator[FieldError]:
    """What of the embedded resources in ``value``, which is at ``field``, cannot be decoded."""
    for resource, at in embedded_resources(node, value, field):
        for name in ("apiVersion", "kind"):
            if name in resource and not isinstance(resource[name], str):
                yield invalid_value(f"{at}.{name}" if at else name, resource[name], "must be a string")
        if (text := metadata_fault(resource)) is not None:
            yield invalid_value(f"{at}.metadata" if at else "metadata", resource["metadata"], text)


def prune_embedded(node: SchemaNode, value: Any) -> list[str]:
    """Normalize the metadata of every embedded resource, in place; the paths of what was dropped."""
    dropped: list[str] = []
    for resource, at in embedded_resources(node, value, ""):
        if resource.get("metadata", "") is None:
            resource["metadata"] = {}
        dropped += prune_metadata(resource, at)
    return dropped


def repair_embedded(node: SchemaNode, value: Any) -> None:
    """Drop what cannot be decoded from every embedded resource, in place: a definition may call values embedded
    resources that were stored before."""
    for resource, _ in embedded_resources(node, value, ""):
        for name in ("apiVersion", "kind"):
            if not isinstance(resource.get(name, ""), str):
                del resource[name]
        if metadata_fault(resource) is None:
            continue
        metadata = resource["metadata"]
        if not isinstance(metadata, dict):
            del resource["metadata"]  # kube-apiserver could neither list nor delete the object any more
            continue
        for name in tuple(metadata):
            if metadata_fault({"metadata": {name: metadata[name]}}) is not None:
                del metadata[name]


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
