"""The steps of an update, each on plain objects: ``old`` as it is, ``new`` as it is to become."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.errors import conflict, plain_failure
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.meta.object_meta import repeated_update_faults
from apimachinery.server.request.target import WriteTarget, metadata_of
from apimachinery.server.write.families import WRITES
from apimachinery.server.write.object_changes import copy_field, drop_gated
from apimachinery.server.write.rules import check_whole
from apimachinery.server.write.versions import version_fault


def own(target: WriteTarget, old: Json, new: Json) -> Json:
    """Notes in the new object which fields the client owns by now."""
    ownership = target.served.ownership(target.subresource)
    return ownership.update(old, new, target.options.manager, now=now())


def check_uid(target: WriteTarget, uid: str, found: str) -> None:
    """Raises ApiError 409 where the object has another uid than the client named."""
    if uid == found:
        return
    served = target.served
    key = served.registry_key(target.namespace, target.name)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    )
    raise conflict(served.plural, served.group, target.name, why)


def check_version(target: WriteTarget, new: Json, old: Json) -> None:
    """Sees to it that the new object has the version of the old one. Raises ApiError 409 where the client named another
    one, 422 where it has to name one."""
    served = target.served
    metadata = metadata_of(new)
    wanted = metadata.get("resourceVersion") or ""
    current = old["metadata"]["resourceVersion"]
    if wanted == current:
        return
    if wanted and (why := version_fault(wanted)):
        # A client's mistake that nothing wraps on its way out of storage.
        raise plain_failure(why)
    if wanted.strip("0"):
        raise conflict(served.plural, served.group, target.name)
    if not served.strategy.unconditional_update and target.subresource != "scale":
        fault = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(served.plural, served.group, target.name, [fault])
    metadata["resourceVersion"] = current


def prepared_alone(target: WriteTarget, old: Json, new: Json) -> Json | None:
    """The new object where a subresource is written that has its own rules for what may change."""
    if target.subresource == "status":
        return WRITES[target.served.family].status_update(target.served, old, new)
    if (update := target.served.hooks.prepare_subresource.get(target.subresource)) is None:
        return None
    update(new, old, now())
    return new


def prepare(target: WriteTarget, old: Json, new: Json) -> None:
    """Keeps status and generation, and does what the kind's strategy does for a changed object."""
    served, strategy = target.served, target.served.strategy
    if served.has_status or strategy.status is not None:
        copy_field(new, old, "status")
    new["metadata"]["generation"] = old["metadata"].get("generation", 0)
    drop_gated(served, new, old)
    for fill_in in (strategy.prepare_update, served.hooks.prepare_update):
        if fill_in is not None:
            fill_in(new, old)


def raise_generation(target: WriteTarget, old: Json, new: Json) -> None:
    """Counts a change of what users set in ``metadata.generation``."""
    served, metadata = target.served, new["metadata"]
    if WRITES[served.family].changes_generation(target, old, new):
        metadata["generation"] += 1
    if not metadata["generation"]:
        del metadata["generation"]


def keep_fixed(metadata: Json, old: Json) -> None:
    """Keeps of the metadata what no update changes."""
    if not metadata.get("uid"):
        copy_field(metadata, old, "uid")
    copy_field(metadata, old, "creationTimestamp")
    metadata.pop("selfLink", None)
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])


def check(target: WriteTarget, old: Json, new: Json) -> None:
    """Raises ApiError 422 with every error of the object and of the change."""
    served, metadata = target.served, new["metadata"]
    checks = served.status_metadata_checks if target.subresource == "status" else served.metadata_checks
    faults = repeated_update_faults(metadata, old["metadata"], *checks, namespaced=served.namespaced)
    served.form(new)
    # Where a plugin renamed the object, the fault is that of the new name.
    check_whole(target, new, old, [*target.faults, *faults], metadata.get("name") or "")
