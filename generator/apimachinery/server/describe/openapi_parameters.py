"""Parameters of operations, as both versions of OpenAPI describe them: name, place, type and what they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Parameter:
    """One parameter: ``place`` is ``query`` or ``path``; what is in a path is required."""

    name: str
    place: str
    type: str
    description: str


def _query(type_: str, **described: str) -> dict[str, Parameter]:
    return {name: Parameter(name, "query", type_, text) for name, text in described.items()}


_LISTED = {
    **_query(
        "boolean",
        allowWatchBookmarks="Ask a watch for BOOKMARK events, which say how far it has come. Lists ignore it.",
        sendInitialEvents="Begin a watch with an ADDED event for every object there is, and a bookmark after them. "
        "Needs `resourceVersionMatch=NotOlderThan`.",
        watch="Stream the changes from `resourceVersion` on instead of listing.",
    ),
    **_query(
        "integer",
        limit="The most objects one answer holds. What is left is read with the `continue` of its metadata.",
        timeoutSeconds="How long the call lasts at most, in seconds.",
    ),
    **_query(
        "string",
        **{"continue": "The token of the page before. The other parameters must be those of that page."},
        fieldSelector="Only objects with these values of fields, such as `metadata.name=x`. Everything by default.",
        labelSelector="Only objects with these labels, such as `app=x,tier in (a,b)`. Everything by default.",
        resourceVersion="The version that a list, or what a watch begins with, is read at.",
        resourceVersionMatch="How a list takes `resourceVersion`: `Exact` or `NotOlderThan`.",
        shardSelector="Only the objects of a shard, told by a hash of their uid. Behind a feature gate.",
    ),
}
_DELETED = {
    **_query(
        "boolean",
        ignoreStoreReadErrorWithClusterBreakingPotential="Delete also what can not be read any more from storage, "
        "without looking at finalizers or preconditions. Behind a feature gate.",
        orphanDependents="Old form of `propagationPolicy`: true keeps the dependents.",
    ),
    **_query(
        "integer",
        gracePeriodSeconds="How many seconds the object may take to end; 0 means at once. By default that of its kind.",
    ),
    **_query(
        "string",
        propagationPolicy="What happens to dependents: `Orphan` keeps them, `Background` and `Foreground` delete them "
        "after and before the object.",
    ),
}
_DRY_RUN = _query("string", dryRun="`All` does everything but write.")
_WRITTEN = {
    **_DRY_RUN,
    **_query(
        "string",
        fieldManager="Who writes, as `metadata.managedFields` names it: up to 128 printable characters.",
        fieldValidation="What happens to unknown and duplicate fields: `Ignore` drops them, `Warn` drops them and says "
        "so (the default), `Strict` refuses the request.",
    ),
}
_FORCED = _query("boolean", force="An apply takes over fields that others own. Not for other patches.")
_VERSION = {"resourceVersion": _LISTED["resourceVersion"]}
_COLLECTION = {name: p for name, p in _LISTED.items() if name not in ("allowWatchBookmarks", "watch")}

BUILTIN_PARAMETERS = {
    "list": _LISTED,
    "create": _WRITTEN,
    "update": _WRITTEN,
    "patch": {**_WRITTEN, **_FORCED},
    "delete": {**_DELETED, **_DRY_RUN},
    "deletecollection": {**_COLLECTION, **_DELETED, **_DRY_RUN},
}
CUSTOM_PARAMETERS = {**BUILTIN_PARAMETERS, "get": _VERSION, "deletecollection": _LISTED}

_STREAMS = {
    **_query(
        "boolean",
        stderr="Whether standard error is sent.",
        stdin="Whether standard input is read.",
        stdout="Whether standard output is sent.",
        tty="Whether a terminal is made for the command.",
    ),
    **_query("string", container="The container, where the pod has several."),
}
_PROXIED = _query("string", path="The path of the request to what is proxied.")
_OF_SUBRESOURCES = {
    "attach": _STREAMS,
    "exec": {**_STREAMS, **_query("string", command="The command and its arguments, each one `command`.")},
    "portforward": _query("integer", ports="The ports to forward."),
    "proxy": _PROXIED,
    "log": {
        **_query(
            "boolean",
            follow="Go on with the log as it is written.",
            insecureSkipTLSVerifyBackend="Do not verify the certificate of the node.",
            previous="The log of the container that ran before this one.",
            timestamps="Begin every line with its time.",
        ),
        **_query(
            "integer",
            limitBytes="The most bytes to send.",
            sinceSeconds="Only lines of the last so many seconds.",
            tailLines="Only so many lines from the end.",
        ),
        **_query(
            "string",
            container="The container, where the pod has several.",
            stream="`All`, `Stdout` or `Stderr`.",
        ),
    },
}
_PRETTY = _query("string", pretty="`true` indents the answer.")["pretty"]
_NAMESPACE = Parameter("namespace", "path", "string", "The namespace.")
_REST = Parameter("path", "path", "string", "The path of the request to what is proxied.")


def of_verb(
    verb: str, subresource: str = "", of_verbs: Mapping[str, Mapping[str, Parameter]] = BUILTIN_PARAMETERS
) -> list[Parameter]:
    """The parameters in the query of an operation; ``connect`` and ``log`` have those of their subresource."""
    found = _OF_SUBRESOURCES.get(subresource) or of_verbs.get(verb, {})
    return list(found.values()) if verb == "connect" else [*found.values(), _PRETTY]


def of_path(path: str, kind: str) -> Iterable[Parameter]:
    """The parameters in a path; ``kind`` is that of what is read or written there."""
    if "{name}" in path:
        yield Parameter("name", "path", "string", f"name of the {kind}")
    if "{namespace}" in path:
        yield _NAMESPACE
    if "{path}" in path:
        yield _REST
