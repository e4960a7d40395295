"""The heart of server-side apply: objects and owners in, objects and owners out.

Rules (KEP-555). An update takes every field that it changes or adds, from whoever owned it. An apply owns
what it says; it may not change what others own, unless forced; and what it owned last time and no longer says
goes from the object, unless someone else owns it. Each owner's fields are read in the owner's version, so
objects are converted for owners of other versions, once a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from apimachinery.merge.errors import MergeError, UnknownVersion
from apimachinery.merge.faults import explain
from apimachinery.merge.field_set import (
    FieldSet,
    difference,
    intersection,
    recursive_difference,
    union,
)
from apimachinery.merge.managed_fields import Managed, ManagedEntry, Owner
from apimachinery.merge.schema import JsonObject
from apimachinery.merge.typed import Delta, MergeType, Misfit, compare_objects


class VersionConverter(Protocol):
    """The other versions of a resource, for owners that write through them."""

    def type_of(self, api_version: str) -> MergeType:
        """The merge type at ``api_version``. Raises ``UnknownVersion``."""

    def convert(self, value: JsonObject, api_version: str) -> JsonObject:
        """``value`` at ``api_version``: a new object. Raises ``UnknownVersion``."""


class OneVersion:
    """The converter of a resource with one version."""

    def __init__(self, api_version: str, type: MergeType) -> None:
        self._api_version = api_version
        self._type = type

    def type_of(self, api_version: str) -> MergeType:
        """The one type. Raises ``UnknownVersion``."""
        if api_version != self._api_version:
            raise UnknownVersion(api_version)
        return self._type

    def convert(self, value: JsonObject, api_version: str) -> JsonObject:
        """The value itself. Raises ``UnknownVersion``."""
        self.type_of(api_version)
        return value


class OwnedByOthers(Exception):
    """An apply without force met fields of others."""

    def __init__(self, fields: dict[Owner, FieldSet]) -> None:
        super().__init__("fields of other owners would change")
        self.fields = fields


class Updater:
    """Owners under update and apply, of one resource. ``ignored`` are, by version, fields nobody may own.

    ``keeps_empty``: an object or list whose last field is given up stays, empty; else null takes its place.
    """

    def __init__(
        self, converter: VersionConverter, ignored: Mapping[str, FieldSet], *, keeps_empty: bool = True
    ) -> None:
        self._converter = converter
        self._ignored = ignored
        self._keeps_empty = keeps_empty

    def update(
        self, live: JsonObject, new: JsonObject, api_version: str, managed: Managed
    ) -> tuple[Managed, FieldSet]:
        """The owners once ``new`` took the place of ``live``, and the fields that whoever did it took.
        Raises ``Misfit``."""
        managed, delta = self._give_way(live, new, api_version, self._reconciled(managed), None, force=True)
        return managed, union(delta.modified or {}, delta.added or {})

    def apply(
        self,
        live: JsonObject,
        applied: JsonObject,
        fields: FieldSet,
        api_version: str,
        managed: Managed,
        owner: Owner,
        *,
        force: bool,
    ) -> tuple[JsonObject, Managed]:
        """The merged object, ``live`` itself where nothing changed, and the owners. ``fields`` is what
        applying ``applied`` owns. Raises ``Misfit``, ``OwnedByOthers``."""
        managed = self._reconciled(managed)
        merged: JsonObject = self._converter.type_of(api_version).merge(live, applied)
        last = managed.get(owner)
        fields = self._without_ignored(fields, api_version)
        managed[owner] = ManagedEntry(api_version, fields, last.time if last else None)
        if last is not None and last.fields:
            merged = self._prune(merged, managed, owner, last)
        managed, _ = self._give_way(live, merged, api_version, managed, owner, force=force)
        return merged, managed

    def _without_ignored(self, fields: FieldSet, api_version: str) -> FieldSet:
        ignored = self._ignored.get(api_version)
        return recursive_difference(fields, ignored) if ignored else fields

    def _reconciled(self, managed: Managed) -> Managed:
        """The owners with their fields as the schema of today has them; owners of unknown versions are left
        out."""
        out: Managed = {}
        for owner, entry in managed.items():
            try:
                type_ = self._converter.type_of(entry.api_version)
            except UnknownVersion:
                continue
            fields = type_.reconcile(entry.fields) if entry.fields else entry.fields
            out[owner] = (
                entry if fields is entry.fields else ManagedEntry(entry.api_version, fields, entry.time)
            )
        return out

    def _give_way(
        self,
        live: JsonObject,
        new: JsonObject,
        api_version: str,
        managed: Managed,
        owner: Owner | None,
        *,
        force: bool,
    ) -> tuple[Managed, Delta]:
        """The owners without what the change from ``live`` to ``new`` takes from all but ``owner``; the
        change."""
        own = self._compared(live, new, api_version)
        if not managed:
            return {}, own
        deltas: dict[str, Delta | None] = {api_version: own}
        taken: dict[Owner, FieldSet] = {}
        gone: dict[Owner, FieldSet] = {}
        out = dict(managed)
        for other, entry in managed.items():
            if other == owner:
                continue
            version = entry.api_version
            if version not in deltas:
                deltas[version] = self._compared_at(live, new, version)
            delta = deltas[version]
            if delta is None:
                del out[other]
                continue
            changed = union(delta.modified or {}, delta.added or {})
            if changed and (common := intersection(entry.fields, changed)):
                taken[other] = common
            if delta.removed:
                gone[other] = delta.removed
        if taken and not force:
            raise OwnedByOthers(taken)
        for losses in (taken, gone):
            for other, fields in losses.items():
                entry = out[other]
                left = difference(entry.fields, fields)
                if left is not entry.fields:
                    out[other] = ManagedEntry(entry.api_version, left, entry.time)
        return {other: entry for other, entry in out.items() if entry.fields}, own

    def _compared(self, live: JsonObject, new: JsonObject, api_version: str) -> Delta:
        delta = compare_objects(self._converter.type_of(api_version), live, new)
        ignored = self._ignored.get(api_version)
        if not ignored:
            return delta
        return Delta(*(recursive_difference(fields or {}, ignored) for fields in delta))

    def _compared_at(self, live: JsonObject, new: JsonObject, api_version: str) -> Delta | None:
        """The change as another version shows it; None where there is no such version."""
        if live is new:
            return Delta({}, {}, {})
        try:
            before = self._read_at(live, api_version, "failed to convert old object")
            after = self._read_at(new, api_version, "failed to convert new object")
        except UnknownVersion:
            return None
        return self._compared(before, after, api_version)

    def _read_at(self, value: JsonObject, api_version: str, failed: str) -> JsonObject:
        """``value`` at another version. Raises ``UnknownVersion``; ``MergeError`` where it has what that version
        does not know."""
        converted = self._converter.convert(value, api_version)
        type_ = self._converter.type_of(api_version)
        try:
            type_.owned(converted, strict=False)
        except Misfit:
            raise MergeError(f"{failed}: {explain(type_, converted, strict=False)}") from None
        return converted

    def _prune(self, merged: JsonObject, managed: Managed, owner: Owner, last: ManagedEntry) -> JsonObject:
        """``merged`` without what ``owner`` gave up: fields that it owned last time and nobody owns now.

        ``managed`` holds the owner's new entry. What is above an owned field stays; what nobody owns
        stays too, unless it is inside an item or a map's key that goes as a whole."""
        current = managed[owner].api_version
        try:
            type_ = self._converter.type_of(last.api_version)
        except UnknownVersion:
            return merged
        if last.api_version == current and self.gives_up_nothing(last.fields, managed[owner].fields):
            return merged
        last_fields = type_.name_parents(last.fields)
        failed = "failed to prune fields: failed to convert merged object to last applied version"
        try:
            whole = merged if current == last.api_version else self._read_at(merged, last.api_version, failed)
        except UnknownVersion:
            return merged
        bare = self._removed(type_, whole, last_fields)
        pruned = self._with_owned(whole, bare, last.api_version, managed)
        kept = type_.name_parents(type_.owned(pruned, strict=False) or {})
        there = type_.name_parents(type_.owned(whole, strict=False) or {})
        given_up = intersection(difference(there, kept), last_fields)
        if not given_up:
            return merged
        return self._at(self._removed(type_, whole, given_up), last.api_version, current)

    def _removed(self, type_: MergeType, value: JsonObject, fields: FieldSet) -> JsonObject:
        return type_.remove(value, fields, keeps_empty=self._keeps_empty) or {}

    def gives_up_nothing(self, last: FieldSet, now: FieldSet) -> bool:
        """Whether everything that was owned is owned still, so that there is nothing to prune."""
        return not difference(last, now)

    def _with_owned(
        self, whole: JsonObject, pruned: JsonObject, api_version: str, managed: Managed
    ) -> JsonObject:
        """``pruned``, at ``api_version``, with all of ``whole`` that anybody owns."""
        owned: dict[str, FieldSet] = {}
        for entry in managed.values():
            owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
        # The version at hand first, so that a conversion meets the fields it needs.
        at = api_version
        for version in sorted(owned, key=lambda version: (version != api_version, version)):
            try:
                type_ = self._converter.type_of(version)
                whole_here, pruned_here = self._at(whole, at, version), self._at(pruned, at, version)
            except UnknownVersion:
                continue
            there = type_.name_parents(type_.owned(whole_here, strict=False) or {})
            kept = union(
                type_.name_parents(type_.owned(pruned_here, strict=False) or {}),
                type_.name_parents(owned[version]),
            )
            whole, at = whole_here, version
            pruned = self._removed(type_, whole_here, difference(there, kept))
        return self._at(pruned, at, api_version)

    def _at(self, value: JsonObject, api_version: str, wanted: str) -> JsonObject:
        return value if api_version == wanted else self._converter.convert(value, wanted)
