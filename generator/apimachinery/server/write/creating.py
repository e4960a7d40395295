"""The steps of a create, each on a plain object."""

from __future__ import annotations

import secrets
from copy import deepcopy

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.object_meta import validate_object_meta
from apimachinery.server.request.target import WriteTarget, match_namespace, metadata_of
from apimachinery.server.write.object_changes import drop_gated, drop_repeated_owners, name_requester
from apimachinery.server.write.rules import check_whole

# Without vowels and what looks like another letter: no word comes of it.
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM_FIELDS = ("creationTimestamp", "selfLink", "uid")
_DELETION_FIELDS = ("deletionGracePeriodSeconds", "deletionTimestamp")


def own(target: WriteTarget, obj: Json, owned: bool) -> Json:
    """Drops what only the server may set, and notes the fields that the creator owns; the object with them."""
    metadata = metadata_of(obj)
    # Only a POST, whose path names nothing, is kept from making an object that is deleted already.
    for key in _SYSTEM_FIELDS if target.name else (*_SYSTEM_FIELDS, *_DELETION_FIELDS):
        metadata.pop(key, None)
    if not owned:
        tracked = target.served.ownership(target.subresource).update(
            None, obj, target.options.manager, now=now()
        )
        # Owned fields are noted before namespace, name and uid are set, which nobody owns.
        metadata["managedFields"] = tracked["metadata"].get("managedFields")
        obj = tracked
    if not metadata_of(obj).get("managedFields"):
        metadata_of(obj).pop("managedFields", None)
    return obj


def place(target: WriteTarget, obj: Json) -> None:
    """Sets the namespace of the path. Raises ApiError 400 for another one."""
    if target.served.namespaced:
        match_namespace(metadata_of(obj), target.namespace)
    else:
        metadata_of(obj).pop("namespace", None)


def name(obj: Json) -> str:
    """Generates a name where that is due; its prefix then, else ``""``."""
    metadata = obj["metadata"]
    prefix: str = metadata.get("generateName") or ""
    if not prefix or metadata.get("name"):
        return ""
    metadata["name"] = generated_name(prefix)
    return prefix


def identify(target: WriteTarget, obj: Json) -> None:
    """Gives the object its uid and its time."""
    metadata = metadata_of(obj)
    drop_repeated_owners(metadata, target.warnings)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = now()


def prepare(target: WriteTarget, obj: Json) -> None:
    """Sets what the kind's strategy gives a new object: its first status and generation, and what it fills in."""
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
    for fill_in in (None if target.subresource else strategy.prepare_create, served.hooks.prepare_create):
        if fill_in is not None:
            fill_in(obj)


def check(target: WriteTarget, obj: Json, name: str) -> None:
    """Raises ApiError 422 with every error of the object."""
    served, metadata = target.served, metadata_of(obj)
    faults: list[FieldError] = []
    if served.hooks.gives_labels is not None and served.hooks.gives_labels(obj):
        metadata = {key: value for key, value in metadata.items() if key != "labels"}
    if not served.hooks.validates_metadata:
        faults = validate_object_meta(
            metadata,
            namespaced=served.namespaced,
            name_rule=served.name_rule,
            plain_finalizers=served.metadata_checks.plain_finalizers,
        )
    if faults and not served.metadata_checks.any:
        # Errors in metadata alone come after those of the kind.
        # check_whole raises here where the kind has errors, so metadata's are shown only without others.
        check_whole(target, obj, None, [], name)
    check_whole(target, obj, None, [*target.faults, *faults], name)


def generated_name(prefix: str) -> str:
    """A name after ``generateName``: five random letters, 63 bytes at most (58 of the prefix)."""
    return prefix[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))


def new_uid() -> str:
    """A random UUID (version 4)."""
    digits = secrets.token_hex(16)
    # RFC 9562: the version stands before the third group, the variant in the two highest bits of the fourth.
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
