"""The two families of kinds, which kube-apiserver treats differently.

Built-in kinds are Go structs there: a body is decoded into one, so what the struct does not have is gone, an object is
written in the order of its fields, and a strategic patch knows how its lists merge. Custom resources are unstructured:
the schema of their CRD prunes and defaults them, also on the way out of storage, and their keys are sorted.
``from_packages`` and ``from_crds`` choose the family of a resource.

Nobody outside the catalog asks which family a resource is of. What follows from it is a fact or a method here where it
is about objects, or an entry of a table by family in the room that does the work: ``request/routers`` (paths and
methods), ``request/decoded`` (bodies), ``write/families``, ``answer/table``, ``describe/families`` (documents),
``subresources/scale_families``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import (
    ApiError,
    internal,
    not_acceptable,
    plain_failure,
    undeterminable_name,
    unsupported_media_type,
)
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.object_meta import METADATA_ORDER
from apimachinery.schema.interface import CompiledSchema
from apimachinery.server.catalog.refusals import (
    UNVERSIONED,
    cannot_handle,
    internal_package,
    not_registered,
    unrecognized,
    wrong_version,
)
from apimachinery.wire.json import type_name

IsKind = Callable[[str, str], bool]
"""Whether an apiVersion has a built-in kind."""
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
"""What messages call the list of built-in kinds."""
_OWN_SCHEMES = {
    "apiextensions.k8s.io": "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
}
"""The same of groups whose server, a part of kube-apiserver, knows no kinds but their own."""
_STORED_AS = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


PatchFault = Callable[[str, str], ApiError]
"""422 for a patched object, as messages show it, and what is wrong with it."""


class Named(Protocol):
    """The names of a resource; ``Served`` has them."""

    group: str
    version: str
    kind: str
    api_version: str


class Listed(Named, Protocol):
    """The same, with the kind of lists."""

    list_kind: str


class Family(Protocol):
    """What differs. Everything is stateless."""

    builtin: bool
    """Whether the kinds are kube-apiserver's own; for the catalog alone."""
    has_structs: bool
    """Whether kube-apiserver has Go structs of the kinds, which omit what is empty: kind and apiVersion of list items,
    ``continue`` of lists."""
    has_messages: bool
    """Whether there are protobuf messages of the kinds."""
    merges_duplicates: bool
    """Whether a repeated key of a JSON object merges into the first one, as Go's decoder does for structs."""
    changes_when_read: bool
    """Whether the schema may change what was stored: fields it lost, defaults it gained."""
    patch_types: tuple[str, ...]

    def registry(self, group: str, plural: str) -> str:
        """Where storage faults say that objects are kept."""

    def type_meta(self, kind: str, api_version: str) -> Json:
        """kind and apiVersion, in the order of stored objects."""

    def in_order(self, obj: Json) -> Json:
        """An object with its keys in the order in which kube-apiserver writes them."""

    def refresh(self, schema: CompiledSchema, obj: Json) -> None:
        """Brings a stored object to what its schema says today, in place."""

    def name_kind(
        self,
        wanted: Named,
        obj: Json,
        data: bytes,
        is_kind: IsKind,
        shown: Callable[[], str],
        *,
        lenient: bool = False,
    ) -> None:
        """Sees to it that a body's object, whose bytes are ``data``, is of the wanted kind; may fill the kind in.
        ``shown`` gives the body as text; ``lenient``: the decoder ignores unknown fields.

        Raises ApiError 400, 422.
        """

    def check_kind(self, wanted: Named, obj: Json, name: str) -> None:
        """Sees to it that an object which is to be stored is of the wanted kind. Raises ApiError 422."""

    def check_patched_kind(
        self, wanted: Named, obj: Json, name: str, shown: Callable[[], str], fault: PatchFault
    ) -> None:
        """Sees to it that a patch left kind and apiVersion alone; ``shown`` is the patched object as messages have it.
        Raises ApiError 400, 422, 500."""

    def unsupported_patch(self) -> ApiError:
        """415 for a patch of a type that the family does not take."""

    def go_type(self, named: Named, kind: str, *, of_list: bool) -> str:
        """The Go type of an object, which messages name."""

    def wrong_number(self, named: Listed, shown_as: str, *, of_list: bool) -> ApiError:
        """406 or 500 for one object asked for as a list, or a list asked for as one object (``of_list``)."""


