"""Server-side apply: who owns which field of an object, and what an apply does to it.

One ``FieldOwnership`` serves one resource at one version, and one subresource. It is pure: objects in, a new
object out (with its ``metadata.managedFields``), nothing mutated; parts of the result are shared with the
arguments. Source of the rules: KEP-555, and kube-apiserver's behaviour.

What it does around the ``Updater``, from outside in: it answers refusals in kube-apiserver's words; lets
kubectl take over from client-side apply; gives what an object without owners holds to ``before-first-apply``;
keeps at most ten Update owners; stamps times; and never lets anybody own an object's identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from apimachinery.merge import last_applied
from apimachinery.merge.errors import BadPatch, Conflict, Conflicts, MergeError, refuse_deep
from apimachinery.merge.faults import explain
from apimachinery.merge.field_set import FieldSet, difference, from_paths, has, paths, union
from apimachinery.merge.fields_v1 import path_text, sort
from apimachinery.merge.managed_fields import (
    APPLY,
    UPDATE,
    EntryError,
    Managed,
    Owner,
    cap_updates,
    decode,
    encode,
    is_reset,
    same_but_times,
)
from apimachinery.merge.managed_fields import ManagedEntry as OwnedFields
from apimachinery.merge.schema import JsonObject
from apimachinery.merge.typed import MergeType, Misfit
from apimachinery.merge.updater import OneVersion, OwnedByOthers, Updater, VersionConverter
from apimachinery.merge.value import json_form, same
from apimachinery.meta.digests import digest_of

BEFORE_FIRST_APPLY: Final = "before-first-apply"
SPECS, SPEC_BYTES = 128, 4 << 10
"""Of so many specs that were created, none larger, the fields are kept: as objects they take ten times as much."""
NEVER_OWNED: Final[FieldSet] = from_paths(
    [
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        *(
            ("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


def keeps_empty_in(release: str) -> bool:
    """Whether that release (``1.36``) leaves ``{}`` or ``[]`` where an applier gives up the last field of it."""
    return release.removeprefix("v").split(".")[:2] == ["1", "36"]


class FieldOwnership:
    """Apply and update of one resource at one version.

    ``type`` is the merge type at ``api_version``. ``ignored`` holds, by apiVersion, fields that a write
    through this (sub)resource never sets and so never owns (``status`` of a main resource, ``spec`` of
    ``/status``): build them with ``field_set.from_paths``. Without ``converter`` only ``api_version`` exists.
    ``empty`` is what an object of this kind holds that nobody set anything in: for built-in kinds the objects
    that are always there (``spec: {}``), which no creator owns. ``keeps_empty``: what somebody gives up the last
    field of stays, empty, as in Kubernetes 1.36; before and after, null takes its place (``keeps_empty_in``).
    """

    def __init__(
        self,
        *,
        api_version: str,
        kind: str,
        type: MergeType,
        subresource: str = "",
        converter: VersionConverter | None = None,
        ignored: Mapping[str, FieldSet] | None = None,
        empty: JsonObject | None = None,
        keeps_empty: bool = True,
    ) -> None:
        self._api_version = api_version
        self._kind = kind
        self._type = type
        self._subresource = subresource
        self._empty = empty or {}
        self._specs: dict[bytes, FieldSet] = {}
        places = (ignored or {}).get(api_version) or {}
        self._left_alone = tuple(
            place[2:] for place in places if place.startswith("f:") and place != "f:metadata"
        )
        self._updater = Updater(
            converter or OneVersion(api_version, type), ignored or {}, keeps_empty=keeps_empty
        )

    @refuse_deep
    def apply(
        self, live: JsonObject | None, applied: Any, manager: str, *, force: bool = False, now: str
    ) -> JsonObject:
        """The object after ``manager`` applied ``applied``; ``live`` is None where there is none yet.

        ``now`` is RFC 3339 in whole seconds. The answer holds everything of ``live`` that nobody gave up;
        where nothing but ownership changed it is ``live`` with other managedFields. Defaulting and admission
        are the caller's, afterwards. Raises ``Conflicts``; ``BadPatch`` for another kind or version, or
        managedFields in what is applied; ``MergeError`` (500) where an object does not fit the merge schema.
        """
        if not isinstance(applied, dict):
            raise BadPatch(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
                f"{json_form(applied)} into Go value of type map[string]interface {{}}"
            )
        base = _without_entries(live) if live is not None else {}
        try:
            managed = decode(_entries(live))
        except EntryError as error:
            raise MergeError(f"failed to decode managed fields: {error}") from None
        if applied.get("apiVersion") != self._api_version or applied.get("kind") != self._kind:
            raise BadPatch(f"invalid object type: {_gvk(applied)}")
        # Objects from before server-side apply: what they hold must belong to somebody, or an apply would take it
        # all.
        if live is not None and not managed:
            try:
                managed = self._record(self._empty, base, managed, BEFORE_FIRST_APPLY, now)
            except Misfit:
                faults = explain(self._type, base, strict=False)
                raise MergeError(
                    "failed to create manager for existing fields: "
                    f"failed to convert new object ({_title(base)}) to smd typed: {faults}"
                ) from None
        # After the fields of the live object: kube-apiserver reports an unreadable owner first.
        if isinstance(_entries(applied), list):
            raise BadPatch("metadata.managedFields must be nil")
        owner = Owner(manager or "unknown", APPLY, "", self._subresource)
        try:
            fields = self._type.owned(applied) or {}
        except Misfit:
            faults = explain(self._type, applied)
            raise MergeError(f"failed to create typed patch object ({_title(applied)}): {faults}") from None
        try:
            merged, after = self._merge(base, applied, fields, managed, owner, force=force)
        except Misfit:
            raise self._unfit(base) from None
        # The entry comes back with all fields of the apply; identity is taken off here.
        mine = after.pop(owner, None)
        if mine is not None and (kept := difference(mine.fields, NEVER_OWNED)):
            # An apply that changes nothing keeps its time, so that nothing has to be written.
            time = mine.time if merged is base or same(merged, base) else now
            after[owner] = OwnedFields(mine.api_version, kept, time)
        # Only kubectl's annotation follows; other appliers never wrote one.
        if manager == last_applied.MANAGER:
            merged = last_applied.follow(merged, applied)
        return _with_entries(merged, after)

    def check_live(self, live: JsonObject) -> None:
        """Raises ``MergeError`` (500) where a stored object does not fit the schema, so that none can apply to it."""
        if not self.fits(live):
            raise self._unfit(_without_entries(live))

    def fits(self, obj: JsonObject) -> bool:
        """Does all of an object fit the schema; ``apply`` and ``update`` look at what changes alone."""
        try:
            self._type.owned(_without_entries(obj), strict=False)
        except Misfit:
            return False
        return True

    def _unfit(self, live: JsonObject) -> MergeError:
        faults = explain(self._type, live, strict=False)
        return MergeError(f"failed to create typed live object ({_title(live)}): {faults}")

    def update(self, live: JsonObject | None, new: JsonObject, manager: str, *, now: str) -> JsonObject:
        """``new`` with the managedFields of a create, replace or patch by ``manager``.

        ``live`` is None for a create. A ``new`` with its own managedFields replaces them (``[{}]`` and ``[]``
        reset them); one without, or with ones that cannot be read, keeps those of ``live``. An object that
        has none stays without until somebody applies. Never fails: where ownership cannot be computed,
        because an object does not fit its schema or its version, the answer has no managedFields.
        """
        bare = _without_entries(new)
        if not all(self._fits(name, live, new) for name in self._left_alone):
            # What the write leaves alone is not checked by anybody else, and must fit all the same.
            return bare
        managed = self._requested(live, new)
        if live is None and not managed:
            return self._created(bare, manager, now)
        base = _without_entries(live) if live is not None else self._empty
        # An object that was written before ownership was tracked: nobody gets it all by a small change.
        if not managed and live is not None and _metadata(live).get("uid"):
            return bare
        try:
            managed = self._record(base, bare, managed, manager, now)
        # Ownership is bookkeeping: a write that is otherwise valid must not fail for it.
        except (Misfit, MergeError, RecursionError):
            return bare
        return _with_entries(bare, managed)

    def _created(self, new: JsonObject, manager: str, now: str) -> JsonObject:
        """``new`` with the managedFields of its creator. Objects of one template have equal specs: which fields one has
        is found out once."""
        spec = new.get("spec")
        # Small specs are mostly unique; a digest pays off only where a template makes many equal ones.
        digest = digest_of(spec, longest=SPEC_BYTES) if type(spec) is dict and len(spec) > 1 else None
        known = self._specs.get(digest) if digest is not None else None
        rest = new if known is None else {key: value for key, value in new.items() if key != "spec"}
        try:
            managed = self._record(self._empty, rest, {}, manager, now, known)
        except (Misfit, MergeError, RecursionError):
            return new
        if digest is not None and known is None:
            for entry in managed.values():
                if node := entry.fields.get("f:spec"):
                    if len(self._specs) >= SPECS:
                        self._specs.clear()
                    self._specs[digest] = {"f:spec": sort(node)}
        return _with_entries(new, managed, known)

    def _fits(self, name: str, live: JsonObject | None, new: JsonObject) -> bool:
        value = new.get(name)
        # What was stored already may be wrong; only what this write changes is judged.
        if value is None or (live is not None and value == live.get(name)):
            return True
        try:
            self._type.owned({name: value}, strict=False)
        except Misfit:
            return False
        return True

    def _requested(self, live: JsonObject | None, new: JsonObject) -> Managed:
        """The owners before an update: as the request says, or as they are. A subresource cannot say."""
        if not self._subresource:
            if is_reset(_entries(new)):
                return {}
            try:
                if managed := decode(_entries(new)):
                    return managed
            except EntryError:
                pass
        try:
            return decode(_entries(live))
        except EntryError:
            return {}

    def _record(
        self,
        live: JsonObject,
        new: JsonObject,
        managed: Managed,
        manager: str,
        now: str,
        known: FieldSet | None = None,
    ) -> Managed:
        """The owners once ``manager`` updated ``live`` to ``new``, and took the ``known`` fields besides."""
        managed, fields = self._updater.update(live, new, self._api_version, managed)
        fields = difference(fields, NEVER_OWNED)
        if known:
            fields = {**fields, **known}
        if fields:
            owner = Owner(manager or "unknown", UPDATE, self._api_version, self._subresource)
            # One entry for each manager: the same manager's updates add up.
            if (previous := managed.get(owner)) is not None:
                fields = union(previous.fields, fields)
            managed[owner] = OwnedFields(self._api_version, fields, now)
        return cap_updates(managed)

    def _merge(
        self,
        live: JsonObject,
        applied: JsonObject,
        fields: FieldSet,
        managed: Managed,
        owner: Owner,
        *,
        force: bool,
    ) -> tuple[JsonObject, Managed]:
        version = self._api_version
        try:
            return self._updater.apply(live, applied, fields, version, managed, owner, force=force)
        # Only now: checking the live object costs a walk, and most applies have no conflict.
        except OwnedByOthers as conflict:
            allowed: FieldSet | None = None
            # kubectl may take over fields from its own client-side apply without --force.
            if owner.manager == last_applied.MANAGER:
                allowed = last_applied.unchanged_since(live, self._type, version)
            refused = _conflicts(conflict.fields, allowed or {})
            if refused:
                self.check_live(live)
                raise Conflicts(refused) from None
        return self._updater.apply(live, applied, fields, version, managed, owner, force=True)


def keep_times(live: JsonObject, new: JsonObject) -> JsonObject:
    """``new``, or ``new`` with the managedFields of ``live`` where the two differ in nothing but their times.

    A server calls it last, after defaulting and admission, and then writes only if the object differs from
    ``live``: so a no-op write changes nothing, not even a time.
    """
    old_entries, new_entries = _entries(live), _entries(new)
    # Cheap comparisons first: most writes change the number of entries, or nothing at all.
    if (
        not new_entries
        or not old_entries
        or len(old_entries) != len(new_entries)
        or old_entries == new_entries
    ):
        return new
    if not same_but_times(old_entries, new_entries) or not same(
        _without_entries(live), _without_entries(new)
    ):
        return new
    return {**new, "metadata": {**_metadata(new), "managedFields": old_entries}}


def _conflicts(fields: Mapping[Owner, FieldSet], allowed: FieldSet) -> tuple[Conflict, ...]:
    return tuple(
        Conflict(owner.manager, path_text(path), owner.operation, owner.api_version, owner.subresource)
        for owner in sorted(fields, key=lambda owner: owner.sort_key)
        for path in paths(fields[owner])
        if not has(allowed, path)
    )


def _metadata(obj: JsonObject | None) -> JsonObject:
    metadata = obj.get("metadata") if obj is not None else None
    return metadata if isinstance(metadata, dict) else {}


def _entries(obj: JsonObject | None) -> Any:
    return _metadata(obj).get("managedFields")


def _without_entries(obj: JsonObject) -> JsonObject:
    metadata = _metadata(obj)
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _with_entries(obj: JsonObject, managed: Managed, in_place: FieldSet | None = None) -> JsonObject:
    if not managed:
        return obj
    return {**obj, "metadata": {**_metadata(obj), "managedFields": encode(managed, in_place)}}


def _gvk(obj: JsonObject) -> str:
    version = obj.get("apiVersion") or ""
    if version.count("/") > 1:  # where Go reads no kind either
        return "/, Kind="
    return f"{version if '/' in version else f'/{version}'}, Kind={obj.get('kind') or ''}"


def _title(obj: JsonObject) -> str:
    namespace, name = (_metadata(obj).get(key) for key in ("namespace", "name"))
    # Go reads what is no text as none.
    return f"{namespace if isinstance(namespace, str) else ''}/{name if isinstance(name, str) else ''}; {_gvk(obj)}"
