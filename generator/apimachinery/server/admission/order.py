"""Admission plugins one after another."""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.server.admission.interface import Admission, Operation


class InOrder:
    """All ``admit`` in order, then all ``validate``; the first refusal counts."""

    def __init__(self, plugins: Sequence[Admission]) -> None:
        self._plugins = tuple(plugins)

    def admit(self, operation: Operation) -> None:
        """See Admission."""
        for plugin in self._plugins:
            plugin.admit(operation)

    def validate(self, operation: Operation) -> None:
        """See Admission."""
        for plugin in self._plugins:
            plugin.validate(operation)
