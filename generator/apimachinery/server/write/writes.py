"""Creates and updates: from an object in form to a record in storage.

The way of a write, as kube-apiserver's registry goes it:

    create   own fields → admit → prepare → identity → validate → store
    update   read → transform → own fields → admit → keep what is fixed → prepare → validate → store, or delete

An update reads, computes and writes with the revision it read; if somebody was faster it starts again, unless the
client named a resourceVersion. A write that changes nothing is not made. A dry run does all but store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Protocol

import msgspec

from apimachinery.http.messages import LARGE_BYTES
from apimachinery.http.workers import apart_if
from apimachinery.kinds.hooks import Json
from apimachinery.merge.apply import keep_times
from apimachinery.meta.errors import (
    ApiError,
    already_exists,
    conflict,
    not_found,
    plain_failure,
    unreadable,
)
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value
from apimachinery.meta.object_meta import repeated_update_faults, validate_object_meta
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Admission, Operation, Waiting
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    match_namespace,
    metadata_of,
    path_name_fault,
)
from apimachinery.server.write.allocating import Allocator
from apimachinery.server.write.identity import generated_name, new_uid, now
from apimachinery.server.write.object_changes import (
    changes_generation,
    copy_field,
    drop_gated,
    drop_repeated_owners,
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
    UnreadableRecord,
    Value,
)
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode, encode, encode_in_steps, with_go_numbers

NAME_TRIES = 8
MAX_UINT64 = (1 << 64) - 1
_SYSTEM_FIELDS = ("creationTimestamp", "selfLink", "uid")
_DELETION_FIELDS = ("deletionGracePeriodSeconds", "deletionTimestamp")
WRITE_TRIES = 12
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_EMPTIES = b" "
"""Ends what is stored of an object that has empties (``WriteTarget``); JSON may end so, and readers need not look."""
Transform = Callable[[Json], Json]
"""Makes the new object from the present one, which is the caller's own; raises ApiError."""


def _is_version(text: object) -> bool:
    """Whether a create names a version. kube-apiserver ignores what is not a number (its storage asks the versioner,
    and takes an error as none)."""
    return isinstance(text, str) and not _version_fault(text) and bool(text.strip("0"))


def _version_fault(text: str) -> str:
    """What Go's ``strconv.ParseUint`` says of a version, for 64 bits; empty of a good one."""
    if not (text.isascii() and text.isdigit()):
        return f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax"
    digits = text.lstrip("0")
    if len(digits) > 20 or int(digits or "0") > MAX_UINT64:
        return f"strconv.ParseUint: parsing {go_quote(text)}: value out of range"
    return ""


class Writes(Protocol):
    """What of a storage is used here."""

    async def create(self, key: str, value: Value) -> Record:
        """See Storage."""

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """See Storage."""

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        """See Storage."""


