"""Events that are too large for where they go: without their objects, and if that is not enough, not at all.

An event that lost its objects says so by an annotation, ``audit.k8s.io/truncated``, as with kube-apiserver.
"""

from __future__ import annotations

import msgspec

from apimachinery.metrics import Count
from apimachinery.server.operate.audit.audit import AuditBackend
from apimachinery.wire.json import encode

ANNOTATION = "audit.k8s.io/truncated"
EVENT_BYTES = 100 << 10


class Truncated:
    """A backend that hands on to another what is not larger than ``most`` bytes."""

    def __init__(self, backend: AuditBackend, most: int, lost: Count) -> None:
        self._backend = backend
        self._most = most
        self._lost = lost
        self.name, self.strict = backend.name, backend.strict

    def write(self, event: bytes) -> None:
        if len(event) > self._most:
            value = msgspec.json.decode(event)
            cut = [value.pop(key, None) for key in ("requestObject", "responseObject")]
            if any(part is not None for part in cut):
                value["annotations"] = {**(value.get("annotations") or {}), ANNOTATION: "true"}
            event = encode(value) + b"\n"
            if len(event) > self._most:
                self._lost.value += 1
                return
        self._backend.write(event)

    def start(self) -> None:
        self._backend.start()

    async def close(self) -> None:
        await self._backend.close()
