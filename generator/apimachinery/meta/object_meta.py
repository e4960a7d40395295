"""Rules for the metadata of every object.

Names, labels, annotations, finalizers, owners; what may not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.meta.field_errors import FieldError

NameRule = Callable[[str, bool], list[str]]
"""Says what is wrong with a name; the flag tells a prefix (generateName), to which a suffix will be added."""


def validate_object_meta(
    meta: dict[str, Any], *, namespaced: bool, name_rule: NameRule | None = None, field: str = "metadata"
) -> list[FieldError]:
    """The faults of ``metadata`` on create, in kube-apiserver's order.

    ``name_rule`` defaults to a DNS subdomain.
    """
    raise NotImplementedError


def validate_object_meta_update(
    meta: dict[str, Any], old: dict[str, Any], *, field: str = "metadata"
) -> list[FieldError]:
    """The faults of ``metadata`` on update: immutable fields, then what create would refuse in the others."""
    raise NotImplementedError
