"""What a webhook's function is asked, and how its verdict becomes the response to a review. No I/O."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from apimachinery.client.calls import UNSTRUCTURED, Codec
from apimachinery.client.errors import UnreadableObject
from apimachinery.meta.field_errors import FieldError, invalid
from apimachinery.wire.json import decode, encode

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
LONGEST_WARNING: Final = 256
_log = logging.getLogger("kubewright.webhook")
_log.addHandler(logging.NullHandler())  # programs say where logs go


class Denied(Exception):
    """Raise it in a webhook's function to refuse a request: the user reads the message."""

    def __init__(self, message: str, *, code: int = 403, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Requester:
    """Who sent a request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, list[str]] = field(default_factory=dict)


class Review(Generic[T]):
    """A request that a webhook is asked about. ``old`` is what is stored, of updates and deletions; ``client`` is the
    program's. ``request`` is all of the AdmissionRequest, as JSON."""

    def __init__(self, request: Json, codec: Codec[T], client: Any = None) -> None:
        user = request.get("userInfo") or {}
        self.request = request
        self.client = client
        self.operation: Operation = request.get("operation") or "CREATE"
        self.dry_run = bool(request.get("dryRun"))
        self.namespace = str(request.get("namespace") or "")
        self.name = str(request.get("name") or "")
        self.subresource = str(request.get("subResource") or "")
        self.user = Requester(
            str(user.get("username") or ""),
            str(user.get("uid") or ""),
            tuple(user.get("groups") or ()),
            user.get("extra") or {},
        )
        self.old: T | None = _read(codec, request.get("oldObject"))
        self.warnings: list[str] = []
        self.audit_annotations: dict[str, str] = {}

    def warn(self, text: str) -> None:
        """Shows the user a warning, whatever becomes of the request."""
        self.warnings.append(text[:LONGEST_WARNING])


def respond(review: Review[T], obj: T, codec: Codec[T], verdict: object, *, mutating: bool) -> Json:
    """The response: ``verdict`` is what the function gave for ``obj``, which it may have changed in place."""
    response: Json = {"allowed": True}
    if isinstance(verdict, str):
        response = denial(Denied(verdict))
    elif verdict is not None and not mutating:
        response = _checked(review, cast("Iterable[FieldError]", verdict))
    elif mutating and review.request.get("object") is not None:
        made = cast("T", obj if verdict is None else verdict)
        changes = list(difference(review.request["object"], decode(codec.encode(made)), ""))
        if changes:
            patch = base64.b64encode(encode(changes)).decode()
            response = {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    if review.warnings:
        response["warnings"] = review.warnings
    if review.audit_annotations:
        response["auditAnnotations"] = review.audit_annotations
    return response


def denial(refusal: Denied) -> Json:
    """The response that refuses."""
    status: Json = {"message": str(refusal), "code": refusal.code}
    if refusal.reason:
        status["reason"] = refusal.reason
    return {"allowed": False, "status": status}


def _checked(review: Review[Any], found: Iterable[FieldError]) -> Json:
    errors = list(found)
    if not errors:
        return {"allowed": True}
    kind = review.request.get("kind") or {}
    status = invalid(kind.get("kind") or "", kind.get("group") or "", review.name, errors).status()
    return {
        "allowed": False,
        "status": {key: status[key] for key in ("message", "reason", "details", "code")},
    }


def subject(request: Json, codec: Codec[T]) -> T:
    """The object that a request is about: of a deletion, what is stored. Raises ``Denied`` where it cannot be read."""
    raw = request.get("object")
    found = _read(codec, request.get("oldObject") if raw is None else raw)
    return cast("T", {}) if found is None else found


def _read(codec: Codec[T], value: Any) -> T | None:
    if value is None:
        return None
    try:
        return codec.decode(msgspec.json.encode(value))
    except UnreadableObject as error:
        _log.warning("an object is refused that its class cannot read: %s", error)
        raise Denied(f"this webhook cannot read the object: {error}", code=422, reason="Invalid") from None


def difference(old: Any, new: Any, path: str) -> Iterator[Json]:
    """The operations of a JSON patch from one value to another."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
        for key, value in new.items():
            if key not in old:
                yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": value}
            else:
                yield from difference(old[key], value, f"{path}/{_escaped(key)}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from difference(before, after, f"{path}/{number}")
    elif old != new or type(old) is not type(new):
        yield {"op": "replace", "path": path, "value": new}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


JSON_CODEC: Final = UNSTRUCTURED
"""Of functions that take JSON."""
