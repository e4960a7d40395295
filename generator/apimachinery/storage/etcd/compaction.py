"""Compaction: which revisions of etcd's history can still be read, and whose turn it is to forget more of them.

Theory. kube-apiserver's convention: a key that every server of the log tries to advance once a period; who succeeds
compacts. So servers of both kinds may share one etcd. What others compacted is learned from that key, and from reads
that etcd refuses.
"""

from __future__ import annotations

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection, EtcdRefusal
from apimachinery.storage.etcd.freshness import Freshness
from apimachinery.storage.interface import FutureRevision

COMPACTION_KEY = b"compact_rev_key"


class Compaction:
    """See ``interface.Storage``."""

    def __init__(self, connection: EtcdConnection, freshness: Freshness, writable: bool) -> None:
        self.oldest = 1  # the oldest revision that is known to be readable
        self._connection = connection
        self._freshness = freshness
        self._writable = writable
        self._turn = 0  # how often the key was written, as far as is known

    def note(self, revision: int) -> None:
        """States before ``revision`` are no longer kept."""
        self.oldest = max(self.oldest, revision)

    async def take_turn(self, revision: int) -> bool:
        if not self._writable:
            return False
        mark = messages.PutRequest(key=COMPACTION_KEY, value=b"%d" % revision)
        present = messages.RequestOp(request_range=messages.RangeRequest(key=COMPACTION_KEY))
        # The version counts writes of the key: only one of the servers that saw the same number succeeds.
        turn = messages.Compare(
            result=messages.EQUAL, target=messages.VERSION, key=COMPACTION_KEY, version=self._turn
        )
        answer = await self._connection.write(
            messages.TxnRequest(
                compare=[turn], success=[messages.RequestOp(request_put=mark)], failure=[present]
            )
        )
        if answer.succeeded:
            self._turn += 1
            return True
        for kv in answer.responses[0].response_range.kvs:
            self._turn = kv.version
            # Never beyond what this process has seen, or its own reads would be refused.
            if kv.value.isdigit():
                self.note(min(int(kv.value), self._freshness.revision))
        return False

    async def compact(self, revision: int) -> None:
        freshness = self._freshness
        if revision > freshness.revision:
            await freshness.catch_up()
        if revision > freshness.revision:
            raise FutureRevision(revision, freshness.revision)
        if revision <= self.oldest:
            return
        try:
            await self._connection.read(messages.COMPACT, messages.CompactionRequest(revision=revision))
        except EtcdRefusal as refusal:
            # Somebody else has compacted further; what was wanted is done.
            if "compacted" not in refusal.details:
                raise
        self.note(revision)
