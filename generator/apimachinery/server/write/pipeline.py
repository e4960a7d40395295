"""Creates, updates and removals as steps (``effects``): from an object in form to what the storage gets.

A write goes the way of kube-apiserver's registry:

    create   own fields → admit → prepare → identity → validate → store
    update   read → transform → own fields → admit → prepare → keep what is fixed → validate → store, or delete

An update reads, computes and writes with the revision it read; if somebody was faster it starts again, unless the
client named a resourceVersion. A write that changes nothing is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apimachinery.kinds.hooks import Json
from apimachinery.merge.apply import keep_times
from apimachinery.meta.asked import path_name_fault
from apimachinery.meta.errors import ApiError, already_exists, conflict, not_found, plain_failure
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    match_namespace,
    metadata_of,
)
from apimachinery.server.write import creating, updating
from apimachinery.server.write.allocating import Allocator
from apimachinery.server.write.creating import generated_name
from apimachinery.server.write.effects import Begin, Create, Current, Delete, Steps, Update
from apimachinery.server.write.object_changes import drop_repeated_owners
from apimachinery.server.write.sealing import changes, sealed, sealed_last, unstored
from apimachinery.server.write.terminating import finishes_deletion, is_deleting
from apimachinery.server.write.versions import is_version, version_fault
from apimachinery.storage.interface import KeyExists, KeyNotFound, Record, RevisionConflict

NAME_TRIES = 8
WRITE_TRIES = 12
Transform = Callable[[Json], Json]
"""Makes the new object from the present one, which is the caller's own; raises ApiError."""


