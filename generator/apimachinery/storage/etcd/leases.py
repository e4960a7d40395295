"""Leases for objects with a time to live: etcd ends the keys that are on one when it runs out, whoever is there then.

One lease is shared by the objects of a minute, as kube-apiserver does it: so a key may outlive its time by that much.
"""

from __future__ import annotations

import asyncio
import time

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection

SHARED_SECONDS = 60
SHARED_KEYS = 1000


class Leases:
    """Grants leases."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection
        self._granting = asyncio.Lock()
        self._latest: dict[int, tuple[int, float, int]] = {}

    async def lease(self, ttl: int) -> int:
        """The number of a lease that lasts ``ttl`` seconds, or up to a minute longer. Raises StorageUnreachable."""
        # One at a time, or all writers of a moment would grant leases of their own.
        async with self._granting:
            number, granted, keys = self._latest.get(ttl, (0, 0.0, 0))
            shared = min(SHARED_SECONDS, ttl)
            if not number or time.monotonic() - granted > shared or keys >= SHARED_KEYS:
                began = time.monotonic()
                # Longer than asked, since later keys of the same minute share it.
                request = messages.LeaseGrantRequest(TTL=ttl + shared)
                answer = await self._connection.read(messages.GRANT, request)
                number, granted, keys = answer.ID, began, 0
            self._latest[ttl] = (number, granted, keys + 1)
            return number
