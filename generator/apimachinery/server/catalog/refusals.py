"""The words in which kube-apiserver refuses an object as a whole: of another kind, of another version, not readable."""

from __future__ import annotations

from apimachinery.meta.errors import ApiError, bad_request
from apimachinery.meta.printing import go_quote

SHOWN_BYTES = 30
UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})
"""Kinds of meta/v1 that every group and version has, one that is not served included."""
OF_EVERY_VERSION = frozenset(
    {
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "UpdateOptions",
        "WatchEvent",
    }
)
"""Kinds of meta/v1 that every built-in group and version has."""


def wrong_version(api_version: str, wanted: str) -> ApiError:
    """400: an object of another version than the path's."""
    return bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({wanted})"
    )


def not_registered(kind: str, api_version: str, scheme: str) -> str:
    """The text about an unknown kind; ``scheme`` is the name that kube-apiserver gives its list of known kinds."""
    wanted = f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)}"
    return f"{wanted} in scheme {go_quote(scheme)}"


def internal_package(group: str) -> str:
    """The Go package of a group's internal types, which messages name."""
    return {"": "core", "events.k8s.io": "core"}.get(group, group.partition(".")[0])


def cannot_handle(kind: str, version: str, wanted: str, fault: str) -> ApiError:
    """400: an object that is recognized and cannot be read as what is wanted."""
    return bad_request(f"{kind} in version {go_quote(version)} cannot be handled as a {wanted}: {fault}")


def unrecognized(kind: str, fault: str, data: bytes) -> ApiError:
    """400: a body that does not say what it is, or is nothing at all; shows its first bytes."""
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {fault} ({_summary(data)})"
    )


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    shown, more = data[:SHOWN_BYTES], " ..." if len(data) > SHOWN_BYTES else ""
    return (shown.decode("utf-8", "replace") if data.startswith(b"{") else shown.hex()) + more
