"""The shape of ``metadata`` as facts, for custom resources and embedded ones: definitions in OpenAPI v2 form.

Field names and types of meta/v1's ObjectMeta, OwnerReference and ManagedFieldsEntry.
"""

from __future__ import annotations

from typing import Any

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_META_V1 = "io.k8s.apimachinery.pkg.apis.meta.v1"
_STRING = {"type": "string"}
_INT64 = {"type": "integer", "format": "int64"}
_BOOL = {"type": "boolean"}
_TIME = {"$ref": f"#/definitions/{_META_V1}.Time"}
_STRING_MAP = {"type": "object", "additionalProperties": _STRING}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/definitions/{_META_V1}.{name}"}}


DEFINITIONS: dict[str, dict[str, Any]] = {
    OBJECT_META: {
        "type": "object",
        "properties": {
            "name": _STRING,
            "generateName": _STRING,
            "namespace": _STRING,
            "selfLink": _STRING,
            "uid": _STRING,
            "resourceVersion": _STRING,
            "generation": _INT64,
            "creationTimestamp": _TIME,
            "deletionTimestamp": _TIME,
            "deletionGracePeriodSeconds": _INT64,
            "labels": _STRING_MAP,
            "annotations": _STRING_MAP,
            "ownerReferences": _list_of("OwnerReference"),
            "finalizers": {"type": "array", "items": _STRING},
            "managedFields": _list_of("ManagedFieldsEntry"),
        },
    },
    f"{_META_V1}.OwnerReference": {
        "type": "object",
        "properties": {
            "apiVersion": _STRING,
            "kind": _STRING,
            "name": _STRING,
            "uid": _STRING,
            "controller": _BOOL,
            "blockOwnerDeletion": _BOOL,
        },
        "required": ["apiVersion", "kind", "name", "uid"],
    },
    f"{_META_V1}.ManagedFieldsEntry": {
        "type": "object",
        "properties": {
            "manager": _STRING,
            "operation": _STRING,
            "apiVersion": _STRING,
            "time": _TIME,
            "fieldsType": _STRING,
            "fieldsV1": {"$ref": f"#/definitions/{_META_V1}.FieldsV1"},
            "subresource": _STRING,
        },
    },
    f"{_META_V1}.FieldsV1": {"type": "object"},
    f"{_META_V1}.Time": {"type": "string", "format": "date-time"},
}