class BuiltIn:
    """Kinds that kube-apiserver decodes into Go structs; see ``Family``."""

    builtin = has_structs = has_messages = True
    merges_duplicates = True
    changes_when_read = False
    patch_types: tuple[str, ...] = (
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+cbor",
    )

    def registry(self, group: str, plural: str) -> str:
        """Without the group; some bear an older name."""
        return f"/registry/{_STORED_AS.get(plural, plural)}"

    def type_meta(self, kind: str, api_version: str) -> Json:
        """kind first."""
        return {"kind": kind, "apiVersion": api_version}

    def in_order(self, obj: Json) -> Json:
        """Metadata in the order of its struct, the rest as it comes out of the typed form."""
        metadata = obj["metadata"]
        ordered = {key: metadata[key] for key in METADATA_ORDER if key in metadata}
        return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": ordered, **_rest(obj)}

    def refresh(self, schema: CompiledSchema, obj: Json) -> None:
        """Does nothing: built-in objects are stored as they are served."""

    def name_kind(
        self,
        wanted: Named,
        obj: Json,
        data: bytes,
        is_kind: IsKind,
        shown: Callable[[], str],
        *,
        lenient: bool = False,
    ) -> None:
        """Missing names are those of the path."""
        kind = obj["kind"] = obj.get("kind") or wanted.kind
        api_version = obj["apiVersion"] = obj.get("apiVersion") or wanted.api_version
        if (kind, api_version) == (wanted.kind, wanted.api_version):
            return
        group, version = GroupVersion.parse(api_version)
        if kind in UNVERSIONED:
            into = f"{internal_package(wanted.group)}.{wanted.kind}"
            fault = f"converting (v1.{kind}) to ({into}): unknown conversion"
        elif not _is_known(wanted, kind, group, version, is_kind(api_version, kind)):
            fault = not_registered(kind, api_version, _OWN_SCHEMES.get(wanted.group, _SCHEME))
        elif kind == wanted.kind and group == wanted.group:
            raise wrong_version(api_version, wanted.api_version)
        else:
            into = f"{internal_package(wanted.group)}.{wanted.kind}"
            fault = f"converting ({version}.{kind}) to ({into}): unknown conversion"
        raise cannot_handle(kind, version, wanted.kind, fault)

    def check_kind(self, wanted: Named, obj: Json, name: str) -> None:
        """Accepts every kind: no other can be read."""

    def check_patched_kind(
        self, wanted: Named, obj: Json, name: str, shown: Callable[[], str], fault: PatchFault
    ) -> None:
        """Refuses a patched object of another kind as a fault of the patch. A missing kind means this one."""
        _check_kind_is_text(obj, shown, fault)
        kind, api_version = obj.get("kind") or wanted.kind, obj.get("apiVersion") or ""
        if kind == wanted.kind and not api_version:
            # It is decoded as the internal type, of which nothing has a name in JSON.
            raise undeterminable_name(name)
        if (kind, api_version) != (wanted.kind, wanted.api_version):
            scheme = _OWN_SCHEMES.get(wanted.group, _SCHEME)
            raise fault(shown(), not_registered(kind, api_version, scheme))
        obj["kind"] = kind

    def unsupported_patch(self) -> ApiError:
        """The router's own words."""
        return unsupported_media_type("415: Unsupported Media Type", has_details=True)

    def go_type(self, named: Named, kind: str, *, of_list: bool) -> str:
        """The internal type."""
        return f"*{internal_package(named.group)}.{kind}"

    def wrong_number(self, named: Listed, shown_as: str, *, of_list: bool) -> ApiError:
        """Names the Go type."""
        return _wrong_number(self, named, shown_as, of_list=of_list)


