"""Faults of an object, one per field: the data behind ``details.causes`` of an Invalid answer.

Theory. A fault is (reason, field path, bad value, detail). kube-apiserver words it from these four alone,
so every validator returns ``FieldError`` and nobody else formats one. The field path reads
``spec.containers[0].ports[1].name`` with map keys in brackets: ``metadata.annotations[a.b/c]``; ``ROOT``
names the object as a whole. Values are shown as JSON (strings as Go quotes them); what must not show one
carries ``NO_VALUE``. Source of the reasons: metav1 CauseType, and the words of k8s.io/apimachinery's field
errors as recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from apimachinery.meta.errors import ApiError, Cause
from apimachinery.meta.printing import go_value

ROOT = "<nil>"


class Reason(Enum):
    """Why a field is refused; the value is the ``reason`` of a cause on the wire."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


class NoValue(Enum):
    """Marks a fault that shows no value."""

    NO_VALUE = "no value"


NO_VALUE = NoValue.NO_VALUE

_WORDS = {
    Reason.REQUIRED: "Required value",
    Reason.INVALID: "Invalid value",
    Reason.NOT_SUPPORTED: "Unsupported value",
    Reason.DUPLICATE: "Duplicate value",
    Reason.NOT_FOUND: "Not found",
    Reason.FORBIDDEN: "Forbidden",
    Reason.TOO_LONG: "Too long",
    Reason.TOO_MANY: "Too many",
    Reason.TYPE_INVALID: "Invalid value",
    Reason.INTERNAL: "Internal error",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault. ``field`` is the path as shown; ``bad_value`` any JSON value, or ``NO_VALUE``. ``compared`` is the
    name of a Go struct and two of these, whose differences end the message (``apimachinery.schema.go_form``)."""

    reason: Reason
    field: str
    detail: str = ""
    bad_value: Any = NO_VALUE
    compared: tuple[str, Any, Any] | None = None

    @property
    def body(self) -> str:
        """The fault in words without its field: the ``message`` of a cause."""
        text = _WORDS[self.reason]
        if self.bad_value is not NO_VALUE:
            text = f"{text}: {go_value(self.bad_value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(field: str, detail: str = "") -> FieldError:
    """A value that must be there is not."""
    return FieldError(Reason.REQUIRED, field, detail)


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """A value breaks a rule."""
    return FieldError(Reason.INVALID, field, detail, value)


def forbidden(field: str, detail: str) -> FieldError:
    """A field must not be set here."""
    return FieldError(Reason.FORBIDDEN, field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """A value stands twice where it may be once."""
    return FieldError(Reason.DUPLICATE, field, "", value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value is none of those that are allowed; they are named in the order given."""
    allowed = ", ".join(go_value(item) for item in supported)
    return FieldError(Reason.NOT_SUPPORTED, field, f"supported values: {allowed}" if allowed else "", value)


def too_long(field: str, limit: int) -> FieldError:
    """A string is longer than ``limit``; a negative limit is not named."""
    detail = f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    return FieldError(Reason.TOO_LONG, field, detail)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """A list or map has more than ``limit`` entries."""
    if limit < 0:
        return FieldError(Reason.TOO_MANY, field, "has too many items", count)
    items = "item" if limit == 1 else "items"
    return FieldError(Reason.TOO_MANY, field, f"must have at most {limit} {items}", count)


def aggregate(texts: Iterable[str]) -> str:
    """Join texts as Kubernetes does errors: one is alone, several in brackets, equal ones once."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def invalid(kind: str, group: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """The 422 for these faults.

    ``Kind.group "name" is invalid: spec.x: Required value``, with a cause for each.

    A fault that occurs twice in ``errors`` gives two causes but is said once, as kube-apiserver has it.
    """
    faults = list(errors)
    message = f"{kind}.{group}" if group else kind
    message = f"{message} {go_value(name)} is invalid"
    if faults:
        message = f"{message}: {aggregate(map(str, faults))}"
    return ApiError(
        code=422,
        reason="Invalid",
        message=message,
        name=name,
        group=group,
        kind=kind,
        causes=tuple(Cause(fault.reason.value, fault.body, fault.field) for fault in faults),
    )
