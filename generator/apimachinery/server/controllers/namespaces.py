"""The namespace life cycle."""

from __future__ import annotations

from typing import Any


class NamespaceController:
    """Empties namespaces that are being deleted, and lets them go."""

    def __init__(self, *parts: Any) -> None:
        pass

    def start(self) -> None:
        """Starts."""

    async def stop(self) -> None:
        """Stops."""