class Custom:
    """Kinds of CustomResourceDefinitions, which stay unstructured; see ``Family``."""

    builtin = has_structs = has_messages = False
    merges_duplicates = False
    changes_when_read = True
    patch_types: tuple[str, ...] = (
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+cbor",
    )

    def registry(self, group: str, plural: str) -> str:
        """With the group."""
        return f"/registry/{group}/{plural}"

    def type_meta(self, kind: str, api_version: str) -> Json:
        """apiVersion first: keys are sorted."""
        return {"apiVersion": api_version, "kind": kind}

    def in_order(self, obj: Json) -> Json:
        """Keys of the object and of its metadata sorted, apiVersion and kind in front."""
        metadata = obj["metadata"]
        rest = {**_rest(obj), "metadata": {key: metadata[key] for key in sorted(metadata)}}
        return {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            **{key: rest[key] for key in sorted(rest)},
        }

    def refresh(self, schema: CompiledSchema, obj: Json) -> None:
        """Repaired, pruned and defaulted."""
        schema.repair(obj)
        schema.prune(obj)
        schema.default(obj)

    def name_kind(
        self,
        wanted: Named,
        obj: Json,
        data: bytes,
        is_kind: IsKind,
        shown: Callable[[], str],
        *,
        lenient: bool = False,
    ) -> None:
        """Refuses an object that does not name this kind: nothing is filled in for unstructured objects."""
        kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
        if (kind, api_version) == (wanted.kind, wanted.api_version):
            return
        if not kind:
            fault = f"Object 'Kind' is missing in '{shown()}'"
            if lenient:
                version = api_version.rpartition("/")[2] or wanted.version
                raise cannot_handle(wanted.kind, version, wanted.kind, fault)
            raise unrecognized(wanted.kind, fault, data)
        if obj.get("apiVersion", "") is None:
            fault = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
            raise cannot_handle(kind, "", wanted.kind, fault)
        if api_version != wanted.api_version:
            raise wrong_version(api_version, wanted.api_version)

    def check_kind(self, wanted: Named, obj: Json, name: str) -> None:
        """Raises ApiError 422 for another kind, which hides all other faults."""
        if obj["kind"] != wanted.kind:
            fault = _must_be("kind", obj["kind"], wanted.kind)
            raise invalid(obj["kind"], wanted.group, name, [fault])

    def check_patched_kind(
        self, wanted: Named, obj: Json, name: str, shown: Callable[[], str], fault: PatchFault
    ) -> None:
        """Refuses kind and apiVersion of a patched object, each as a field with a wrong value."""
        _check_kind_is_text(obj, shown, fault)
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if not kind:
            text = shown()
            raise fault(text, f"Object 'Kind' is missing in '{text}'")
        if not api_version:
            raise internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        faults = []
        if api_version != wanted.api_version:
            faults.append(_must_be("apiVersion", api_version, wanted.api_version))
        if kind != wanted.kind:
            faults.append(_must_be("kind", kind, wanted.kind))
        if faults:
            raise invalid(str(kind), GroupVersion.parse(str(api_version)).group, name, faults)

    def unsupported_patch(self) -> ApiError:
        """Names what is taken."""
        return unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(self.patch_types)
        )

    def go_type(self, named: Named, kind: str, *, of_list: bool) -> str:
        """The same for all kinds."""
        return f"*unstructured.Unstructured{'List' if of_list else ''}"

    def wrong_number(self, named: Listed, shown_as: str, *, of_list: bool) -> ApiError:
        """The unstructured form finds out by itself that one object is no list."""
        if not of_list:
            return plain_failure("content is not a list")
        return _wrong_number(self, named, shown_as, of_list=True)


def _check_kind_is_text(obj: Json, shown: Callable[[], str], fault: PatchFault) -> None:
    for name in ("apiVersion", "kind"):
        if (value := obj.get(name)) is not None and not isinstance(value, str):
            misfit = f"json: cannot unmarshal {type_name(value)} into Go struct field .{name} of type string"
            raise fault(shown(), f"couldn't get version/kind; json parse error: {misfit}")


BUILT_IN: Family = BuiltIn()
CUSTOM: Family = Custom()


def _wrong_number(family: Family, named: Listed, shown_as: str, *, of_list: bool) -> ApiError:
    go_type = family.go_type(named, named.list_kind if of_list else named.kind, of_list=of_list)
    what = "a list" if of_list else "not a list"
    return not_acceptable(f"you requested {shown_as}, but the requested object is {what} ({go_type})")


def _is_known(wanted: Named, kind: str, group: str, version: str, is_kind: bool) -> bool:
    """Whether the server of a wanted kind knows another one."""
    if wanted.group not in _OWN_SCHEMES:
        return is_kind
    return group == wanted.group and (is_kind or (kind == wanted.kind and version == "v1beta1"))


def _rest(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}


def _must_be(field: str, value: Any, wanted: str) -> FieldError:
    return invalid_value(field, value, f"must be {wanted}")
