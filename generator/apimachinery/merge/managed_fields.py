"""``metadata.managedFields``: entries read, capped, sorted and written as kube-apiserver does.

An owner is a (manager, operation, subresource), for updates at one apiVersion; an applier has one entry, at
the version it applied last. Times are RFC 3339 in whole seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from apimachinery.merge import fields_v1
from apimachinery.merge.field_set import FieldSet, union
from apimachinery.merge.schema import JsonObject

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_OWNERS: Final = 10
ANCIENT: Final = "ancient-changes"


class Owner(NamedTuple):
    """Who owns fields. ``api_version`` is empty for appliers."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def sort_key(self) -> str:
        """kube-apiserver orders owners by the JSON of their entry."""
        shown = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        shown["subresource"] = self.subresource
        return json.dumps(
            {key: word for key, word in shown.items() if word}, separators=(",", ":"), ensure_ascii=False
        )


class ManagedEntry(NamedTuple):
    """What one owner owns, at which apiVersion, and since when (None for an apply that changed nothing)."""

    api_version: str
    fields: FieldSet
    time: str | None = None


Managed = dict[Owner, ManagedEntry]


class EntryError(ValueError):
    """An entry that cannot be read."""


def is_reset(entries: Any) -> bool:
    """Whether managedFields in a request say: forget all owners."""
    # kubectl and others send [{}] to reset; [null] is what Go makes of an empty entry.
    return isinstance(entries, list) and (not entries or entries in ([{}], [None]))


def decode(entries: Any) -> Managed:
    """The owners in managedFields (None or absent: nobody). Raises ``EntryError`` with the entry's number."""
    out: Managed = {}
    if entries is None:
        return out
    if not isinstance(entries, list):
        raise EntryError("managedFields must be a list")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise EntryError(f"managed fields entry {number} is not an object")
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise EntryError("operation must be `Apply` or `Update`")
        version = entry.get("apiVersion")
        if not isinstance(version, str) or not version:
            raise EntryError("apiVersion must not be empty")
        form = entry.get("fieldsType")
        if form != "FieldsV1":
            if not form:
                raise EntryError(f"missing fieldsType in managed fields entry {number}")
            raise EntryError(f'invalid fieldsType "{form}" in managed fields entry {number}')
        try:
            fields = fields_v1.parse(entry.get("fieldsV1"))
        except fields_v1.FieldsError as error:
            raise EntryError(f"managed fields entry {number}: {error}") from None
        # An applier has one entry for all versions, so the version is no part of its name.
        owner = Owner(
            str(entry.get("manager", "")),
            operation,
            version if operation == UPDATE else "",
            str(entry.get("subresource", "")),
        )
        out[owner] = ManagedEntry(version, fields, entry.get("time"))
    return out


def encode(managed: Managed, in_place: Mapping[str, FieldSet] | None = None) -> list[JsonObject]:
    """managedFields of the owners, sorted by operation, time, manager, apiVersion, subresource. ``in_place`` are nodes
    that are in wire order already, where there is one owner."""
    ordered = sorted(
        managed.items(),
        # In kube-apiserver's order: Apply before Update, then by time.
        key=lambda pair: (
            pair[0].operation,
            pair[1].time or "",
            pair[0].manager,
            pair[1].api_version,
            pair[0].subresource,
        ),
    )
    out: list[JsonObject] = []
    for owner, entry in ordered:
        written: JsonObject = {"manager": owner.manager} if owner.manager else {}
        written["operation"] = owner.operation
        written["apiVersion"] = entry.api_version
        if entry.time is not None:
            written["time"] = entry.time
        written["fieldsType"] = "FieldsV1"
        written["fieldsV1"] = (
            fields_v1.sort_around(entry.fields, in_place) if in_place else fields_v1.sort(entry.fields)
        )
        if owner.subresource:
            written["subresource"] = owner.subresource
        out.append(written)
    return out


def cap_updates(managed: Managed, limit: int = MAX_UPDATE_OWNERS) -> Managed:
    """``managed`` with at most ``limit`` Update owners: the oldest of one version are joined in one owner
    named ``ancient-changes``, which bears the time of the last one joined."""
    if len(managed) <= limit:
        return managed
    updaters = [owner for owner in managed if owner.operation == UPDATE]
    excess = len(updaters) - limit
    if excess <= 0:
        return managed
    managed = dict(managed)
    # The oldest first: recent owners are those that people ask about.
    updaters.sort(key=lambda owner: (managed[owner].time or "", owner.sort_key))
    first: dict[str, Owner] = {}
    for owner in updaters:
        if excess <= 0:
            break
        entry = managed[owner]
        # The first of a version is joined only once there is a second, as in kube-apiserver.
        if entry.api_version not in first:
            first[entry.api_version] = owner
            continue
        bucket = Owner(ANCIENT, UPDATE, entry.api_version)
        if owner == bucket or bucket not in managed:
            joined = managed.pop(first[entry.api_version]).fields
            first[entry.api_version] = bucket
        else:
            joined = managed[bucket].fields
        managed.pop(owner)
        managed[bucket] = ManagedEntry(entry.api_version, union(entry.fields, joined), entry.time)
        excess -= 1
    return managed


def same_but_times(old: Iterable[JsonObject], new: Iterable[JsonObject]) -> bool:
    """Whether two managedFields lists differ in nothing but their times."""
    return [_timeless(entry) for entry in old] == [_timeless(entry) for entry in new]


def _timeless(entry: JsonObject) -> JsonObject:
    return {key: value for key, value in entry.items() if key != "time"}