class Writer:
    """Writes objects of any resource."""

    def __init__(self, storage: Writes, cache: WatchCache, admission: Admission) -> None:
        self._storage = storage
        self._cache = cache
        self._admission = admission
        self.allocators: dict[str, Allocator] = {}
        """By the prefix of their resource."""

    def current(self, target: WriteTarget) -> Record | None:
        """The present record. Raises ApiError 500 for one that is there and cannot be read."""
        try:
            self._cache.check_readable(target.key)
        except UnreadableRecord as fault:
            raise unreadable(str(fault)) from None
        return self._cache.resource(target.served.prefix).get(target.key)

    async def admitted(self, operation: Operation) -> None:
        """Sends through admission what is not stored as it comes: a call, a connection. Raises ApiError."""
        for step in (self._admission.admit, self._admission.validate):
            if (waiting := step(operation)) is not None:
                await waiting

    async def create(self, target: WriteTarget, obj: Json, *, owned: bool = False) -> Written:
        """Creates an object that is in form; ``owned`` where its managedFields are already what they should be.

        Raises ApiError 403, 404, 409, 422.
        """
        if target.served.prefix in self.allocators and not target.subresource:
            return await _allocated(target, self._create(target, obj, owned))
        return await self._create(target, obj, owned)

    async def _create(self, target: WriteTarget, obj: Json, owned: bool) -> Written:
        match_namespace(metadata_of(obj), target.namespace)
        obj, operation, waiting = await apart_if(target.where, self._begin_new, target, obj, owned)
        if waiting is not None:
            await waiting
        prefix, waiting = await apart_if(target.where, self._finish_new, target, obj, operation)
        if waiting is not None:
            await waiting
        if not target.options.dry_run and _is_version(obj["metadata"].pop("resourceVersion", None)):
            # It is storage that refuses it, which a dry run does not ask: the object is shown with what was sent.
            raise plain_failure("resourceVersion should not be set on objects to be created")
        return await self._store_named(target, obj, prefix)

    def _begin_new(self, target: WriteTarget, obj: Json, owned: bool) -> tuple[Json, Operation, Waiting]:
        """The new object as plugins may change it, and what admission waits for."""
        obj = self._own_new(target, obj, owned)
        metadata = metadata_of(obj)
        self._place_new(target, metadata)
        if target.served.strategy.admit is not None:
            target.served.strategy.admit(obj)
        operation = Operation("CREATE", target, obj, None, metadata.get("name") or "")
        return obj, operation, self._admission.admit(operation)

    def _finish_new(self, target: WriteTarget, obj: Json, operation: Operation) -> tuple[str, Waiting]:
        """Makes of it what is to be stored. The prefix of a generated name, and what plugins that may refuse the object
        wait for: they see the first candidate, those that may change it see no name."""
        self._place_new(target, metadata_of(obj))
        prefix = self._name_new(obj)
        self._identify(target, obj)
        self._prepare_new(target, obj)
        operation.name = obj["metadata"].get("name") or ""
        self._check_new(target, obj, operation.name)
        return prefix, self._admission.validate(operation)

    def _own_new(self, target: WriteTarget, obj: Json, owned: bool) -> Json:
        """The object with the fields that its creator owns, and without what only the server may set."""
        metadata = metadata_of(obj)
        # Only a POST, whose path names nothing, is kept from making an object that is deleted already.
        for key in _SYSTEM_FIELDS if target.name else (*_SYSTEM_FIELDS, *_DELETION_FIELDS):
            metadata.pop(key, None)
        if not owned:
            tracked = target.served.ownership(target.subresource).update(
                None, obj, target.options.manager, now=now()
            )
            metadata["managedFields"] = tracked["metadata"].get("managedFields")
            obj = tracked
        if not metadata_of(obj).get("managedFields"):
            metadata_of(obj).pop("managedFields", None)
        return obj

    def _place_new(self, target: WriteTarget, metadata: Json) -> None:
        """Sets the namespace of the path. Raises ApiError 400 for another one."""
        if target.served.namespaced:
            match_namespace(metadata, target.namespace)
        else:
            metadata.pop("namespace", None)

    def _name_new(self, obj: Json) -> str:
        """Generates a name where that is due; its prefix then, else ``""``."""
        metadata = obj["metadata"]
        prefix: str = metadata.get("generateName") or ""
        if not prefix or metadata.get("name"):
            return ""
        metadata["name"] = generated_name(prefix)
        return prefix

    def _identify(self, target: WriteTarget, obj: Json) -> None:
        metadata = metadata_of(obj)
        drop_repeated_owners(metadata, target.warnings)
        metadata["uid"] = new_uid()
        metadata["creationTimestamp"] = now()

    def _prepare_new(self, target: WriteTarget, obj: Json) -> None:
        """What the kind's strategy makes of a new object: its first status and generation, and what it fills in."""
        served, strategy = target.served, target.served.strategy
        if strategy.keeps_status_on_create:
            pass
        elif strategy.status is not None:
            obj["status"] = deepcopy(strategy.status)
        elif served.has_status:
            obj.pop("status", None)
        if strategy.generation is not None:
            metadata_of(obj)["generation"] = 1
        if strategy.requester and target.user is not None:
            name_requester(obj, target.user)
        drop_gated(served, obj, None)
        # What a write of the status creates is given nothing: no addresses, no families of them.
        for prepare in (None if target.subresource else strategy.prepare_create, served.hooks.prepare_create):
            if prepare is not None:
                prepare(obj)
        if (allocator := self.allocators.get(served.prefix)) is not None and not target.subresource:
            target.allocation = allocator.allocate(target, obj, None)
        if served.compiled.to_form is not None:
            served.compiled.to_form(obj)

    def _check_new(self, target: WriteTarget, obj: Json, name: str) -> None:
        served, metadata = target.served, metadata_of(obj)
        faults: list[FieldError] = []
        if not served.hooks.validates_metadata:
            faults = validate_object_meta(
                metadata,
                namespaced=served.namespaced,
                name_rule=served.name_rule,
                plain_finalizers=served.metadata_checks.plain_finalizers,
            )
        if faults and not served.metadata_checks.any:
            # What is found in metadata alone is found after what the kind says.
            self._check(target, obj, None, [], name)
        self._check(target, obj, None, faults, name)

    async def _store_named(self, target: WriteTarget, obj: Json, prefix: str) -> Written:
        """Stores a new object; a generated name that is taken is generated again."""
        for attempt in range(NAME_TRIES):
            target.name = obj["metadata"]["name"]
            try:
                return Written(await self._store_new(target, obj), created=True)
            except KeyExists:
                if not prefix or attempt == NAME_TRIES - 1:
                    raise self._taken(target, obj["metadata"].get("generateName") or "") from None
                obj["metadata"]["name"] = generated_name(prefix)
        raise AssertionError("unreachable")

    async def _store_new(self, target: WriteTarget, obj: Json) -> Record:
        key = target.key
        if target.options.dry_run:
            if self.current(target) is not None:
                raise KeyExists(key)
            return Record(key, 0, 0, await apart_if(target.where, self._unstored, target, obj))
        if target.allocation is not None:
            await target.allocation.secure(target.name)
        sealed = await apart_if(target.where, self._sealed, target.served, obj, large=target.large)
        return await self._storage.create(key, _marked(sealed) if target.has_empties else sealed)

    def _taken(self, target: WriteTarget, prefix: str) -> ApiError:
        served = target.served
        record = self._cache.resource(served.prefix).get(target.key)
        deleting = record is not None and is_deleting(record)
        error = already_exists(served.plural, served.group, target.name, deleting=deleting)
        if prefix:
            error.message += ", the server was not able to generate a unique name for the object"
            error.retry_after = 1
        return error

    async def update(
        self,
        target: WriteTarget,
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
        writing = self._update(target, transform, uid, creates, created_owned, owned)
        if target.served.prefix in self.allocators:
            return await _allocated(target, writing)
        return await writing

    async def _update(
        self,
        target: WriteTarget,
        transform: Transform,
        uid: str,
        creates: Callable[[], Json] | None,
        created_owned: bool,
        owned: bool,
    ) -> Written:
        served = target.served
        tries = 0
        while tries < WRITE_TRIES:
            tries += 1
            record = self.current(target)
            if record is None:
                if uid and creates is not None:
                    raise self._wrong_uid(target, uid, "")
                if creates is None:
                    raise not_found(served.plural, served.group, target.name)
                written = await self._create_absent(target, creates, created_owned)
                if written is None:
                    continue
                return written
            large = target.where or len(record.value) > LARGE_BYTES
            if tries == 1:
                target.hold(record.value)
            operation, waiting = await apart_if(
                large, self._begin_change, target, record, transform, uid, owned
            )
            if waiting is not None:
                tries = 0  # While others are asked somebody is always faster; the time of the request is the limit.
                await waiting
            old, new, waiting = await apart_if(large, self._finish_change, target, operation)
            if waiting is not None:
                tries = 0
                await waiting
            try:
                return Written(await self._store(target, record, old, new))
            except (RevisionConflict, KeyNotFound):
                if target.allocation is not None:
                    await target.allocation.drop()
                continue
        raise conflict(served.plural, served.group, target.name)

    async def _create_absent(
        self, target: WriteTarget, creates: Callable[[], Json], owned: bool
    ) -> Written | None:
        obj, asked = await apart_if(target.where, creates), target.name
        if (fault := path_name_fault(target.name)) is not None:
            raise fault
        metadata = metadata_of(obj)
        if (version := metadata.get("resourceVersion")) and (why := _version_fault(version)):
            raise plain_failure(why)
        if not target.options.dry_run:
            metadata.pop("resourceVersion", None)
        try:
            return await self.create(target, obj, owned=owned)
        except ApiError as error:
            renamed = target.name != asked
            if error.reason == "AlreadyExists" and not renamed and self.current(target) is not None:
                return None
            raise

    def _wrong_uid(self, target: WriteTarget, wanted: str, found: str) -> ApiError:
        served = target.served
        key = served.registry_key(target.namespace, target.name)
        return conflict(
            served.plural,
            served.group,
            target.name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        )

    def _check_version(self, target: WriteTarget, new: Json, old: Json) -> None:
        served = target.served
        metadata = metadata_of(new)
        wanted = metadata.get("resourceVersion") or ""
        current = old["metadata"]["resourceVersion"]
        if wanted == current:
            return
        if wanted and (why := _version_fault(wanted)):
            # A client's mistake that nothing wraps on its way out of storage.
            raise plain_failure(why)
        if not wanted.strip("0"):
            if not served.strategy.unconditional_update and target.subresource != "scale":
                fault = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(served.plural, served.group, target.name, [fault])
            metadata["resourceVersion"] = current
            return
        raise conflict(served.plural, served.group, target.name)

    def _begin_change(
        self, target: WriteTarget, record: Record, transform: Transform, uid: str, owned: bool
    ) -> tuple[Operation, Waiting]:
        """The object as it is and as plugins may change it, and what admission waits for."""
        served = target.served
        old = served.read(record)
        if uid and uid != old["metadata"].get("uid"):
            raise self._wrong_uid(target, uid, old["metadata"].get("uid", ""))
        new = transform(served.read(record))
        match_namespace(metadata_of(new), target.namespace)
        if not owned:
            ownership = target.served.ownership(target.subresource)
            new = ownership.update(old, new, target.options.manager, now=now())
        operation = Operation("UPDATE", target, new, old, target.name)
        return operation, self._admission.admit(operation)

    def _finish_change(self, target: WriteTarget, operation: Operation) -> tuple[Json, Json, Waiting]:
        """The object as it is and as it is to be stored, and what plugins that may refuse it wait for."""
        old, new = operation.old, operation.obj
        assert old is not None and new is not None
        self._check_version(target, new, old)
        match_namespace(metadata_of(new), target.namespace)
        drop_repeated_owners(metadata_of(new), target.warnings)
        new = self._prepare(target, old, new)
        self._keep_fixed(new["metadata"], old["metadata"])
        self._check_changed(target, old, new)
        new = keep_times(old, new)
        if not new["metadata"].get("managedFields"):
            new["metadata"].pop("managedFields", None)
        operation.obj = new
        return old, new, self._admission.validate(operation)

    def _check_changed(self, target: WriteTarget, old: Json, new: Json) -> None:
        served, metadata = target.served, new["metadata"]
        checks = served.status_metadata_checks if target.subresource == "status" else served.metadata_checks
        faults = repeated_update_faults(metadata, old["metadata"], *checks, namespaced=served.namespaced)
        if served.compiled.to_form is not None:
            served.compiled.to_form(new)
        # Where a plugin renamed the object, the fault is that of the new name.
        self._check(target, new, old, faults, metadata.get("name") or "")

    def _prepare(self, target: WriteTarget, old: Json, new: Json) -> Json:
        served, strategy = target.served, target.served.strategy
        if target.subresource == "status":
            return status_update(served, old, new)
        if target.subresource == "finalize":
            return new
        if (update := served.hooks.prepare_subresource.get(target.subresource)) is not None:
            update(new, old, now())
            return new
        if served.has_status or strategy.status is not None:
            copy_field(new, old, "status")
        new["metadata"]["generation"] = old["metadata"].get("generation", 0)
        drop_gated(served, new, old)
        for prepare in (strategy.prepare_update, served.hooks.prepare_update):
            if prepare is not None:
                prepare(new, old)
        if (allocator := self.allocators.get(served.prefix)) is not None:
            target.allocation = allocator.allocate(target, new, old)
        fields = strategy.generation  # of a built-in kind none: its objects stay as they began
        raised = (
            fields is not None
            and (bool(fields) or not served.builtin)
            and changes_generation(target.as_sent(new) if served.hooks.counts_empties else new, old, fields)
        )
        if raised or (
            not served.builtin and not served.has_status and new.get("status") != old.get("status")
        ):
            new["metadata"]["generation"] += 1
        if not new["metadata"]["generation"]:
            del new["metadata"]["generation"]
        return new

    def _keep_fixed(self, metadata: Json, old: Json) -> None:
        if not metadata.get("uid"):
            copy_field(metadata, old, "uid")
        copy_field(metadata, old, "creationTimestamp")
        metadata.pop("selfLink", None)
        if "deletionTimestamp" in old:
            metadata["deletionTimestamp"] = old["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in old:
            metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])

    def _check(
        self, target: WriteTarget, obj: Json, old: Json | None, faults: list[FieldError], name: str
    ) -> None:
        served = target.served
        served.family.check_kind(served, obj, name)
        faults = check_object(
            served, target.as_sent(obj), old, faults, target.warnings, subresource=target.subresource
        )
        if faults:
            raise invalid(served.kind, served.said_group, name, faults)
        if served.hooks.warnings is not None and not target.subresource:
            target.warnings.extend(served.hooks.warnings(obj, old))

    async def _store(self, target: WriteTarget, record: Record, old: Json, new: Json) -> Record:
        served = target.served
        where = target.where or len(record.value) > LARGE_BYTES
        if finishes_deletion(new, old):
            if not target.options.dry_run:
                await self.remove(target, record, old)
            return await apart_if(where, self.unstored, target, record, new)
        rewrites = target.has_empties or record.value.endswith(_EMPTIES) or record.stale
        if (
            not rewrites
            and await apart_if(where, _are_same, old, new)
            and await apart_if(where, self._is_stored, served, new, record)
        ):
            fills_in = served.hooks.fills_in_when_read
            if fills_in is None or record.created != record.revision or not fills_in(old):
                return record
        if target.options.dry_run:
            return await apart_if(where, self.unstored, target, record, new)
        if target.allocation is not None:
            await target.allocation.secure(target.name)
        sealed = await apart_if(where, self._sealed, served, new, large=where > 0)
        if target.has_empties:
            sealed = _marked(sealed)
        return await self._storage.update(record.key, record.revision, sealed)

    async def remove(
        self, target: WriteTarget, record: Record, last: Json, *, marked: bool = False
    ) -> Record:
        """Ends an object; ``last`` is what its DELETED event shows, and before it, where it is ``marked``, an event of
        its own. Raises KeyNotFound, RevisionConflict."""
        sealed = await apart_if(target.asking, self._sealed, target.served, last)
        removed = await self._storage.delete(record.key, record.revision, sealed, marked=marked)
        if (allocator := self.allocators.get(target.served.prefix)) is not None:
            await allocator.removed(last)
        return removed

    async def replace(self, target: WriteTarget, record: Record, new: Json) -> Record:
        """Writes an object as it is, without any rule. Raises KeyNotFound, RevisionConflict."""
        sealed = await apart_if(target.asking, self._sealed, target.served, new)
        return await self._storage.update(record.key, record.revision, sealed)

    def unstored(self, target: WriteTarget, record: Record, obj: Json) -> Record:
        """A record of an object that is not written: what a dry run or a finished deletion shows."""
        return Record(record.key, record.revision, record.created, self._unstored(target, obj))

    def _unstored(self, target: WriteTarget, obj: Json) -> bytes:
        return with_go_numbers(
            (encode_in_steps if target.large else encode)(self._stored(target.served, obj))
        )

    def _is_stored(self, served: Served, obj: Json, record: Record) -> bool:
        """Whether storing ``obj``, which is what ``record`` shows, would change nothing: not where the record waits
        to be brought to another version or form."""
        if served.is_plain(record):
            return True
        stored = decode(self._sealed(served, obj).at(record.revision))
        return _encode_sorted(stored) == _encode_sorted(decode(record.value))

    def _sealed(self, served: Served, obj: Json, *, large: bool = False) -> Value:
        """What storage gets."""
        pack = _pack_large if large else _pack
        if served.asks:
            # A webhook that converts is not shown what stands in for the revision.
            metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
            stored = self._stored(served, {**obj, "metadata": metadata})
            stored["metadata"]["resourceVersion"] = REVISION_MARK
            return Value.cut(pack(served.family.in_order(stored)))
        marked = {**obj, "metadata": {**obj["metadata"], "resourceVersion": REVISION_MARK}}
        return Value.cut(pack(self._stored(served, marked)), served.ttl)

    def _stored(self, served: Served, obj: Json) -> Json:
        """The object at the storage version, kind and apiVersion first; leaves ``obj`` as it is."""
        stored = {"kind": served.kind, "apiVersion": served.api_version, **obj}
        if served.first_status is not None and "status" not in stored:
            # kube-apiserver fills it in when it reads what it stored: rules and admission do not see it.
            stored["status"] = deepcopy(served.first_status)
        if served.to_storage is not None:
            stored = served.to_storage(msgspec.json.decode(encode(stored)))
        return served.family.in_order(stored)


def _pack(stored: Json) -> bytes:
    return with_go_numbers(encode(stored))


def _pack_large(stored: Json) -> bytes:
    return with_go_numbers(encode_in_steps(stored))


def _are_same(old: Json, new: Json) -> bool:
    """Whether two objects would be written alike: ``==`` alone takes 1, 1.0 and true for the same."""
    return new == old and _encode_sorted(new) == _encode_sorted(old)


def _marked(sealed: Value) -> Value:
    return Value(sealed.head, sealed.tail + _EMPTIES, sealed.ttl)


async def _allocated(target: WriteTarget, writing: Awaitable[Written]) -> Written:
    """A write of an object that is given something: that ends with the write, one way or the other."""
    try:
        written = await writing
    except BaseException:
        if target.allocation is not None:
            await target.allocation.drop()
            target.allocation = None
        raise
    if target.allocation is not None:
        await target.allocation.keep()
        target.allocation = None
    return written
