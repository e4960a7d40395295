"""Objects that nobody stores: they are made when somebody reads them."""

from __future__ import annotations

from typing import Protocol

from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.served import Served
from apimachinery.storage.interface import Record


class Computed(Protocol):
    """The objects of one resource."""

    async def records(self, served: Served, scope: str) -> list[Record]:
        """Those whose keys begin with ``scope``, in the order in which they are listed."""

    def missing(self, served: Served, namespace: str, name: str) -> ApiError:
        """How a read of one that is not there is refused."""
