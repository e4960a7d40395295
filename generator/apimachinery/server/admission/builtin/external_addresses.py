"""DenyServiceExternalIPs: services get no external addresses that they do not have."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden
from apimachinery.server.admission.interface import Operation, Plugin


class DenyServiceExternalIPs(Plugin):
    """Refuses external addresses."""

    resources = frozenset({("", "services")})

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj = operation.obj
        if obj is None or operation.target.subresource:
            return
        if set(_addresses(obj)) - set(_addresses(operation.old or {})):
            why = "Use of external IPs is denied by admission control"
            raise forbidden("services", "", operation.name, why)


def _addresses(service: Json) -> list[str]:
    return (service.get("spec") or {}).get("externalIPs") or []
