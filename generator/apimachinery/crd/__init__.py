"""CustomResourceDefinitions: their defaults, every rule they must keep, and the acceptance of their names.

Objects are plain JSON of ``apiextensions.k8s.io/v1``, decoded and pruned (``schema.compile_builtin``).
"""

from apimachinery.crd.acceptance import (
    Acceptance,
    HeldNames,
    accept_names,
    decide_names,
    has_bad_bundle,
    structure_condition,
)
from apimachinery.crd.check import check_crd, check_crd_status
from apimachinery.crd.defaults import default_crd, prepare_crd_for_create, prepare_crd_for_update

__all__ = [
    "Acceptance",
    "HeldNames",
    "accept_names",
    "check_crd",
    "check_crd_status",
    "decide_names",
    "default_crd",
    "has_bad_bundle",
    "prepare_crd_for_create",
    "prepare_crd_for_update",
    "structure_condition",
]
