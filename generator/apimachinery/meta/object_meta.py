"""Rules for the metadata of every object: names, labels, annotations, finalizers, owners, and what is fixed.

Source: k8s.io/apimachinery's api/validation for the rules and their order, the recordings for their words.
Values are plain JSON as decoded: of the right types (``schema.CompiledSchema.decode_fault`` sees to that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, Reason, forbidden, invalid_value, required, too_long
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.names import (
    dns1123_label_faults,
    dns_subdomain_name,
    label_value_faults,
    path_segment_faults,
    qualified_name_faults,
)
from apimachinery.meta.printing import InOrder, go_quote

NameRule = Callable[[str, bool], list[str]]
"""Says what is wrong with a name; the flag tells a prefix (generateName), to which a suffix will be added."""

MAX_ANNOTATIONS_SIZE = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_FORBIDDEN_OWNERS = frozenset({("", "v1", "Event")})
_IMMUTABLE = "field is immutable"
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")

METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""The fields of metadata in the order of Go's struct."""


def validate_object_meta(
    meta: dict[str, Any],
    *,
    namespaced: bool,
    name_rule: NameRule | None = None,
    field: str = "metadata",
    plain_finalizers: bool = False,
) -> list[FieldError]:
    """The faults of ``metadata`` on create, in kube-apiserver's order.

    Names keep ``name_rule``, by default that of DNS subdomains. ``plain_finalizers``: a finalizer without a
    domain must be one that Kubernetes knows, as most built-in kinds ask.
    """
    rule = name_rule or dns_subdomain_name
    faults = _create_faults(meta, namespaced, rule, field, *_content_faults(meta, field))
    return [*faults, *_plain_finalizer_faults(meta, field)] if plain_finalizers else faults


def _content_faults(meta: dict[str, Any], field: str) -> tuple[list[FieldError], list[FieldError]]:
    """The faults of what creates and updates are asked alike: of labels, annotations and owners; of managedFields."""
    described: list[FieldError] = []
    if labels := meta.get("labels"):
        described += label_faults(labels, f"{field}.labels")
    if annotations := meta.get("annotations"):
        described += annotation_faults(annotations, f"{field}.annotations")
    if owners := meta.get("ownerReferences"):
        described += owner_faults(owners, f"{field}.ownerReferences")
    return described, list(_managed_fields_faults(meta.get("managedFields") or [], f"{field}.managedFields"))


def _create_faults(
    meta: dict[str, Any],
    namespaced: bool,
    rule: NameRule,
    field: str,
    described: list[FieldError],
    managed: list[FieldError],
) -> list[FieldError]:
    finalizers = meta.get("finalizers")
    of_finalizers = _finalizer_faults(finalizers, f"{field}.finalizers") if finalizers else ()
    return [*_identity_faults(meta, namespaced, rule, field), *described, *of_finalizers, *managed]


def _identity_faults(
    meta: dict[str, Any], namespaced: bool, rule: NameRule, field: str
) -> Iterator[FieldError]:
    if prefix := meta.get("generateName"):
        for fault in rule(prefix, True):
            yield invalid_value(f"{field}.generateName", prefix, fault)
    name = meta.get("name") or ""
    if not name:
        yield required(f"{field}.name", "name or generateName is required")
    else:
        for fault in rule(name, False):
            yield invalid_value(f"{field}.name", name, fault)
    namespace = meta.get("namespace") or ""
    if namespaced:
        if not namespace:
            yield required(f"{field}.namespace")
        else:
            for fault in dns1123_label_faults(namespace):
                yield invalid_value(f"{field}.namespace", namespace, fault)
    elif namespace:
        yield forbidden(f"{field}.namespace", "not allowed on this type")
    generation = meta.get("generation") or 0
    if generation < 0:
        yield invalid_value(f"{field}.generation", generation, "must be greater than or equal to 0")


def label_faults(labels: dict[str, str], field: str) -> Iterator[FieldError]:
    """The faults of a map of labels, by key."""
    for key in sorted(labels):
        for fault in qualified_name_faults(key):
            yield invalid_value(field, key, fault)
        for fault in label_value_faults(labels[key] or ""):
            yield invalid_value(field, labels[key], fault)


