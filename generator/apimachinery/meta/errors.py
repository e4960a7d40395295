"""A failed request as an exception: ``ApiError`` with code, reason and causes, and functions that make the usual ones.

The server raises it and writes ``status()``. The client has exceptions of its own by reason (``client.errors``).
Reasons, codes and the shape of ``details`` follow meta/v1 Status.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apimachinery.meta.printing import go_quote


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of ``details.causes``; ``reason`` and ``field`` may be empty."""

    reason: str
    message: str
    field: str = ""

    def shown(self) -> dict[str, str]:
        """The cause as JSON, without what is empty."""
        entry = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in entry.items() if value}


@dataclass(eq=False)
class ApiError(Exception):
    """A failed request: HTTP ``code``, Status ``reason`` (may be empty) and ``message``, and the details.

    ``retry_after`` is in whole seconds, 0 for none. ``continue_token`` lets an expired list go on.
    """

    code: int
    reason: str
    message: str
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = field(default=())
    retry_after: int = 0
    has_details: bool = True
    continue_token: str = ""

    def __str__(self) -> str:
        return self.message

    def status(self) -> dict[str, Any]:
        """The Status object of this failure, with keys in kube-apiserver's order."""
        answer: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": _as_text(self.message),
        }
        if self.reason:
            answer["reason"] = self.reason
        if self.has_details:
            details: dict[str, Any] = {}
            for key in ("name", "group", "kind", "uid"):
                if value := getattr(self, key):
                    details[key] = value
            if self.causes:
                details["causes"] = [cause.shown() for cause in self.causes]
            if self.retry_after:
                details["retryAfterSeconds"] = self.retry_after
            answer["details"] = details
        answer["code"] = self.code
        return answer


def _as_text(message: str) -> str:
    """A message without surrogates, which stand for bytes that are not UTF-8 and cannot be sent."""
    if message.isascii():
        return message
    return message.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def qualified(resource: str, group: str) -> str:
    """A resource or kind as messages name it: ``deployments.apps``, ``pods``."""
    return f"{resource}.{group}" if group else resource


def unreadable(why: str) -> ApiError:
    """500 for an object that is stored and cannot be read."""
    return ApiError(500, "InternalError", f"Internal error occurred: {why}", causes=(Cause("", why, ""),))


def not_found(resource: str, group: str, name: str) -> ApiError:
    """404: the object is not there."""
    message = f"{qualified(resource, group)} {go_quote(name)} not found"
    return ApiError(404, "NotFound", message, name=name, group=group, kind=resource)


def no_such_resource() -> ApiError:
    """404: a path of a known group that names no resource of it."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: str, group: str, name: str, *, deleting: bool = False) -> ApiError:
    """409: the name is taken; ``deleting`` by an object that is being deleted."""
    prefix = "object is being deleted: " if deleting else ""
    message = f"{prefix}{qualified(resource, group)} {go_quote(name)} already exists"
    return ApiError(409, "AlreadyExists", message, name=name, group=group, kind=resource)


def conflict(resource: str, group: str, name: str, why: str = "") -> ApiError:
    """409: the write does not fit the object as it is now; without ``why`` because somebody else wrote it."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {go_quote(name)}: {why}"
    return ApiError(409, "Conflict", message, name=name, group=group, kind=resource)


def forbidden(resource: str, group: str, name: str, why: str, causes: tuple[Cause, ...] = ()) -> ApiError:
    """403: admission or authorization refuses."""
    subject = f"{qualified(resource, group)} {go_quote(name)}" if name else qualified(resource, group)
    message = f"{subject} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, name=name, group=group, kind=resource, causes=causes)


def bad_request(message: str) -> ApiError:
    """400: the request cannot be read."""
    return ApiError(400, "BadRequest", message, has_details=False)


def method_not_allowed() -> ApiError:
    """405: no such verb on this path."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def verb_not_supported(verb: str, resource: str, group: str) -> ApiError:
    """405 of custom resources, which know the verb but not on this path."""
    message = f'{verb} is not supported on resources of kind "{qualified(resource, group)}"'
    return ApiError(405, "MethodNotAllowed", message, group=group, kind=resource)


def not_acceptable(message: str, *, has_details: bool = False) -> ApiError:
    """406: none of the asked media types is served."""
    return ApiError(406, "NotAcceptable", message, has_details=has_details)


def unsupported_media_type(message: str, *, has_details: bool = False) -> ApiError:
    """415: the body's media type is not read."""
    return ApiError(415, "UnsupportedMediaType", message, has_details=has_details)


def too_large(message: str) -> ApiError:
    """413: the body, or what it asks for, is above a limit."""
    return ApiError(413, "RequestEntityTooLarge", message, has_details=False)


def plain_failure(message: str) -> ApiError:
    """500 without a reason: what kube-apiserver answers where an error of the client's reached it unwrapped.

    Clients live with these codes, so they are kept; each use says which rule it follows.
    """
    return ApiError(500, "", message, has_details=False)


def undeterminable_name(name: str) -> ApiError:
    """400 for an object without a name, where the path has one."""
    return bad_request(
        f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )


def internal(message: str) -> ApiError:
    """500 with reason InternalError."""
    text = f"Internal error occurred: {message}"
    return ApiError(500, "InternalError", text, causes=(Cause("", message),))
