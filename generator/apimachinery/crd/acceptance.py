"""Which names of a CustomResourceDefinition are accepted, and the conditions that say so.

Theory. Within one group, plural, singular and short names share one space, kind and listKind another. A CRD
is established once all its names were accepted; a name lost later keeps it established with its old names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Acceptance:
    """``names`` for ``status.acceptedNames``, and the conditions to set (type, status, reason, message)."""

    names: dict[str, Any]
    conditions: tuple[dict[str, str], ...]


def accept_names(crd: dict[str, Any], others: Iterable[dict[str, Any]]) -> Acceptance:
    """Compute what the naming controller decides for ``crd`` among the ``others`` (itself may be among them).

    Conditions come as NamesAccepted, Established, NonStructuralSchema and
    KubernetesAPIApprovalPolicyConformant, the last two only where they apply. Setting
    ``lastTransitionTime`` is the caller's.
    """
    raise NotImplementedError
