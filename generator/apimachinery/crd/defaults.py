"""The defaults of a CustomResourceDefinition, and what its creation fills in."""

from __future__ import annotations

from typing import Any


def default_crd(crd: dict[str, Any]) -> None:
    """Fill in names.singular, names.listKind, conversion.strategy and the webhook's port, in place."""
    raise NotImplementedError


def prepare_crd_for_create(crd: dict[str, Any]) -> None:
    """Reset the status of a CRD to be created.

    No conditions, no accepted names, the storage version stored.
    """
    raise NotImplementedError
