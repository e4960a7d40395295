"""DefaultTolerationSeconds: pods stay five minutes on nodes that are not ready or out of reach, unless they say
otherwise."""

from __future__ import annotations

from apimachinery.rules.defaulters import tolerate_unready_nodes
from apimachinery.server.admission.interface import Operation


class DefaultTolerationSeconds:
    """Adds tolerations to pods."""

    resources = frozenset({("", "pods")})

    def admit(self, operation: Operation) -> None:
        """See Admission; an update that leaves them out gets them again."""
        if operation.obj is not None and not operation.target.subresource:
            tolerate_unready_nodes(operation.obj)

    def validate(self, operation: Operation) -> None:
        """See Admission."""