def annotation_faults(annotations: dict[str, str], field: str) -> Iterator[FieldError]:
    """The faults of a map of annotations: its keys, by key, and its size altogether."""
    for key in sorted(annotations):
        for fault in qualified_name_faults(key.lower()):
            yield invalid_value(field, key, fault)
    size = sum(len(key.encode()) + len((value or "").encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS_SIZE:
        yield too_long(field, MAX_ANNOTATIONS_SIZE)


def owner_faults(owners: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The faults of ownerReferences: each one's fields, then that one of them at most is the controller."""
    controller = ""
    owners = [
        owner if isinstance(owner, dict) else {} for owner in owners
    ]  # null is a reference of zero values
    for owner in owners:
        yield from _owner_faults(owner, field)
        if owner.get("controller"):
            this = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {this}"
                )
                yield invalid_value(field, InOrder([_ordered_owner(each) for each in owners]), detail)
            else:
                controller = this


def _owner_faults(owner: dict[str, Any], field: str) -> Iterator[FieldError]:
    api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    group, version = GroupVersion.parse(api_version)
    if api_version.count("/") > 1:
        group = version = ""
    if not version:
        yield invalid_value(f"{field}.apiVersion", api_version, "version must not be empty")
    for name, value in (("kind", kind), ("name", owner.get("name") or ""), ("uid", owner.get("uid") or "")):
        if not value:
            yield invalid_value(f"{field}.{name}", value, "must not be empty")
    if (group, version, kind) in _FORBIDDEN_OWNERS:
        detail = f"{group}/{version}, Kind={kind} is disallowed from being an owner"
        yield invalid_value(field, InOrder(_ordered_owner(owner)), detail)


def _ordered_owner(owner: dict[str, Any]) -> dict[str, Any]:
    required_fields = _OWNER_FIELDS[:4]
    ordered = {name: owner.get(name) or "" for name in required_fields}
    ordered.update({name: owner[name] for name in _OWNER_FIELDS[4:] if owner.get(name) is not None})
    return ordered


def _finalizer_faults(finalizers: list[str], field: str) -> Iterator[FieldError]:
    orphan = foreground = False
    for finalizer in finalizers:
        for fault in qualified_name_faults(finalizer):
            yield invalid_value(field, finalizer, fault)
        orphan = orphan or finalizer == "orphan"
        foreground = foreground or finalizer == "foregroundDeletion"
    if orphan and foreground:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value(field, finalizers, detail)


def _plain_finalizer_faults(meta: dict[str, Any], field: str) -> Iterator[FieldError]:
    for index, finalizer in enumerate(meta.get("finalizers") or []):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"{field}.finalizers[{index}]", finalizer, detail)


def _managed_fields_faults(entries: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    for index, entry in enumerate(entries):
        operation, manager = entry.get("operation") or "", entry.get("manager") or ""
        subresource = entry.get("subresource") or ""
        if operation in ("Apply", "Update") and entry.get("fieldsType") == "FieldsV1":
            # Nearly always so; a character has four bytes at most.
            if len(manager) <= 32 and manager.isprintable() and len(subresource) <= 256:
                continue
        at = f"{field}[{index}]"
        if operation not in ("Apply", "Update"):
            yield invalid_value(f"{at}.operation", operation, "must be `Apply` or `Update`")
        kind = entry.get("fieldsType") or ""
        if kind and kind != "FieldsV1":
            yield invalid_value(f"{at}.fieldsType", kind, "must be `FieldsV1`")
        yield from field_manager_faults(manager, f"{at}.manager")
        if len(subresource) > 256:
            yield too_long(f"{at}.subresource", 256)


def field_manager_faults(manager: str, field: str) -> Iterator[FieldError]:
    """The faults of a field manager's name: its length, and what cannot be printed."""
    if len(manager.encode()) > 128:
        yield too_long(field, 128)
    position = 0
    for char in manager:
        if not char.isprintable():
            yield invalid_value(
                field, manager, f"invalid character U+{ord(char):04X} (at position {position})"
            )
        position += len(char.encode())


def repeated_update_faults(
    meta: dict[str, Any],
    old: dict[str, Any],
    created: int,
    updated: int,
    plain_finalizers: bool,
    *,
    namespaced: bool,
    field: str = "metadata",
) -> list[FieldError]:
    """The faults of an update, as often as they are found: every update is checked as if it were a create, and for what
    it changed; the kind's own checks do that ``created`` and ``updated`` times more, and then with
    ``plain_finalizers`` too (``validate_object_meta``)."""
    content = _content_faults(meta, field)
    of_new = _create_faults(meta, namespaced, path_segment_faults, field, *content)
    of_change = [*_change_faults(meta, old, field), *content[0], *content[1]]
    plain = list(_plain_finalizer_faults(meta, field)) if plain_finalizers else []
    return [*of_new, *of_change, *of_change * updated, *of_new * created, *plain * (created + updated)]


def finalizer_warnings(meta: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """The warnings for new finalizers of a custom resource that have no domain."""
    known = {*_STANDARD_FINALIZERS, *((old or {}).get("finalizers") or ())}
    advice = "to avoid accidental conflicts with other finalizer writers"
    path = {True: " including a path (/)", False: ""}
    return [
        f"metadata.finalizers: {go_quote(each)}: prefer a domain-qualified finalizer name{path['.' in each]} {advice}"
        for each in sorted(set(meta.get("finalizers") or ()) - known)
        if "/" not in each
    ]


def validate_object_meta_update(
    meta: dict[str, Any], old: dict[str, Any], *, field: str = "metadata", plain_finalizers: bool = False
) -> list[FieldError]:
    """The faults of ``metadata`` on update.

    What may not change, then what create would refuse in the rest.
    """
    described, managed = _content_faults(meta, field)
    faults = [*_change_faults(meta, old, field), *described, *managed]
    return [*faults, *_plain_finalizer_faults(meta, field)] if plain_finalizers else faults


def _change_faults(meta: dict[str, Any], old: dict[str, Any], field: str) -> Iterator[FieldError]:
    if old.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or []) - set(old.get("finalizers") or []))
        if added:
            held = ", ".join(go_quote(each) for each in added)
            said = "no new finalizers can be added if the object is being deleted, found new finalizers"
            yield forbidden(f"{field}.finalizers", f"{said} []string{{{held}}}")
    if not meta.get("resourceVersion"):
        yield invalid_value(f"{field}.resourceVersion", "", "must be specified for an update")
    if (meta.get("generation") or 0) < (old.get("generation") or 0):
        yield invalid_value(f"{field}.generation", meta.get("generation") or 0, "must not be decremented")
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if (new := meta.get(name) or "") != (old.get(name) or ""):
            yield from immutable(new, old.get(name) or "", f"{field}.{name}")
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if (new := meta.get(name)) != old.get(name):
            yield from immutable(new, old.get(name), f"{field}.{name}")


def immutable(new: Any, old: Any, field: str) -> Iterator[FieldError]:
    """The fault of a field that changed and must not."""
    if new != old:
        yield FieldError(Reason.INVALID, field, _IMMUTABLE, new)
