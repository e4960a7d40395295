"""Long encodings as blocks: joining them into one would stop every other thread for as long as it takes to copy all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BLOCK_BYTES = 1 << 18


def in_blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of some size, each made when it is asked for."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
