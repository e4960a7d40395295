"""Messages that no definition describes, or not wholly: the metadata forms and aggregated discovery.

Their numbers are those of generated.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

FieldNumbers: TypeAlias = "dict[str, int | tuple[int, FieldNumbers]]"

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."


def _meta_kind(kind: str, fields: Mapping[str, Any], *versions: str) -> dict[str, Any]:
    found = [{"group": "meta.k8s.io", "version": version, "kind": kind} for version in versions]
    return {"properties": dict(fields), "x-kubernetes-group-version-kind": found}


_META_BETA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1beta1."
_LIST: Final = {
    "metadata": {"$ref": f"#/definitions/{META}ListMeta"},
    "items": {"type": "array", "items": {"$ref": f"#/definitions/{META}PartialObjectMetadata"}},
}
# Kinds of meta.k8s.io that no schema document defines; their numbers are those of generated.proto of both versions.
_META_KINDS: Final[dict[str, Any]] = {
    f"{META}PartialObjectMetadata": _meta_kind(
        "PartialObjectMetadata", {"metadata": {"$ref": f"#/definitions/{META}ObjectMeta"}}, "v1", "v1beta1"
    ),
    f"{META}PartialObjectMetadataList": _meta_kind("PartialObjectMetadataList", _LIST, "v1"),
    f"{_META_BETA}PartialObjectMetadataList": _meta_kind("PartialObjectMetadataList", _LIST, "v1beta1"),
}
_META_NUMBERS: Final[dict[str, FieldNumbers]] = {
    f"{META}PartialObjectMetadata": {"metadata": 1},
    f"{META}PartialObjectMetadataList": {"metadata": 1, "items": 2},
    f"{_META_BETA}PartialObjectMetadataList": {"items": 1, "metadata": 2},
}
_DISCOVERY: Final = "io.k8s.api.apidiscovery.v2."
_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "array", "items": _STRING}


def _of(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{_DISCOVERY}{name}"}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _of(name)}


# Aggregated discovery (KEP-3352), with the numbers of apidiscovery/v2's generated.proto.
_DISCOVERY_KINDS: Final[dict[str, Any]] = {
    f"{_DISCOVERY}APIGroupDiscoveryList": {
        "properties": {
            "metadata": {"$ref": f"#/definitions/{META}ListMeta"},
            "items": _list_of("APIGroupDiscovery"),
        },
        "x-kubernetes-group-version-kind": [
            {"group": "apidiscovery.k8s.io", "version": "v2", "kind": "APIGroupDiscoveryList"}
        ],
    },
    f"{_DISCOVERY}APIGroupDiscovery": {
        "properties": {
            "metadata": {"$ref": f"#/definitions/{META}ObjectMeta"},
            "versions": _list_of("APIVersionDiscovery"),
        }
    },
    f"{_DISCOVERY}APIVersionDiscovery": {
        "properties": {
            "version": _STRING,
            "resources": _list_of("APIResourceDiscovery"),
            "freshness": _STRING,
        }
    },
    f"{_DISCOVERY}APIResourceDiscovery": {
        "properties": {
            "resource": _STRING,
            "responseKind": _of("GroupVersionKind"),
            "scope": _STRING,
            "singularResource": _STRING,
            "verbs": _STRINGS,
            "shortNames": _STRINGS,
            "categories": _STRINGS,
            "subresources": _list_of("APISubresourceDiscovery"),
        }
    },
    f"{_DISCOVERY}APISubresourceDiscovery": {
        "properties": {"subresource": _STRING, "responseKind": _of("GroupVersionKind"), "verbs": _STRINGS}
    },
    f"{_DISCOVERY}GroupVersionKind": {"properties": {"group": _STRING, "version": _STRING, "kind": _STRING}},
}
_DISCOVERY_NUMBERS: Final[dict[str, FieldNumbers]] = {
    f"{_DISCOVERY}APIGroupDiscoveryList": {"metadata": 1, "items": 2},
    f"{_DISCOVERY}APIGroupDiscovery": {"metadata": 1, "versions": 2},
    f"{_DISCOVERY}APIVersionDiscovery": {"version": 1, "resources": 2, "freshness": 3},
    f"{_DISCOVERY}APIResourceDiscovery": {
        "resource": 1,
        "responseKind": 2,
        "scope": 3,
        "singularResource": 4,
        "verbs": 5,
        "shortNames": 6,
        "categories": 7,
        "subresources": 8,
    },
    f"{_DISCOVERY}APISubresourceDiscovery": {"subresource": 1, "responseKind": 2, "verbs": 4},
    f"{_DISCOVERY}GroupVersionKind": {"group": 1, "version": 2, "kind": 3},
}
VERBS: Final = f"{META}Verbs"
"""A list in a message of its own, which the definitions show as the list."""


def with_meta_kinds(
    definitions: Mapping[str, Any], numbers: Mapping[str, FieldNumbers]
) -> tuple[dict[str, Any], dict[str, FieldNumbers]]:
    """Returns both with the kinds of this file, for a package that has metadata."""
    described, numbered = dict(definitions), dict(numbers)
    if f"{META}ObjectMeta" in numbers:
        described |= _META_KINDS | _DISCOVERY_KINDS
        numbered |= _META_NUMBERS | _DISCOVERY_NUMBERS
    if (resource := described.get(f"{META}APIResource")) is not None:
        properties = {**resource["properties"], "verbs": {"$ref": f"#/definitions/{VERBS}"}}
        described[f"{META}APIResource"] = {**resource, "properties": properties}
    return described, numbered
