"""The scale subresource: a resource's replicas as autoscaling/v1 Scale, read, replaced and patched.

A Scale is not stored: reading makes it of the object, writing puts its ``spec.replicas`` into the object at the
path of the resource. Its ``status.selector`` is the object's selector as text.
"""

from __future__ import annotations

from typing import Any

from apimachinery.merge import json_patch, merge_patch
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.errors import MergeError
from apimachinery.merge.field_set import from_paths
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.scale import to_parent, to_scale
from apimachinery.meta.errors import bad_request, internal, not_found, plain_failure, unsupported_media_type
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.refusals import cannot_handle, internal_package
from apimachinery.server.catalog.served import Served
from apimachinery.server.http.messages import Request
from apimachinery.server.request.bodies import codec_of
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.request.media_types import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from apimachinery.server.request.negotiation import Form
from apimachinery.server.request.options import WriteOptions, read_write_options
from apimachinery.server.request.routes import Route
from apimachinery.server.request.target import WriteTarget, match_name, metadata_of
from apimachinery.server.write.identity import now
from apimachinery.server.write.patch_faults import translated
from apimachinery.server.write.writes import Writer
from apimachinery.wire import json, yaml
from apimachinery.wire.json import DecodeFault, decode

SCALE_VERSION = "autoscaling/v1"
_NO_CONVERTER = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)
_NO_KIND = (
    "no kind is registered for the type v1.Scale in scheme "
    '"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"'
)
_COUNT = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
_STATE = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
_OWNERSHIP = FieldOwnership(
    api_version=SCALE_VERSION,
    kind="Scale",
    type=custom_resource({"type": "object", "properties": {"spec": _COUNT, "status": _STATE}}),
    subresource="scale",
    ignored={SCALE_VERSION: from_paths([("f:status",)])},
    empty={"spec": {}, "status": {}},
)
_SPEC_PATH = ".spec.replicas"
_STATUS_PATH = ".status.replicas"


class Scales:
    """Scales of any resource that has them."""

    def __init__(self, writer: Writer, codecs: Codecs) -> None:
        self._writer = writer
        self._codecs = codecs

    def read(self, served: Served, namespace: str, name: str) -> Json:
        """An object's Scale. Raises ApiError 404, 500."""
        target = WriteTarget(served, namespace, name, WriteOptions())
        record = self._writer.current(target)
        if record is None:
            raise not_found(served.plural, served.said_group, name)
        return scale_of(served, decode(served.shown(record)))

    async def write(self, verb: str, request: Request, served: Served, route: Route) -> Json:
        """Replaces or patches a Scale; the Scale after it. Raises ApiError."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip()
        kind = "PatchOptions" if verb == "patch" else "UpdateOptions"
        options = read_write_options(request, kind, apply=media_type == APPLY_PATCH)
        target = WriteTarget(
            served, route.namespace, route.name, options, "scale", request.warnings, request.user
        )
        if verb == "patch" and not served.builtin:
            if media_type == STRATEGIC_PATCH:
                raise served.family.unsupported_patch()
            if media_type == APPLY_PATCH:
                # Its handler has no converter for Scales, which only an apply asks for.
                raise plain_failure(_NO_CONVERTER)
        change = (
            _patch(request, media_type) if verb == "patch" else _replacement(request, served, self._codecs)
        )

        paths = dict.fromkeys(served.every_version(), _paths(served)[0].strip(".").split("."))
        applies = media_type == APPLY_PATCH and verb == "patch"

        def transform(obj: Json) -> Json:
            metadata = metadata_of(obj)
            live = scale_of(served, obj, demands=False)
            live["metadata"]["managedFields"] = to_scale(metadata.get("managedFields") or [], paths)
            if applies:
                new = _OWNERSHIP.apply(
                    live, change(live), options.manager, force=bool(options.force), now=now()
                )
            else:
                new = _OWNERSHIP.update(live, change(live), options.manager, now=now())
            match_name(new, route.name)
            entries = new["metadata"].get("managedFields") or []
            _put(served, obj, new)
            owners = to_parent(metadata.get("managedFields") or [], entries, served.api_version, paths)
            metadata["managedFields"] = owners
            if version := metadata_of(new).get("resourceVersion"):
                metadata["resourceVersion"] = version
            return obj

        try:
            written = await self._writer.update(target, transform, owned=True)
        except MergeError as error:
            raise translated(error) from None
        return scale_of(served, decode(served.shown(written.record)))

    def table(self, scale: Json, form: Form) -> Json:
        """A Scale as a Table."""
        metadata = scale["metadata"]
        columns = [
            {"name": "Name", "type": "string", "format": "", "description": "", "priority": 0},
            {"name": "Desired", "type": "integer", "format": "", "description": "", "priority": 0},
            {"name": "Available", "type": "integer", "format": "", "description": "", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
        ]
        from apimachinery.server.answer.table import age

        cells = [
            metadata["name"],
            scale["spec"].get("replicas", 0),
            scale["status"].get("replicas", 0),
            age(scale),
        ]
        version = f"meta.k8s.io/{form.version}"
        shown = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata}
        return {
            "kind": "Table",
            "apiVersion": version,
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "columnDefinitions": columns,
            "rows": [{"cells": cells, "object": shown}],
        }


def _paths(served: Served) -> tuple[str, str, str]:
    sub = served.subresources["scale"]
    return (
        sub.spec_replicas_path or _SPEC_PATH,
        sub.status_replicas_path or _STATUS_PATH,
        sub.label_selector_path,
    )


def _at(obj: Any, path: str) -> Any:
    for key in path.strip(".").split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def scale_of(served: Served, obj: Json, *, demands: bool = True) -> Json:
    """The Scale of an object. Raises ApiError 500 where a custom object has no replicas and one ``demands`` them."""
    spec_path, status_path, selector_path = _paths(served)
    replicas = _at(obj, spec_path)
    if replicas is None and not served.builtin and demands:
        raise internal(f'the spec replicas field "{spec_path}" does not exist')
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec: Json = {"replicas": replicas} if replicas else {}
    status: Json = {"replicas": _at(obj, status_path) or 0}
    selector = _at(obj, selector_path) if selector_path else _selector_text(_at(obj, ".spec.selector"))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": spec,
        "status": status,
    }


def _selector_text(selector: Any) -> str:
    """A label selector object in the form of a query."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or []:
        key, values = term.get("key", ""), ",".join(sorted(term.get("values") or []))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(term.get("operator"), "")
        parts.append((key, text))
    return ",".join(text for _, text in sorted(parts))


