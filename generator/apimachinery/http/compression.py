"""gzip of answers, by kube-apiserver's rule: above 128 KiB, and only for an exact ``gzip`` token (no q-value)."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence

THRESHOLD_BYTES = 128 << 10
IN_THREAD_BYTES = 1 << 20
# The level of kube-apiserver (defaultGzipContentEncodingLevel).
LEVEL = 1


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a client with this Accept-Encoding takes answers that are compressed."""
    return any(token.strip() == "gzip" for token in accept_encoding.split(","))


async def gzip_parts(parts: Sequence[bytes], size: int) -> bytes:
    """The parts as one gzip body; a large one is compressed on a thread, so that the loop goes on."""
    if size > IN_THREAD_BYTES:
        return await asyncio.to_thread(_gzip, parts)
    return _gzip(parts)


def _gzip(parts: Sequence[bytes]) -> bytes:
    # 16 more window bits make zlib write the gzip header.
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = [packer.compress(part) for part in parts]
    packed.append(packer.flush())
    return b"".join(packed)
