"""How objects of both families are written.

kube-apiserver decodes what a patch or an apply makes of a built-in object into its Go struct, and gives each kind a
strategy that says which fields are its spec. Custom resources stay maps: what their schema does not refuse is kept, and
whatever is not metadata or status is their spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError
from apimachinery.meta.times import SECONDS_LAYOUT, parse_fault
from apimachinery.schema.known_specs import Aside
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form, set_aside
from apimachinery.server.request.target import WriteTarget, metadata_of
from apimachinery.server.write.object_changes import copy_field, differs_at, differs_outside_status
from apimachinery.server.write.patch_faults import encoded, patch_fault


class BuiltInWrites:
    """Objects that are Go structs."""

    reports_unknown = True
    """Whether unknown fields that are applied are warned of or refused."""

    def after_merge_patch(self, value: Any, patch: Any) -> Any:
        """A patched value as a refusal shows it: keys are in order wherever the patch went, since there the object was
        taken apart and put together."""
        if not isinstance(value, dict) or not isinstance(patch, dict):
            return _sorted(value)
        return {
            key: self.after_merge_patch(value[key], patch[key]) if key in patch else value[key]
            for key in sorted(value)
        }

    def after_json_patch(self, value: Any, patch: Any) -> Any:
        """The same for the paths of the operations."""
        touched: Json = {}
        for operation in patch:
            for name in ("path", "from"):
                place = touched
                for part in str(operation.get(name) or "").split("/")[1:-1]:
                    place = place.setdefault(part.replace("~1", "/").replace("~0", "~"), {})
        return _sorted_at(value, touched)

    def status_update(self, served: Served, old: Json, new: Json) -> Json:
        """The object after a write through ``/status``: the status, and what of metadata the strategy does not keep."""
        for key in {*old, *new} - {"metadata", "status", "kind", "apiVersion"}:
            copy_field(new, old, key)
        copy_field(new["metadata"], old["metadata"], "generation")
        for name in served.hooks.status_keeps:
            copy_field(new["metadata"], old["metadata"], name)
        for name in served.hooks.internal_annotations:
            if name not in (before := old["metadata"].get("annotations") or {}):
                (new["metadata"].get("annotations") or {}).pop(name, None)
            else:
                new["metadata"]["annotations"] = {
                    **(new["metadata"].get("annotations") or {}),
                    name: before[name],
                }
        if served.hooks.prepare_status is not None:
            served.hooks.prepare_status(new, old)
        return new

    def changes_generation(self, target: WriteTarget, old: Json, new: Json) -> bool:
        """Whether users' fields changed: the strategy names them; without any, objects stay as they began."""
        fields = target.served.strategy.generation
        if not fields:
            return False
        return differs_at(target.as_sent(new) if target.served.hooks.counts_empties else new, old, fields)

    def fit_applied(self, target: WriteTarget, new: Json, applied: Json) -> tuple[list[str], Aside | None]:
        """Sees to it that a merged object fits the struct, which the schema of the merge does not promise; the unknown
        fields, which it drops, and what is set aside of the object. Raises ApiError 500."""
        schema = target.served.compiled.schema
        aside = set_aside(new, target.served)
        fault, dropped = schema.read(new)
        if fault:
            if aside is not None:
                aside.put_back(new)
                aside = None
            schema.restore(new)
            if fault := schema.restore_fault(new):
                raise _unconverted(applied, target.served, fault)
            dropped = schema.prune(new)
        return dropped, aside

    def finish_applied(self, target: WriteTarget, new: Json, aside: Aside | None) -> None:
        """Brings a merged object into form; notes what is empty in it."""
        target.empties = finish_form(new, target.served, aside)


class CustomWrites:
    """Objects that are maps."""

    reports_unknown = False  # applied fields that the type knows and the schema does not go without a word

    def after_merge_patch(self, value: Any, patch: Any) -> Any:
        """Maps are encoded with their keys in order."""
        return _sorted(value)

    def after_json_patch(self, value: Any, patch: Any) -> Any:
        """The same."""
        return _sorted(value)

    def status_update(self, served: Served, old: Json, new: Json) -> Json:
        """Changes nothing but the status, and who owns it."""
        # A copy of the outer levels: the stored object is shared with readers.
        made = {**old, "metadata": {**old["metadata"]}}
        copy_field(made, new, "status")
        copy_field(made["metadata"], new["metadata"], "managedFields")
        return made

    def changes_generation(self, target: WriteTarget, old: Json, new: Json) -> bool:
        """All but metadata counts; the status too where it is no subresource."""
        return differs_outside_status(new, old) or (
            not target.served.has_status and new.get("status") != old.get("status")
        )

    def fit_applied(self, target: WriteTarget, new: Json, applied: Json) -> tuple[list[str], Aside | None]:
        """kube-apiserver stores what was applied as it is, and drops what metadata has no need of when it reads it or
        brings it to another version."""
        served, metadata = target.served, metadata_of(new)
        # Nobody sets an object's creationTimestamp, so one that is no time does not count.
        created = metadata.get("creationTimestamp")
        if created is not None and (
            not isinstance(created, str) or parse_fault(created, SECONDS_LAYOUT) is not None
        ):
            del metadata["creationTimestamp"]
        as_stored = not target.subresource and served.api_version == served.storage_version
        target.has_empties = as_stored and _has_empties(metadata)
        fault, dropped = served.compiled.schema.read(new)
        if fault:
            raise patch_fault(encoded(new), fault)
        return dropped, None

    def finish_applied(self, target: WriteTarget, new: Json, aside: Aside | None) -> None:
        """Keeps nulls of what is applied, so that they are refused; a create drops them, and so does kube-apiserver
        with the status itself where only the status is applied."""
        nulls = list(_nulls(new))
        target.empties = finish_form(new, target.served)
        for holder, key in nulls:
            if not (holder is new and key == target.subresource == "status"):
                holder.setdefault(key, None)


WRITES: Mapping[Family, BuiltInWrites | CustomWrites] = {BUILT_IN: BuiltInWrites(), CUSTOM: CustomWrites()}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _sorted_at(value: Any, places: Any) -> Any:
    if not isinstance(places, dict):
        return value
    if isinstance(value, list):
        # An index counts from the end where it is negative.
        count = len(value)
        return [_sorted_at(v, places.get(str(n), places.get(str(n - count)))) for n, v in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {key: _sorted_at(value[key], places.get(key)) for key in sorted(value)}


def _unconverted(applied: Json, served: Served, fault: str) -> ApiError:
    """500, without a reason: the merged object fits its schema, and yet is no object of the kind."""
    metadata = metadata_of(applied)
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    gvk = f"{served.group}/{served.version}, Kind={served.kind}"
    said = f"failed to convert new object ({place}; {gvk}) to proper version: "
    return ApiError(
        500, "", f"{said}unable to convert unstructured object to {gvk}: {fault}", has_details=False
    )


_COLLECTIONS = ("labels", "annotations", "finalizers", "ownerReferences")


def _has_empties(metadata: Json) -> bool:
    """Whether a collection is there that holds nothing, or labels that are null."""
    for name in _COLLECTIONS:
        if name in metadata:
            held = metadata[name]
            if not held or (isinstance(held, dict) and None in held.values()):
                return True
    return False


def _nulls(value: Any) -> Iterator[tuple[Json, str]]:
    """Where nulls stand: each object and the key in it."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            for key, item in inner.items():
                if item is None:
                    yield inner, key
                elif isinstance(item, (dict, list)):
                    waiting.append(item)
        elif isinstance(inner, list):
            waiting.extend(inner)