class Pipeline:
    """The writes of objects of any resource."""

    def __init__(self, admission: Admission, allocators: Mapping[str, Allocator]) -> None:
        self.admission = admission
        self._allocators = allocators

    def create(self, target: WriteTarget, obj: Json, *, owned: bool = False) -> Steps[Written]:
        """Creates an object that is in form; ``owned`` where its managedFields are already what they should be.

        Raises ApiError 403, 404, 409, 422.
        """
        yield Begin(target)
        served = target.served
        match_namespace(metadata_of(obj), target.namespace)
        obj = creating.own(target, obj, owned)
        creating.place(target, obj)
        if served.strategy.admit is not None:
            served.strategy.admit(obj)
        operation = Operation("CREATE", target, obj, None, metadata_of(obj).get("name") or "")
        yield from self.admission.admit(operation)
        creating.place(target, obj)
        prefix = creating.name(obj)
        creating.identify(target, obj)
        creating.prepare(target, obj)
        if not target.subresource:
            self._allocate(target, obj, None)
        served.form(obj)
        # Plugins that may refuse the object see the first name that was generated, those that may change it see none.
        operation.name = obj["metadata"].get("name") or ""
        creating.check(target, obj, operation.name)
        yield from self.admission.validate(operation)
        if not target.options.dry_run and is_version(obj["metadata"].pop("resourceVersion", None)):
            # It is storage that refuses it, which a dry run does not ask: the object is shown with what was sent.
            raise plain_failure("resourceVersion should not be set on objects to be created")
        return (yield from self._store_named(target, obj, prefix))

    def _allocate(self, target: WriteTarget, obj: Json, old: Json | None) -> None:
        if (allocator := self._allocators.get(target.served.prefix)) is not None:
            target.allocation = allocator.allocate(target, obj, old)

    def _store_named(self, target: WriteTarget, obj: Json, prefix: str) -> Steps[Written]:
        """Stores a new object; a generated name that is taken is generated again."""
        for attempt in range(NAME_TRIES):
            target.name = obj["metadata"]["name"]
            try:
                if target.options.dry_run and (yield from _is_there(target)):
                    raise KeyExists(target.key)
                return Written((yield Create(target, sealed(target, obj))), created=True)
            except KeyExists:
                if not prefix or attempt == NAME_TRIES - 1:
                    raise (yield from _taken(target, obj["metadata"].get("generateName") or "")) from None
                obj["metadata"]["name"] = generated_name(prefix)
                if (fill_in := target.served.hooks.prepare_create) is not None:
                    fill_in(obj)  # what depends on the name
        raise AssertionError("unreachable")

    def update(
        self,
        target: WriteTarget,
        transform: Transform,
        *,
        uid: str = "",
        creates: Callable[[], Json] | None = None,
        created_owned: bool = False,
        owned: bool = False,
        pure: bool = False,
    ) -> Steps[Written]:
        """Replaces an object by what ``transform`` makes of it.

        ``uid``: the object must have it. ``creates`` makes the object where there is none. ``owned``: the transform
        sees to managedFields itself. ``pure``: it leaves the object that it is given as it is, and its own shares
        nothing with that. Raises ApiError 404, 409, 422.
        """
        tries = 0
        while tries < WRITE_TRIES:
            tries += 1
            record: Record | None = yield Current(target)
            if record is None:
                written = yield from self._create_absent(target, uid, creates, created_owned)
                if written is None:
                    continue  # somebody else has created it
                return written
            old = target.served.read(record)
            if uid:
                updating.check_uid(target, uid, old["metadata"].get("uid", ""))
            new = transform(old if pure else target.served.read(record))
            match_namespace(metadata_of(new), target.namespace)
            if not owned:
                new = updating.own(target, old, new)
            operation = Operation("UPDATE", target, new, old, target.name)
            waited = yield from self.admission.admit(operation)
            operation.obj = new = self._finished(target, old, operation.obj or new)
            if (yield from self.admission.validate(operation)) or waited:
                tries = 0  # While others are asked somebody is always faster; the time of the request is the limit.
            try:
                if finishes_deletion(new, old):
                    yield from self.remove(target, record, old)
                    return Written(unstored(target, record, new))
                if changes(target, record, old, new):
                    record = yield Update(target, record, sealed(target, new))
                return Written(record)
            except (RevisionConflict, KeyNotFound):
                continue
        raise conflict(target.served.plural, target.served.group, target.name)

    def _finished(self, target: WriteTarget, old: Json, new: Json) -> Json:
        """The new object as it is to be stored, valid."""
        updating.check_version(target, new, old)
        match_namespace(metadata_of(new), target.namespace)
        drop_repeated_owners(metadata_of(new), target.warnings)
        if target.subresource and (prepared := updating.prepared_alone(target, old, new)) is not None:
            new = prepared
        else:
            updating.prepare(target, old, new)
            self._allocate(target, new, old)
            updating.raise_generation(target, old, new)
        updating.keep_fixed(new["metadata"], old["metadata"])
        updating.check(target, old, new)
        new = keep_times(old, new)
        if not new["metadata"].get("managedFields"):
            new["metadata"].pop("managedFields", None)
        return new

    def _create_absent(
        self, target: WriteTarget, uid: str, creates: Callable[[], Json] | None, owned: bool
    ) -> Steps[Written | None]:
        """Creates what was to be updated; None where it is there by now."""
        served, asked = target.served, target.name
        if creates is None:
            raise not_found(served.plural, served.group, asked)
        if uid:
            updating.check_uid(target, uid, "")
        obj = creates()
        if (fault := path_name_fault(asked)) is not None:
            raise fault
        metadata = metadata_of(obj)
        if (version := metadata.get("resourceVersion")) and (why := version_fault(version)):
            raise plain_failure(why)
        if not target.options.dry_run:
            metadata.pop("resourceVersion", None)
        try:
            return (yield from self.create(target, obj, owned=owned))
        except ApiError as error:
            renamed = target.name != asked
            if error.reason == "AlreadyExists" and not renamed and (yield Current(target)) is not None:
                return None
            raise

    def replace(self, target: WriteTarget, record: Record, new: Json) -> Steps[Record]:
        """Writes an object as it is, without any rule. Raises KeyNotFound, RevisionConflict."""
        yield Begin(target)
        stored: Record = yield Update(target, record, sealed(target, new))
        return stored

    def remove(
        self, target: WriteTarget, record: Record, last: Json, *, marked: bool = False
    ) -> Steps[Record]:
        """Ends an object; ``last`` is what its DELETED event shows, and before it, where it is ``marked``, an event of
        its own. Raises KeyNotFound, RevisionConflict."""
        yield Begin(target)
        value = sealed(target, last) if marked else sealed_last(target, record, last)
        removed: Record = yield Delete(target, record, value, last, marked)
        return removed


def _is_there(target: WriteTarget) -> Steps[bool]:
    """Whether a dry run finds that the name is taken: what cannot be converted it takes for absent."""
    try:
        record: Record | None = yield Current(target)
        return record is not None and bool(target.served.read(record))
    except ApiError:
        return False


def _taken(target: WriteTarget, prefix: str) -> Steps[ApiError]:
    served = target.served
    try:
        record: Record | None = yield Current(target)
    except ApiError:
        record = None  # it is there, and cannot be read
    deleting = record is not None and is_deleting(record)
    error = already_exists(served.plural, served.group, target.name, deleting=deleting)
    if prefix:
        error.message += ", the server was not able to generate a unique name for the object"
        error.retry_after = 1
    return error
