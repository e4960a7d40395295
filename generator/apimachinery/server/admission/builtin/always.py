"""AlwaysAdmit and AlwaysDeny: what their names say. Both are of use in tests alone."""

from __future__ import annotations

from apimachinery.meta.errors import forbidden
from apimachinery.server.admission.interface import Operation, Plugin


class AlwaysAdmit(Plugin):
    """Admits everything."""


class AlwaysDenyPlugin(Plugin):
    """Refuses every write but the server's own."""

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        served = operation.target.served
        if operation.user is not None:
            why = "admission control is denying all modifications"
            raise forbidden(served.plural, served.group, operation.said_name, why)
