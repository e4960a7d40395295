"""What is out of order of simulated nodes, by name: nodes that died, zones that are cut off, images nobody can pull.

A test sets them from its own thread; the nodes see it at once.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable

from apimachinery.server.node.shapes import NodeShape


class NodeFaults:
    """The faults of all nodes of a server."""

    def __init__(self) -> None:
        self._dead: set[str] = set()
        self._cut: set[str] = set()
        self._unpullable: set[str] = set()
        self._listeners: list[Callable[[], object]] = []

    def kill(self, node: str) -> None:
        """Kills a node: its pods stay as they were last seen, and nobody hears of it again until ``heal``."""
        self._dead.add(node)
        self.changed()

    def cut_off(self, zone: str) -> None:
        """No node of a zone is heard of any more."""
        self._cut.add(zone)
        self.changed()

    def never_pull(self, image: str) -> None:
        """No image of a pattern (``*``) can be pulled from now on; what runs goes on."""
        self._unpullable.add(image)
        self.changed()

    def heal(self, name: str = "") -> None:
        """Mends a node, zone or image; without a name all of them."""
        for held in (self._dead, self._cut, self._unpullable):
            if name:
                held.discard(name)
            else:
                held.clear()
        self.changed()

    def is_reachable(self, shape: NodeShape) -> bool:
        """Whether a node is heard of."""
        return shape.name not in self._dead and shape.zone not in self._cut

    def can_pull(self, image: str) -> bool:
        """Whether an image can be pulled."""
        return not any(fnmatch.fnmatchcase(image, pattern) for pattern in self._unpullable)

    def listen(self, call: Callable[[], object]) -> None:
        """Calls ``call`` after each change, on the thread that made it."""
        self._listeners.append(call)

    def changed(self) -> None:
        """Has the nodes look at everything again."""
        for listener in tuple(self._listeners):
            listener()
