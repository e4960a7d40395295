"""The API of a server: ``build_api`` makes one over a backend; ``api_parts`` has its parts.

The way of a request begins in ``handlers``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from apimachinery.access.authorization import Attributes
from apimachinery.server.assembly.api_parts import ApiParts
from apimachinery.server.assembly.parts import Assembly, Looping
from apimachinery.server.assembly.running_controllers import controllers
from apimachinery.server.backend import Backend
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.wire.json import DecodeFault


class AssembledApi(Assembly):
    """Handlers, and the controllers next to them."""

    def __init__(self, backend: Backend, options: ApiOptions) -> None:
        self.parts = parts = ApiParts(backend, options)
        self.handle, self.takes_upgrade = parts.handlers.handle, parts.handlers.takes_upgrade
        self.catalog, self.writer, self.deleter = parts.catalog, parts.writer, parts.deleter
        table = parts.table()
        if backend.storage.writable:
            table.append(lambda: Looping(controllers(parts), parts.observer))
        super().__init__(table)

    async def start(self) -> None:
        """Makes what a cluster starts with, serves the definitions that are stored, and starts the controllers."""
        await super().start()
        await asyncio.sleep(0)  # Lets the controllers begin.

    def objects(self, attributes: Attributes) -> int:
        """How many objects a list would go through."""
        served = self.catalog.find(attributes.group, attributes.version, attributes.resource)
        return self.parts.objects_of(served)

    def decoded(self, media_type: str, body: bytes) -> Any:
        """What an answer says, for the audit; None where it is no object that can be read."""
        codec = self.parts.codecs.reading(media_type.partition(";")[0])
        try:
            return codec.decode(body, []) if codec is not None else None
        except DecodeFault:
            return None


def build_api(backend: Backend, options: ApiOptions) -> AssembledApi:
    """The API for a backend."""
    return AssembledApi(backend, options)
