"""Creates and updates: from an object in form to a record in storage.

The way of a write, as kube-apiserver's registry goes it:

    create   own fields → admit → prepare → identity → validate → store
    update   read → transform → own fields → admit → keep what is fixed → prepare → validate → store, or delete

An update reads, computes and writes with the revision it read; if somebody was faster it starts again, unless the
client named a resourceVersion. A write that changes nothing is not made. A dry run does all but store.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import msgspec

from apimachinery.merge.apply import keep_times
from apimachinery.meta.errors import (
    ApiError,
    already_exists,
    conflict,
    not_found,
    plain_failure,
)
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value
from apimachinery.meta.object_meta import validate_object_meta, validate_object_meta_update
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.target import Place, Written, match_namespace, metadata_of
from apimachinery.server.write.identity import generated_name, new_uid, now
from apimachinery.server.write.object_changes import (
    changes_generation,
    copy_field,
    drop_repeated_owners,
    in_order,
    name_requester,
    status_update,
)
from apimachinery.server.write.rules import check_object
from apimachinery.server.write.terminating import finishes_deletion, is_deleting
from apimachinery.storage.interface import (
    REVISION_MARK,
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    Storage,
    Value,
)
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode, encode

NAME_TRIES = 8
_SYSTEM_FIELDS = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid")
WRITE_TRIES = 12
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
Transform = Callable[[Json], Json]
"""Makes the new object from the present one, which is the caller's own; raises ApiError."""


