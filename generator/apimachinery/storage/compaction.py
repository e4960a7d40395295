"""Automatic compaction: what the state needed longer ago than the kept time is forgotten.

Rule (etcd's, as kube-apiserver drives it): every period the revision that was newest one period ago is
compacted. So a client may rely on one period of history, and finds two at most. Of several servers over one log
one does it in each period.
"""

from __future__ import annotations

import asyncio
import logging

from apimachinery.storage.interface import Storage, StorageError

log = logging.getLogger("kubewright.storage")

PERIOD_SECONDS = 300.0


async def compact_for_ever(storage: Storage, period_seconds: float = PERIOD_SECONDS) -> None:
    """Compacts until cancelled."""
    last = storage.revision
    while True:
        await asyncio.sleep(period_seconds)
        try:
            if await storage.take_turn(last):
                await storage.compact(last)
        except (StorageError, OSError) as fault:
            log.warning("compaction failed; it is tried again in the next period: %s", fault)
        last = storage.revision
