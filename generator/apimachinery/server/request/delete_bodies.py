"""The body of a DELETE: DeleteOptions of any group, decoded as the struct that they are."""

from __future__ import annotations

from functools import cache
from typing import Any

from apimachinery.http.messages import Request
from apimachinery.meta.errors import bad_request
from apimachinery.schema.builtin import BuiltinSchema, compile_builtin
from apimachinery.server.catalog.refusals import UNVERSIONED, not_registered
from apimachinery.server.request.bodies import codec_of
from apimachinery.server.request.codecs import Codecs
from apimachinery.wire.json import DecodeFault

_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_PACKAGE = "io.k8s.apimachinery.pkg.apis.meta.v1"
_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_DEFINITIONS: dict[str, Any] = {
    f"{_PACKAGE}.DeleteOptions": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "gracePeriodSeconds": {"type": "integer", "format": "int64"},
            "preconditions": {"$ref": f"#/definitions/{_PACKAGE}.Preconditions"},
            "orphanDependents": _FLAG,
            "propagationPolicy": _TEXT,
            "dryRun": {"type": "array", "items": _TEXT},
            "ignoreStoreReadErrorWithClusterBreakingPotential": _FLAG,
        },
    },
    f"{_PACKAGE}.Preconditions": {"type": "object", "properties": {"uid": _TEXT, "resourceVersion": _TEXT}},
}


@cache
def _schema() -> BuiltinSchema:
    return compile_builtin(f"{_PACKAGE}.DeleteOptions", _DEFINITIONS)


def read_delete_body(request: Request, codecs: Codecs) -> dict[str, Any] | None:
    """The options in a body, None where there is none. Raises ApiError 400, 415."""
    if not request.body:
        return None
    codec = codec_of(request, codecs)
    try:
        body = codec.decode(request.body, [])
    except DecodeFault as fault:
        raise bad_request(codec.explain(str(fault))) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions is no object")
    kind = body.get("kind") or "DeleteOptions"
    api_version = body.get("apiVersion") or ""
    # Any group may send its own DeleteOptions; another kind is refused by its conversion.
    if kind != "DeleteOptions" and isinstance(kind, str) and isinstance(api_version, str):
        if kind in UNVERSIONED:
            raise bad_request(f"converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
        raise bad_request(not_registered(kind, api_version or "meta.k8s.io/v1", _SCHEME))
    if misfit := _schema().decode_fault(body):
        raise bad_request(misfit)
    return body
