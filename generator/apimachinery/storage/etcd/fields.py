"""Header fields in HTTP/2's compressed form (RFC 7541), between two sides that keep no dynamic table.

Theory. Who announces a dynamic table of zero bytes gets blocks that mean the same wherever they come in a connection.
So a block is decoded once: answers have few different ones, and those that repeat cost one look-up. What is sent keeps
to the same rule, and is encoded once.
"""

from __future__ import annotations

from functools import lru_cache

from hpack import Decoder, Encoder, HPACKError

Fields = dict[bytes, bytes]

_KEPT_BLOCKS = 256
_ENCODER = Encoder()


class BadBlock(ValueError):
    """A block of fields that cannot be decoded."""


@lru_cache(_KEPT_BLOCKS)
def encoded(*fields: tuple[bytes, bytes]) -> bytes:
    """Fields as a block, or a part of one."""
    # Nothing goes into the peer's table that is marked as sensitive.
    return _ENCODER.encode([(name, value, True) for name, value in fields], huffman=False)


class BlockDecoder:
    """Decodes blocks of one connection."""

    def __init__(self) -> None:
        self._known: dict[bytes, Fields] = {}
        self._decoder = Decoder()
        self._decoder.max_allowed_table_size = self._decoder.header_table_size = 0

    def fields(self, block: bytes) -> Fields:
        """The fields of a block, of several with one name the last; not to be changed. Raises BadBlock."""
        known = self._known.get(block)
        if known is None:
            if len(self._known) >= _KEPT_BLOCKS:
                self._known.clear()
            try:
                known = self._known[block] = dict(self._decoder.decode(block, raw=True))
            except HPACKError as fault:
                raise BadBlock("header fields that cannot be decoded") from fault
        return known