def _is_version(text: object) -> bool:
    """Whether a create names a version. kube-apiserver passes over what is no number (its storage asks the versioner,
    and takes an error as none)."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and int(text[:20]) != 0


class Writer:
    """Writes objects of any resource."""

    def __init__(self, storage: Storage, cache: WatchCache, admission: Admission) -> None:
        self._storage = storage
        self._cache = cache
        self._admission = admission

    def current(self, place: Place) -> Record | None:
        """The present record."""
        return self._cache.resource(place.served.prefix).get(place.key)

    async def create(self, place: Place, obj: Json, *, owned: bool = False) -> Written:
        """Creates an object that is in form; ``owned`` where its managedFields are already what they shall be.

        Raises ApiError 403, 404, 409, 422.
        """
        served = place.served
        metadata = metadata_of(obj)
        match_namespace(metadata, place.namespace)
        for key in _SYSTEM_FIELDS:
            metadata.pop(key, None)
        if not owned:
            own = served.ownership("").update(None, obj, place.options.manager, now=now())
            metadata["managedFields"] = own["metadata"].get("managedFields")
            obj = own
            metadata = metadata_of(obj)
        if not metadata.get("managedFields"):
            metadata.pop("managedFields", None)
        prefix = metadata.get("generateName") or ""
        generates = bool(prefix) and not metadata.get("name")
        if served.namespaced:
            metadata["namespace"] = place.namespace
        else:
            metadata.pop("namespace", None)
        if generates:
            metadata["name"] = generated_name(prefix)
        if served.strategy.admit is not None:
            served.strategy.admit(obj)
        self._admission.admit(Operation("CREATE", place, obj, None, metadata.get("name") or ""))
        drop_repeated_owners(metadata, place.warnings)
        metadata["uid"] = new_uid()
        metadata["creationTimestamp"] = now()
        strategy, hooks = served.strategy, served.hooks
        if not strategy.keeps_status_on_create:
            if strategy.status is not None:
                obj["status"] = deepcopy(strategy.status)
            elif served.has_status:
                obj.pop("status", None)
        if strategy.generation is not None:
            metadata["generation"] = 1
        if strategy.requester and place.user is not None:
            name_requester(obj, place.user)
        for prepare in (strategy.prepare_create, hooks.prepare_create):
            if prepare is not None:
                prepare(obj)
        if served.typed and served.compiled.to_form is not None:
            served.compiled.to_form(obj)
        faults: list[FieldError] = []
        if not hooks.validates_metadata:
            faults = validate_object_meta(
                metadata, namespaced=served.namespaced, name_rule=hooks.name_rule, builtin=served.typed
            )
        self._check(place, obj, None, faults, "" if generates else metadata.get("name") or "")
        if _is_version(metadata.pop("resourceVersion", None)):
            raise plain_failure("resourceVersion should not be set on objects to be created")
        for attempt in range(NAME_TRIES):
            place.name = metadata["name"]
            try:
                record = await self._store_new(place, obj)
            except KeyExists:
                if generates and attempt < NAME_TRIES - 1:
                    metadata["name"] = generated_name(prefix)
                    continue
                raise self._taken(place, prefix) from None
            return Written(record, created=True)
        raise AssertionError("unreachable")

    async def _store_new(self, place: Place, obj: Json) -> Record:
        key = place.key
        if place.options.dry_run:
            if self.current(place) is not None:
                raise KeyExists(key)
            return Record(key, 0, 0, encode(self._stored(place.served, obj)))
        return await self._storage.create(key, self._sealed(place.served, obj))

    def _taken(self, place: Place, prefix: str) -> ApiError:
        served = place.served
        record = self.current(place)
        deleting = record is not None and is_deleting(record)
        error = already_exists(served.plural, served.said_group, place.name, deleting=deleting)
        if prefix:
            error.message += ", the server was not able to generate a unique name for the object"
            error.retry_after = 1
        return error

    async def update(
        self,
        place: Place,
        transform: Transform,
        *,
        uid: str = "",
        creates: Callable[[], Json] | None = None,
        created_owned: bool = False,
        owned: bool = False,
    ) -> Written:
        """Replaces an object by what ``transform`` makes of it.

        ``uid``: the object must have it. ``creates`` makes the object where there is none. ``owned``: the transform
        sees to managedFields itself. Raises ApiError 404, 409, 422.
        """
        served = place.served
        for _ in range(WRITE_TRIES):
            record = self.current(place)
            if record is None:
                if uid and creates is not None:
                    raise self._wrong_uid(place, uid, "")
                if creates is None:
                    raise not_found(served.plural, served.said_group, place.name)
                written = await self._create_absent(place, creates, created_owned)
                if written is None:
                    continue
                return written
            old = served.read(record)
            if uid and uid != old["metadata"].get("uid"):
                raise self._wrong_uid(place, uid, old["metadata"].get("uid", ""))
            new = transform(served.read(record))
            self._check_version(place, new, old)
            try:
                return Written(await self._update(place, record, old, new, owned))
            except (RevisionConflict, KeyNotFound):
                continue
        raise conflict(served.plural, served.said_group, place.name)

    async def _create_absent(self, place: Place, creates: Callable[[], Json], owned: bool) -> Written | None:
        obj = creates()
        metadata_of(obj).pop("resourceVersion", None)
        try:
            return await self.create(place, obj, owned=owned)
        except ApiError as error:
            if error.reason == "AlreadyExists" and self.current(place) is not None:
                return None
            raise

    def _wrong_uid(self, place: Place, wanted: str, found: str) -> ApiError:
        served = place.served
        key = served.registry_key(place.namespace, place.name)
        return conflict(
            served.plural,
            served.said_group,
            place.name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        )

    def _check_version(self, place: Place, new: Json, old: Json) -> None:
        served = place.served
        metadata = metadata_of(new)
        wanted = metadata.get("resourceVersion") or ""
        current = old["metadata"]["resourceVersion"]
        if wanted == current:
            return
        if wanted and not (wanted.isascii() and wanted.isdigit()):
            # A client's mistake that nothing wraps on its way out of storage.
            raise plain_failure(f"strconv.ParseUint: parsing {go_quote(wanted)}: invalid syntax")
        if not wanted or int(wanted) == 0:
            if not served.strategy.unconditional_update and place.subresource != "scale":
                fault = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(served.plural, served.said_group, place.name, [fault])
            metadata["resourceVersion"] = current
            return
        raise conflict(served.plural, served.said_group, place.name)

    async def _update(self, place: Place, record: Record, old: Json, new: Json, owned: bool) -> Record:
        served = place.served
        match_namespace(metadata_of(new), place.namespace)
        if not owned:
            ownership = served.ownership(place.subresource)
            new = ownership.update(old, new, place.options.manager, now=now())
        operation = Operation("UPDATE", place, new, old, place.name)
        self._admission.admit(operation)
        metadata = metadata_of(new)
        drop_repeated_owners(metadata, place.warnings, old["metadata"])
        new = self._prepare(place, old, new)
        metadata = new["metadata"]
        self._keep_fixed(metadata, old["metadata"])
        faults = validate_object_meta_update(metadata, old["metadata"])
        # The kind's own validation looks at metadata again, that of built-in kinds as on create too, each from
        # two places: so what may not change is told twice, and what may not be written four times.
        faults = [*faults, *faults]
        if served.typed:
            created = validate_object_meta(
                metadata, namespaced=served.namespaced, name_rule=served.hooks.name_rule, builtin=True
            )
            faults += [*created, *created]
        if served.typed and served.compiled.to_form is not None:
            served.compiled.to_form(new)
        self._check(place, new, old, faults, place.name)
        new = keep_times(old, new)
        if not new["metadata"].get("managedFields"):
            new["metadata"].pop("managedFields", None)
        return await self._store(place, record, old, new)

    def _prepare(self, place: Place, old: Json, new: Json) -> Json:
        served, strategy = place.served, place.served.strategy
        if place.subresource == "status":
            return status_update(served, old, new)
        if place.subresource == "finalize":
            return new
        if served.has_status or strategy.status is not None:
            copy_field(new, old, "status")
        new["metadata"]["generation"] = old["metadata"].get("generation", 0)
        for prepare in (strategy.prepare_update, served.hooks.prepare_update):
            if prepare is not None:
                prepare(new, old)
        raised = strategy.generation is not None and changes_generation(new, old, strategy.generation)
        if raised or (not served.typed and not served.has_status and new.get("status") != old.get("status")):
            new["metadata"]["generation"] += 1
        if not new["metadata"]["generation"]:
            del new["metadata"]["generation"]
        return new

    def _keep_fixed(self, metadata: Json, old: Json) -> None:
        if not metadata.get("uid"):
            metadata["uid"] = old["uid"]
        metadata["creationTimestamp"] = old["creationTimestamp"]
        metadata.pop("selfLink", None)
        if "deletionTimestamp" in old:
            metadata["deletionTimestamp"] = old["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in old:
            metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])

    def _check(self, place: Place, obj: Json, old: Json | None, faults: list[FieldError], name: str) -> None:
        served = place.served
        faults = check_object(served, obj, old, faults, place.warnings, status=place.subresource == "status")
        if faults:
            raise invalid(served.kind, served.said_group, name, faults)
        if served.hooks.warnings is not None:
            place.warnings.extend(served.hooks.warnings(obj, old))
        self._admission.validate(Operation("UPDATE" if old else "CREATE", place, obj, old, name))

    async def _store(self, place: Place, record: Record, old: Json, new: Json) -> Record:
        served = place.served
        if finishes_deletion(new, old):
            if not place.options.dry_run:
                await self.remove(place, record, old)
            return self.unstored(place, record, new)
        if new == old and _encode_sorted(new) == _encode_sorted(old) and self._is_stored(served, new, record):
            return record
        if place.options.dry_run:
            return self.unstored(place, record, new)
        return await self._storage.update(record.key, record.revision, self._sealed(served, new))

    async def remove(self, place: Place, record: Record, last: Json) -> Record:
        """Ends an object; ``last`` is what its DELETED event shows. Raises KeyNotFound, RevisionConflict."""
        return await self._storage.delete(record.key, record.revision, self._sealed(place.served, last))

    async def replace(self, place: Place, record: Record, new: Json) -> Record:
        """Writes an object as it is, without any rule. Raises KeyNotFound, RevisionConflict."""
        return await self._storage.update(record.key, record.revision, self._sealed(place.served, new))

    def unstored(self, place: Place, record: Record, obj: Json) -> Record:
        """A record of an object that is not written: what a dry run or a finished deletion shows."""
        return Record(record.key, record.revision, record.created, encode(self._stored(place.served, obj)))

    def _is_stored(self, served: Served, obj: Json, record: Record) -> bool:
        """Whether storing ``obj``, which is what ``record`` shows, would change nothing: not where the record waits
        to be brought to another version or form."""
        if served.is_plain(record):
            return True
        stored = decode(self._sealed(served, obj).at(record.revision))
        return _encode_sorted(stored) == _encode_sorted(decode(record.value))

    def _sealed(self, served: Served, obj: Json) -> Value:
        """What storage gets."""
        marked = {**obj, "metadata": {**obj["metadata"], "resourceVersion": REVISION_MARK}}
        return Value.cut(encode(self._stored(served, marked)))

    def _stored(self, served: Served, obj: Json) -> Json:
        """The object at the storage version, kind and apiVersion first; leaves ``obj`` as it is."""
        stored = {"kind": served.kind, "apiVersion": served.api_version, **obj}
        if served.to_storage is not None:
            stored = served.to_storage(msgspec.json.decode(encode(stored)))
        return in_order(stored, typed=served.typed)
