"""Every rule that kube-apiserver holds a CustomResourceDefinition to, offline and with the same causes."""

from __future__ import annotations

from typing import Any

from apimachinery.meta.field_errors import FieldError


def check_crd(crd: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
    """The faults of a CRD (defaulted, with its status prepared), in kube-apiserver's order.

    With ``old``, the stored CRD, the rules of an update: immutable fields, and no rule newly held against
    what the stored one breaks already. CEL rules are included.
    """
    raise NotImplementedError


def check_crd_status(crd: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """The faults of an update of the status subresource."""
    raise NotImplementedError
