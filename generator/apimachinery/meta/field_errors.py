"""Faults of an object, one per field: the data behind ``details.causes`` of an Invalid answer.

Theory. A fault is (reason, field path, bad value, detail). kube-apiserver words it from these four alone,
so every validator returns ``FieldError`` and nobody else formats one. The field path reads
``spec.containers[0].ports[1].name`` with map keys in brackets: ``metadata.annotations[a.b/c]``. Scalars are
shown in the text as JSON shows them; of objects and lists only the detail is shown.
Source of the reasons: metav1 CauseType, and the words of k8s.io/apimachinery's field errors as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


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


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault. ``field`` is the path as shown; ``bad_value`` any JSON value, or ``NO_VALUE``."""

    reason: Reason
    field: str
    detail: str = ""
    bad_value: Any = NO_VALUE
