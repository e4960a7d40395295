"""What a call can raise, independent of the HTTP library.

A Status of the server becomes the ``ApiError`` subclass of its reason (meta/v1 StatusReason); an answer
without a Status (a proxy's page) becomes the class of its code. ``TransportError`` and ``ConfigError`` are
the other two. Classes carry the reasons' own names, so that users find what the API calls it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apimachinery.client.bodies import AnswerTooLarge, TransportError
from apimachinery.client.config import ConfigError
from apimachinery.client.endpoint import TransportResponse
from apimachinery.meta.errors import ApiError, Cause

__all__ = [
    "AlreadyExists",
    "AnswerTooLarge",
    "ApiError",
    "ApplyConflict",
    "BadRequest",
    "ConfigError",
    "Conflict",
    "FieldConflict",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnreadableAnswer",
    "UnreadableObject",
    "UnsupportedMediaType",
    "error_of",
    "error_of_status",
]


UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON may raise that anybody wrote: it may be no JSON, no UTF-8, or nested deeper than Python goes."""


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the server does not know who asks."""


class Forbidden(ApiError):
    """403: who asks may not do this, or admission refused it."""


class NotFound(ApiError):
    """404: no such object, resource or path."""


class MethodNotAllowed(ApiError):
    """405: the resource has no such verb."""


class NotAcceptable(ApiError):
    """406: no encoding that was asked for can be given."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Conflict(ApiError):
    """409: the object changed since it was read, or a precondition failed."""


class Gone(ApiError):
    """410: the version or continue token is too old (reasons Gone and Expired)."""


class RequestEntityTooLarge(ApiError):
    """413: the body is over the server's limit."""


class UnsupportedMediaType(ApiError):
    """415: the server cannot read this content type here."""


class Invalid(ApiError):
    """422: the object is refused; ``causes`` has one entry for each field."""


class TooManyRequests(ApiError):
    """429: try again after ``retry_after`` seconds."""


class InternalError(ApiError):
    """500."""


class ServiceUnavailable(ApiError):
    """503."""


class Timeout(ApiError):
    """504: the server gave up; the request may have been carried out."""


class ServerTimeout(ApiError):
    """The server could not do it in time; try again after ``retry_after`` seconds."""


class UnreadableAnswer(ApiError):
    """What came is no answer to what was asked: no JSON, nested too deep, no list, or a list that begins anew."""

    def __init__(self, what: str, problem: Exception | str) -> None:
        super().__init__(
            200, "", f"the server's answer cannot be read as {what}: {problem}", has_details=False
        )


class UnreadableObject(ApiError):
    """An object that does not fit its model. ``raw`` is its JSON, ``model`` the name of the class.

    ``get`` and writes raise it. Lists, watches and informers leave the object out, go on, and report it:
    ``Client.on_unreadable``, ``Client.unreadable_count``, ``Page.unreadable``, ``Informer.unreadable``.
    """

    def __init__(self, model: str, raw: bytes, problem: Exception) -> None:
        super().__init__(
            200, "", f"the server's answer cannot be read as {model}: {problem}", has_details=False
        )
        self.model = model
        self.raw = raw
        self.object_version = ""
        try:
            meta = _IDENTITY.decode(raw).metadata
        except UNDECODABLE:
            return
        self.name, self.namespace, self.object_version = meta.name, meta.namespace, meta.resourceVersion

    namespace: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name, as far as the JSON says them."""
        return (self.namespace, self.name)


class _ObjectMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the wire's name


class _Identity(msgspec.Struct):
    metadata: _ObjectMeta = msgspec.field(default_factory=_ObjectMeta)


_IDENTITY: Final = msgspec.json.Decoder(_Identity)


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """One conflict of a server-side apply: ``manager`` owns ``field`` (``.spec.replicas``).

    ``operation`` and ``api_version`` are empty where the server does not say them.
    """

    manager: str
    field: str
    operation: str = ""
    api_version: str = ""
    subresource: str = ""


class ApplyConflict(Conflict):
    """A server-side apply that others' fields stand against; ``force=True`` would take them over."""

    @property
    def conflicts(self) -> tuple[FieldConflict, ...]:
        """The conflicts as data, in the server's order."""
        found: list[FieldConflict] = []
        for cause in self.causes:
            match = _CONFLICT.match(cause.message)
            if cause.reason == "FieldManagerConflict" and match:
                found.append(
                    FieldConflict(
                        manager=match["manager"],
                        field=cause.field,
                        operation="Update" if match["version"] else "Apply",
                        api_version=match["version"] or "",
                        subresource=match["subresource"] or "",
                    )
                )
        return tuple(found)


# conflict with "NAME" [with subresource "X"] [using VERSION] [at TIME]: only Update entries name a version.
_CONFLICT: Final = re.compile(
    r'conflict with "(?P<manager>.*?)"(?: with subresource "(?P<subresource>[^"]*)")?'
    r"(?: using (?P<version>[^ ]+?))?(?: at (?P<time>[^ ]+))?$"
)

_BY_REASON: Final[Mapping[str, type[ApiError]]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "NotAcceptable": NotAcceptable,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "RequestEntityTooLarge": RequestEntityTooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "ServiceUnavailable": ServiceUnavailable,
    "Timeout": Timeout,
    "ServerTimeout": ServerTimeout,
}
_BY_CODE: Final[Mapping[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: RequestEntityTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}


def error_of_status(status: Mapping[str, Any], *, retry_after: int = 0) -> ApiError:
    """The exception for a Status, of the class of its reason, else of its code."""
    given = status.get("details")
    details: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    code = _number(status.get("code"))
    reason = str(status.get("reason") or "")
    causes = tuple(
        Cause(str(c.get("reason") or ""), str(c.get("message") or ""), str(c.get("field") or ""))
        for c in _list(details.get("causes"))
        if isinstance(c, Mapping)
    )
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    if kind is Conflict and any(c.reason == "FieldManagerConflict" for c in causes):
        kind = ApplyConflict
    return kind(
        code=code,
        reason=reason,
        message=str(status.get("message") or ""),
        name=str(details.get("name") or ""),
        group=str(details.get("group") or ""),
        kind=str(details.get("kind") or ""),
        uid=str(details.get("uid") or ""),
        causes=causes,
        retry_after=_number(details.get("retryAfterSeconds")) or retry_after,
    )


def _number(value: object) -> int:
    """A count that a server sent; 0 for anything else, since a Status may come from anybody on the way."""
    return value if isinstance(value, int) and value > 0 else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def error_of(response: TransportResponse) -> ApiError:
    """The exception of an answer with a code of 400 or more."""
    header = response.headers.get("retry-after", "")
    retry_after = int(header) if header.isascii() and header.isdigit() and len(header) < 10 else 0
    try:
        body = msgspec.json.decode(response.body)
    except UNDECODABLE:
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status":
        return error_of_status(
            {**body, "code": _number(body.get("code")) or response.code}, retry_after=retry_after
        )
    text = response.body[:1024].decode("utf-8", "replace").strip()
    kind = _BY_CODE.get(response.code, ApiError)
    return kind(
        code=response.code,
        reason="",
        message=text or f"the server answered {response.code}",
        retry_after=retry_after,
        has_details=False,
    )