def _put(served: Served, obj: Json, scale: Json) -> None:
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    path = _paths(served)[0]
    if replicas < 0:
        raise served.family.negative_replicas(served, obj["metadata"]["name"], path, replicas)
    *parents, last = path.strip(".").split(".")
    value = obj
    for key in parents:
        inner = value.get(key)
        if not isinstance(inner, dict):
            inner = value[key] = {}
        value = inner
    value[last] = replicas


def _replacement(request: Request, served: Served, codecs: Codecs) -> Any:
    codec = codec_of(request, codecs)
    try:
        body = codec.decode(request.body, [])
    except DecodeFault as fault:
        raise bad_request(f"the object provided is unrecognized (must be of type Scale): {fault}") from None
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    kind, api_version = body.get("kind") or "Scale", body.get("apiVersion") or SCALE_VERSION
    unknown = not served.builtin and _has_unknown(body)
    if unknown and request.first("fieldValidation") == "Strict":
        raise bad_request(_NO_KIND)
    replicas = body.get("spec", {}).get("replicas", 0) if isinstance(body.get("spec", {}), dict) else None
    good = isinstance(replicas, int) and not isinstance(replicas, bool)
    if (kind, api_version) != ("Scale", SCALE_VERSION) or not good:
        version = api_version.rpartition("/")[2]
        if not served.builtin:
            # The handler of custom resources knows no conversion to Scale and says so in these words.
            raise bad_request(_NO_KIND)
        if not good:
            why = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
        else:
            into = f"{internal_package('autoscaling')}.Scale"
            why = f"converting ({version}.{kind}) to ({into}): unknown conversion"
        raise cannot_handle(kind, version, "Scale", why)
    return lambda scale: body


_FIELDS = {"": {"apiVersion", "kind", "metadata", "spec", "status"}, "spec": {"replicas"}}


def _has_unknown(body: Json) -> bool:
    spec = body.get("spec")
    return bool(body.keys() - _FIELDS[""]) or (isinstance(spec, dict) and bool(spec.keys() - _FIELDS["spec"]))


def _patch(request: Request, media_type: str) -> Any:
    if media_type not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH):
        raise unsupported_media_type("415: Unsupported Media Type", has_details=True)
    try:
        value = yaml.decode(request.body) if media_type == APPLY_PATCH else json.decode(request.body)
    except DecodeFault as fault:
        raise bad_request(f"error decoding patch: {fault}") from None
    if media_type == JSON_PATCH:
        return lambda scale: json_patch.apply(scale, value)
    if media_type == APPLY_PATCH:
        return lambda scale: value
    return lambda scale: merge_patch.apply(scale, value)
