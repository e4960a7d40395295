"""DefaultTolerationSeconds: pods stay a while (five minutes) on nodes that are not ready or out of reach, unless they
say otherwise."""

from __future__ import annotations

from apimachinery.kinds.defaulters import tolerate_unready_nodes
from apimachinery.server.admission.interface import Operation, Plugin


class DefaultTolerationSeconds(Plugin):
    """Adds tolerations to pods."""

    resources = frozenset({("", "pods")})

    def __init__(self, seconds: tuple[int, int]) -> None:
        """How long on nodes not ready, and out of reach."""
        self._seconds = seconds

    def admit(self, operation: Operation) -> None:
        """Adds the tolerations; an update that leaves them out gets them again."""
        if operation.obj is not None and not operation.target.subresource:
            tolerate_unready_nodes(operation.obj, self._seconds)
