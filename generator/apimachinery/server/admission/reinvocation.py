"""Who may change an object once more after others have changed it (``reinvocationPolicy: IfNeeded``).

All of admission that may change an object goes at most two rounds. In the second only those are called again that said
so, were called in the first, and after whom somebody changed the object: a later one of their own kind, or, between the
rounds, anybody. A policy, unlike a webhook, is also called again for its own change. One object of this class remembers
that for one plugin and one operation.
"""

from __future__ import annotations

from collections.abc import Hashable

from apimachinery.server.admission.interface import Operation
from apimachinery.wire.json import encode


class Reinvocation:
    """What a plugin remembers of an operation between two rounds."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._willing: set[Hashable] = set()
        self._due: set[Hashable] = set()
        self._left = b""

    @classmethod
    def of(cls, operation: Operation, plugin: str) -> Reinvocation:
        """The plugin's own; in the second round the one of the first."""
        found = operation.memory.get(plugin)
        if not isinstance(found, cls):
            found = operation.memory[plugin] = cls(operation)
        elif operation.second_round and found._left != encode(operation.obj):
            found._require()
        return found

    def may_call(self, key: Hashable) -> bool:
        """Whether it is somebody's turn."""
        return not self._operation.second_round or key in self._due

    def called(self, key: Hashable, *, changed: bool, willing: bool, for_itself: bool = False) -> None:
        """Notes a call; ``willing`` where it may be called again, ``for_itself`` where its own change counts too."""
        if willing and for_itself:
            self._willing.add(key)
        if changed:
            self._require()
            self._operation.wants_second_round = True
        if willing:
            self._willing.add(key)

    def leave(self) -> None:
        """Ends a plugin's round."""
        self._left = encode(self._operation.obj)

    def _require(self) -> None:
        self._due |= self._willing
        self._willing.clear()
