"""Deletion in two phases.

An object that nobody holds goes at once. One with finalizers, or one that a propagation policy gives a finalizer
(``orphan``, ``foregroundDeletion``), is marked with a deletionTimestamp and stays; the update that takes its last
finalizer ends it. Grace works likewise for kinds that have it. Kinds with content (namespaces, CRDs) have a first
phase of their own. Preconditions are checked on the newest object, whatever the number of tries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from apimachinery.http.turns import Turns
from apimachinery.kinds.hooks import Hooks, Json
from apimachinery.meta.clock import now, wall
from apimachinery.meta.errors import ApiError, conflict, not_found
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.request.options import DeletionOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.driver import Course
from apimachinery.server.write.effects import Current, Steps
from apimachinery.server.write.terminating import held_by_spec
from apimachinery.server.write.together import Together
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import KeyNotFound, Record, RevisionConflict
from apimachinery.wire.json import encode

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
TRIES = 12


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion left: the object's record where it stays (``stays``), else its last one."""

    record: Record
    uid: str
    stays: bool


class Deleter:
    """Deletes objects of any resource."""

    def __init__(self, writer: Writer, admission: Admission) -> None:
        self._driver = writer.driver
        self._pipeline = writer.pipeline
        self.admission = admission

    def delete(self, target: WriteTarget, options: DeletionOptions) -> Coroutine[Any, Any, Deleted]:
        """Runs ``steps``. Raises ApiError 401 to 422."""
        return self._driver.run(self.steps(target, options))

    def decide(
        self, target: WriteTarget, options: DeletionOptions, *, of_collection: bool = False
    ) -> Coroutine[Any, Any, Course[Deleted]]:
        """Runs ``steps`` up to the storage: preconditions are checked, and admission has agreed. What is left is for
        the caller to run to its end. Raises ApiError."""
        return self._driver.begin(self.steps(target, options, of_collection=of_collection))

    async def delete_all(
        self,
        targets: Iterable[WriteTarget],
        options: DeletionOptions,
        *,
        passes_over: Callable[[ApiError], bool],
        of_collection: bool = False,
    ) -> None:
        """Deletes many objects, in their order. Raises the first ApiError that is not passed over: what comes before it
        is deleted, and nothing behind it."""

        async def finish(decided: Course[Deleted]) -> None:
            try:
                await decided.to_end()
            except ApiError as error:
                if not passes_over(error):
                    raise

        # Large collections are deleted in steps, or nobody else would be served meanwhile.
        turns = Turns()
        async with Together() as writes:
            for target in targets:
                await turns.give_way()
                try:
                    decided = await self.decide(target, options, of_collection=of_collection)
                except ApiError as error:
                    if not passes_over(error):
                        raise
                else:
                    await writes.add(finish(decided))

    def steps(
        self, target: WriteTarget, options: DeletionOptions, *, of_collection: bool = False
    ) -> Steps[Deleted]:
        """Deletes an object, ``of_collection`` where the request does not name it. Raises ApiError 401 to 422."""
        served = target.served
        if served.hooks.orphan_warning and options.policy is None:
            target.warnings.append(served.hooks.orphan_warning)
        tries = 0
        while tries < TRIES:
            tries += 1
            record: Record | None = yield Current(target)
            if record is None:
                break
            # Read again in each try: preconditions are about the newest object.
            obj = served.read(record)
            self.check(target, obj, options)
            operation = Operation("DELETE", target, None, obj, "" if of_collection else target.name, options)
            waited = yield from self.admission.admit(operation)
            # A webhook takes time, in which the object may have changed: conflicts from before do not count.
            if (yield from self.admission.validate(operation)) or waited:
                tries = 0
            try:
                return (yield from self._delete(target, record, obj, options))
            except RevisionConflict:
                continue  # it is decided again on what it is by now
            except KeyNotFound:
                break
        else:
            raise conflict(served.plural, served.group, target.name)
        raise not_found(served.plural, served.group, target.name)

    def check(self, target: WriteTarget, obj: Json, options: DeletionOptions) -> None:
        """Raises ApiError 409 where an object is not the one that the options mean."""
        served, metadata = target.served, obj["metadata"]
        if options.uid is not None and options.uid != metadata["uid"]:
            if served.hooks.terminate is not None:
                why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}"
                raise conflict(served.plural, served.group, target.name, why)
            raise conflict(
                served.kind,
                served.said_group,
                target.name,
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated",
            )
        wanted = options.resource_version
        if wanted is not None and wanted != metadata["resourceVersion"]:
            raise conflict(
                served.kind,
                served.said_group,
                target.name,
                f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record "
                f"({metadata['resourceVersion']}). The object might have been modified",
            )

    def _delete(
        self, target: WriteTarget, record: Record, obj: Json, options: DeletionOptions
    ) -> Steps[Deleted]:
        hooks = target.served.hooks
        metadata = obj["metadata"]
        uid = metadata["uid"]
        # Compared as bytes: a repeated deletion that changes nothing writes nothing.
        before = encode(obj)
        first = "deletionTimestamp" not in metadata
        held = metadata.get("finalizers")
        finalizers = self._finalizers(target, metadata, options)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        # Namespaces and CRDs: marked first; their controllers remove the content, then the object.
        if hooks.terminate is not None and (first or metadata.get("finalizers") or held_by_spec(obj)):
            if first:
                self._mark(obj, None, first=False)
                hooks.terminate(obj, now())
            if metadata.get("finalizers") or held_by_spec(obj):
                return Deleted((yield from self._keep(target, record, obj, before)), uid, True)
        grace = self._grace(hooks, obj, options, first)
        if grace:
            # Grace can be shortened, never prolonged.
            if first or grace < (metadata.get("deletionGracePeriodSeconds") or 0):
                self._mark(obj, grace, first=first)
            return Deleted((yield from self._keep(target, record, obj, before)), uid, True)
        if finalizers:
            if first or metadata.get("deletionGracePeriodSeconds"):
                self._mark(obj, 0, first=first)
            return Deleted((yield from self._keep(target, record, obj, before)), uid, True)
        # The deletionTimestamp of a pod that goes at once is still shown to its watchers.
        marks = hooks.grace is not None and first
        if marks:
            self._mark(obj, 0)
        elif held:
            metadata["finalizers"] = held  # which ends before anybody sees it without them
        # Watchers are shown the mark before the end.
        return Deleted((yield from self._pipeline.remove(target, record, obj, marked=marks)), uid, False)

    def _keep(self, target: WriteTarget, record: Record, obj: Json, before: bytes) -> Steps[Record]:
        if encode(obj) == before:
            return record
        return (yield from self._pipeline.replace(target, record, obj))

    def _mark(self, obj: Json, grace: int | None, *, first: bool = True) -> None:
        metadata = obj["metadata"]
        moment = wall() + (grace or 0)
        metadata["deletionTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        if grace is not None:
            metadata["deletionGracePeriodSeconds"] = grace
        if first and metadata.get("generation"):
            metadata["generation"] += 1

    def _finalizers(self, target: WriteTarget, metadata: Json, options: DeletionOptions) -> list[str]:
        present = metadata.get("finalizers") or []
        kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
        # Kinds of which nothing depends, such as events, wait for nobody.
        policy = "Background" if target.served.hooks.never_waits else options.policy
        if policy is None:
            # A second deletion without a policy keeps what the first one decided.
            if ORPHAN in present or FOREGROUND in present:
                policy = "Orphan" if ORPHAN in present else "Foreground"
            else:
                policy = "Orphan" if target.served.hooks.orphans else "Background"
        if policy == "Orphan":
            kept.append(ORPHAN)
        elif policy == "Foreground":
            kept.append(FOREGROUND)
        # What is there already stays in its order.
        return present if set(kept) == set(present) else kept

    def _grace(self, hooks: Hooks, obj: Json, options: DeletionOptions, first: bool) -> int:
        """How many seconds the object stays for its own sake: as its kind says, unless the client does."""
        own = hooks.grace(obj) if hooks.grace is not None and obj["metadata"] else None
        if own is None:
            return 0
        # The first deletion has set the grace; one without a wish leaves it.
        if not first and options.grace_seconds is None:
            return obj["metadata"].get("deletionGracePeriodSeconds") or 0
        return max(int(own if options.grace_seconds is None else options.grace_seconds), 0)
