"""An operation as CEL expressions and webhooks see it: its objects at the version that a rule matched, and the
attributes of an AdmissionRequest."""

from __future__ import annotations

from typing import Any

from apimachinery.access.cel_authorizer import Questions
from apimachinery.access.control import Access
from apimachinery.cel.libraries.authorizer import Question, ResourceCheck
from apimachinery.cel.values.values import Timestamp
from apimachinery.http.messages import User
from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.interface import Operation
from apimachinery.server.catalog.served import Served
from apimachinery.wire.json import decode, encode

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}


def request_values(operation: Operation, served: Served, obj: Json | None, access: Access) -> dict[str, Any]:
    """The variables that all expressions have, of an operation whose object is now ``obj``."""
    user = operation.user
    assert user is not None, "policies are for requests"
    # An authorizer that must ask somebody else has no answer here, which counts as a refusal.
    authorizer = Questions(access, user).authorizer
    return {
        "object": at_version(operation, served, obj),
        "oldObject": at_version(operation, served, operation.old),
        "request": request_of(operation, user, served),
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(authorizer.ask, _question(operation)),
        "namespaceObject": None,
    }


def at_version(operation: Operation, served: Served, obj: Json | None) -> Json | None:
    """An object of an operation at the version that a rule matched, with its kind and apiVersion."""
    if obj is None:
        return None
    if operation.target.shown_as is not None:
        return operation.target.shown_as(obj)
    if operation.verb == "CONNECT":
        return obj  # It is of a kind of its own.
    own = operation.target.served
    shown = {**own.family.type_meta(own.kind, own.api_version), **obj}
    if served is own:
        return shown
    copied: Json = decode(encode(shown))
    return served.in_form(
        own.family.in_order(own.to_storage(copied) if own.to_storage is not None else copied)
    )


def from_version(operation: Operation, served: Served, obj: Json) -> Json:
    """The way back: an object at the version that a rule matched at the version of the request; may change ``obj``."""
    own = operation.target.served
    if served is own:
        return obj
    return own.in_form(own.family.in_order(served.to_storage(obj) if served.to_storage is not None else obj))


def request_of(operation: Operation, user: User, served: Served) -> Json:
    """The attributes of an AdmissionRequest; what is empty is left out where its Go type leaves it out."""
    target = operation.target
    own = target.served
    shown: Json = {
        "kind": _kind(served, target.subresource),
        "resource": {"group": served.group, "version": served.version, "resource": served.plural},
        "requestKind": _kind(own, target.subresource),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "operation": operation.verb,
        "userInfo": user.info(),
        "dryRun": target.options.dry_run,
    }
    if target.subresource:
        shown["subResource"] = shown["requestSubResource"] = target.subresource
    if operation.name:
        shown["name"] = operation.name
    # A request for a Namespace counts as one within it.
    is_namespace = own.plural == "namespaces" and not own.group
    if namespace := target.namespace or (operation.name if is_namespace else ""):
        shown["namespace"] = namespace
    if (options := _options(operation)) is not None:
        shown["options"] = options
    return shown


def _options(operation: Operation) -> Json | None:
    if operation.deletion is not None:
        shown = operation.deletion.shown()
        if operation.target.served.hooks.terminate is not None and "preconditions" not in shown:
            # Such an object is ended by a later request, which must not end another one of the name.
            shown["preconditions"] = {"uid": ((operation.old or {}).get("metadata") or {}).get("uid")}
        return shown
    kind = _OPTIONS.get(operation.verb)
    return None if kind is None else operation.target.options.shown(kind)


def _kind(served: Served, subresource: str) -> Json:
    sub = served.subresources.get(subresource)
    if sub is not None and sub.kind:
        return {"group": sub.group, "version": sub.version, "kind": sub.kind}
    return {"group": served.group, "version": served.version, "kind": served.kind}


def _question(operation: Operation) -> Question:
    target = operation.target
    served = target.served
    return Question(
        group=served.group,
        resource=served.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=operation.name,
    )


_METADATA = ("name", "generateName", "labels", "annotations", "generation", "resourceVersion", "finalizers")


def shown_namespace(obj: Json | None) -> Json | None:
    """A Namespace as expressions see it: part of its metadata, spec and status."""
    if obj is None:
        return None
    metadata = obj.get("metadata") or {}
    shown: Json = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    if metadata.get("uid"):
        shown["UID"] = metadata["uid"]
    for key in ("creationTimestamp", "deletionTimestamp"):
        if metadata.get(key):
            shown[key] = Timestamp.parse(metadata[key])
    return {"metadata": shown, "spec": obj.get("spec") or {}, "status": obj.get("status") or {}}
