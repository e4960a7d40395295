"""The scale subresource: a resource's replicas as autoscaling/v1 Scale, read, replaced and patched.

A Scale is not stored: reading makes it of the object, writing puts its ``spec.replicas`` into the object at the
path of the resource. Its ``status.selector`` is the object's selector as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.http.messages import Request
from apimachinery.kinds.hooks import BUILTIN, Json
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.errors import MergeError
from apimachinery.merge.field_set import from_paths
from apimachinery.merge.from_openapi import METADATA_TYPES, builtin_table, custom_resource
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.scale import to_parent, to_scale
from apimachinery.merge.schema import Ref
from apimachinery.meta.asked import Route
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError, not_acceptable, not_found
from apimachinery.meta.object_meta_schema import DEFINITIONS, OBJECT_META
from apimachinery.meta.resources import Resource
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.builtin import compile_builtin
from apimachinery.server.catalog.family import BUILT_IN, IsKind
from apimachinery.server.catalog.refusals import wrong_version
from apimachinery.server.catalog.served import Behaviour, Compiled, Served, StoredAs
from apimachinery.server.request.bodies import read_sent
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.request.media_types import APPLY_CBOR_PATCH, APPLY_PATCH
from apimachinery.server.request.negotiation import METADATA, METADATA_LIST, AnswerForm
from apimachinery.server.request.options import WriteOptions, read_write_options
from apimachinery.server.request.routers import check_patch_type
from apimachinery.server.request.target import WriteTarget, match_name, match_namespace, metadata_of
from apimachinery.server.subresources.scale_families import SCALES
from apimachinery.server.write.apply import check_configuration, read_configuration
from apimachinery.server.write.effects import Current, Steps
from apimachinery.server.write.patch import patched, read_change
from apimachinery.server.write.patch_faults import translated
from apimachinery.server.write.pipeline import Pipeline
from apimachinery.storage.interface import Record
from apimachinery.wire.json import decode

SCALE_VERSION = "autoscaling/v1"
_COUNT = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
_STATE = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
_TYPE = custom_resource({"type": "object", "properties": {"spec": _COUNT, "status": _STATE}})
_OWNERSHIP = FieldOwnership(
    api_version=SCALE_VERSION,
    kind="Scale",
    type=_TYPE,
    subresource="scale",
    ignored={SCALE_VERSION: from_paths([("f:status",)])},
    empty={"spec": {}, "status": {}},
)
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_DEFINITIONS: dict[str, Any] = {
    **DEFINITIONS,
    _SCALE: {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"#/definitions/{OBJECT_META}"},
            "spec": {"$ref": f"#/definitions/{_SCALE}Spec"},
            "status": {"$ref": f"#/definitions/{_SCALE}Status"},
        },
    },
    f"{_SCALE}Spec": {"type": "object", "properties": {"replicas": {"type": "integer", "format": "int32"}}},
    f"{_SCALE}Status": {
        "type": "object",
        "properties": {"replicas": {"type": "integer", "format": "int32"}, "selector": {"type": "string"}},
    },
}


def _compiled() -> Compiled:
    table = {**METADATA_TYPES, **builtin_table(_DEFINITIONS)}
    return Compiled(
        schema=compile_builtin(_SCALE, _DEFINITIONS),
        merge_type=_TYPE,
        patch_type=lambda: PatchType(Ref(_SCALE), table),
    )


# Scale as bodies are read: a kind like any other, of which nothing is stored.
_KIND = Served(
    Resource(
        group="autoscaling",
        version="v1",
        kind="Scale",
        plural="scales",
        singular="scale",
        namespaced=True,
        verbs=(),
    ),
    Behaviour(BUILT_IN, Strategy(), BUILTIN),
    StoredAs("", "autoscaling/v1"),
    _compiled,
)
Change = Callable[[Json], Json]
"""From a live Scale to the new one."""
_OLD_VERSIONS = ("apps/v1beta1", "apps/v1beta2", "extensions/v1beta1")
"""Versions of Scale that kube-apiserver can still read, so that it knows them for another version."""
_SPEC_PATH = ".spec.replicas"
_STATUS_PATH = ".status.replicas"


class Scales:
    """Scales of any resource that has them."""

    def __init__(self, pipeline: Pipeline, codecs: Codecs, is_kind: IsKind) -> None:
        self._pipeline = pipeline
        self._codecs = codecs
        self._is_kind = is_kind

    def read(self, served: Served, namespace: str, name: str) -> Steps[Json]:
        """An object's Scale. Raises ApiError 404, 500."""
        target = WriteTarget(served, namespace, name, WriteOptions())
        record: Record | None = yield Current(target)
        if record is None:
            raise not_found(served.plural, served.group, name)
        return scale_of(served, decode(served.shown(record)))

    def write(self, verb: str, request: Request, served: Served, route: Route) -> Steps[Json]:
        """Replaces or patches a Scale; the Scale after it. Raises ApiError."""
        if verb == "patch":
            media_type = check_patch_type(request, served)
            applies = media_type in (APPLY_PATCH, APPLY_CBOR_PATCH)
        else:
            media_type, applies = "", False
        options = read_write_options(
            request, "PatchOptions" if verb == "patch" else "UpdateOptions", apply=applies
        )
        target = WriteTarget.asked(request, served, route.namespace, route.name, options, "scale")
        target.shown_as = lambda obj: scale_of(served, obj, demands=False)
        target.takes = lambda obj, scale: _put(served, obj, scale)
        uid = ""
        if verb == "update":
            scale = self._replacement(request, target)
            uid = scale["metadata"].get("uid") or ""
            change: Change = lambda live: scale  # noqa: E731
        elif applies:
            binary = media_type == APPLY_CBOR_PATCH
            applied = read_configuration(request, target, binary=binary)
            change = lambda live: self._applied(target, live, applied)  # noqa: E731
        else:
            as_scale = WriteTarget(_KIND, route.namespace, route.name, options, "scale", request.warnings)
            reader = read_change(media_type, request.body, as_scale)
            change = lambda live: patched(as_scale, live, reader, served.warnings)  # noqa: E731

        def transform(obj: Json) -> Json:
            return self._with_scale(target, obj, change, applies=applies)

        try:
            written = yield from self._pipeline.update(target, transform, uid=uid, owned=True)
        except MergeError as error:
            raise translated(error) from None
        return scale_of(served, decode(served.shown(written.record)))

    def _is_scale(self, api_version: str, kind: str) -> bool:
        if kind == "Scale" and api_version in _OLD_VERSIONS:
            raise wrong_version(api_version, SCALE_VERSION)
        return self._is_kind(api_version, kind)

    def _replacement(self, request: Request, target: WriteTarget) -> Json:
        """The Scale of a PUT. Raises ApiError 400, 415."""
        try:
            scale, _ = read_sent(
                request, self._codecs, _KIND, self._is_scale, target.options.validation, target.warnings
            )
        except ApiError as error:
            raise SCALES[target.served.family].undecoded(error) from None
        match_namespace(metadata_of(scale), target.namespace)
        match_name(scale, target.name)
        return scale

    def _applied(self, target: WriteTarget, live: Json, applied: Json) -> Json:
        served, options = target.served, target.options
        check_configuration(applied, SCALE_VERSION, "Scale")
        SCALES[served.family].check_live(live)
        new = _OWNERSHIP.apply(live, applied, options.manager, force=bool(options.force), now=now())
        SCALES[served.family].check_applied(applied)
        return new

    def _with_scale(self, target: WriteTarget, obj: Json, change: Change, *, applies: bool) -> Json:
        """The object with what ``change`` makes of its Scale."""
        served = target.served
        metadata = metadata_of(obj)
        paths = dict.fromkeys(served.every_version(), _paths(served)[0].strip(".").split("."))
        live = scale_of(served, obj, demands=False)
        if owners := to_scale(metadata.get("managedFields") or [], paths):
            live["metadata"]["managedFields"] = owners
        new = change(live)
        if not applies:
            spec = new.get("spec")
            if isinstance(spec, dict) and not spec.get("replicas"):
                spec.pop("replicas", None)  # kube-apiserver's struct leaves zero out, so nobody owns it
            new = _OWNERSHIP.update(live, new, target.options.manager, now=now())
        match_namespace(metadata_of(new), target.namespace)
        match_name(new, target.name)
        entries = new["metadata"].get("managedFields") or []
        _put(served, obj, new)
        owners = to_parent(metadata.get("managedFields") or [], entries, served.api_version, paths)
        metadata["managedFields"] = owners
        if version := metadata_of(new).get("resourceVersion"):
            metadata["resourceVersion"] = version
        return obj

    def shown(self, served: Served, scale: Json, form: AnswerForm) -> Json:
        """A Scale as a Table or as metadata alone. Raises ApiError 406."""
        metadata = scale["metadata"]
        if form.shown_as == METADATA:
            return {"kind": METADATA, "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}
        if form.shown_as == METADATA_LIST:
            go_type = SCALES[served.family].go_type
            raise not_acceptable(
                f"you requested {form.shown_as}, but the requested object is not a list ({go_type})"
            )
        family = SCALES[served.family]
        columns = [
            {
                "name": "Name",
                "type": "string",
                "format": family.name_format,
                "description": "",
                "priority": 0,
            },
            {"name": "Desired", "type": "integer", "format": "", "description": "", "priority": 0},
            {"name": "Available", "type": "integer", "format": "", "description": "", "priority": 0},
            {"name": "Age", "type": family.age_type, "format": "", "description": "", "priority": 0},
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
    """The Scale of an object. Raises ApiError 500 where a custom object has values of other types, or no replicas and
    one ``demands`` them."""
    spec_path, status_path, selector_path = paths = _paths(served)
    SCALES[served.family].check_types(obj, paths)
    replicas = SCALES[served.family].shown_replicas(_at(obj, spec_path), spec_path, demands=demands)
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
    SCALES[served.family].check_replicas(served, obj["metadata"]["name"], replicas, path)
    *parents, last = path.strip(".").split(".")
    value = obj
    for key in parents:
        inner = value.get(key)
        if not isinstance(inner, dict):
            inner = value[key] = {}
        value = inner
    value[last] = replicas
