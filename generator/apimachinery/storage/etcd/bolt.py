"""Reads the file that etcd keeps its keys in (bbolt's format, version 2), and nothing else: no writing, no lock.

    file       pages of one size; 0 and 1 are meta pages, of which the valid one with the higher transaction counts
    page       id, flags, count, overflow; then elements; an overflowing page goes on in the pages behind it
    branch     elements with a key and the page below; leaf: with a key and a value, or a bucket
    bucket     a tree of pages, or a page inside the value where the root is 0

The file is somebody else's and may be damaged, or made to harm: every number is checked against the bytes that there
are, no page is entered twice, and what does not fit raises BoltError with the place.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from apimachinery.storage.interface import StorageError

_MAGIC, _VERSION = 0xED0CDAED, 2
_PAGE = struct.Struct("<QHHI")  # id, flags, count, overflow
_META = struct.Struct(
    "<IIIIQQQQQ"
)  # magic, version, page size, flags, root, sequence, freelist, high water, transaction
_BRANCH = struct.Struct("<IIQ")  # position, key size, page
_LEAF = struct.Struct("<IIII")  # flags, position, key size, value size
_BUCKET = struct.Struct("<QQ")  # root, sequence
_IS_BRANCH, _IS_LEAF, _IS_META = 0x01, 0x02, 0x04
_IS_BUCKET = 0x01
_SIZES = tuple(1 << power for power in range(10, 17))
_DEPTH = 64
_HASH_BYTES = 32
"""What ``etcdctl snapshot save`` appends: the SHA-256 of all before it."""


class BoltError(StorageError):
    """A file that is no etcd database, or a damaged one; the text says where."""


class BoltFile:
    """An open database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                # Mapped, not read: a database may be larger than memory.
                self._data: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as fault:
            raise BoltError(f"cannot read {path}: {fault}") from None
        self._size = len(self._data)
        self._page_size, self._root = self._meta()
        self._check_hash()

    def close(self) -> None:
        """Lets the file go."""
        if isinstance(self._data, mmap.mmap):
            self._data.close()

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of a bucket of the top, by key. Raises BoltError."""
        for key, value, is_bucket in self._tree(self._root, set(), 0):
            if key == name and is_bucket:
                yield from self._inside(value)
                return
        raise BoltError(f"{self._path} has no bucket {name.decode('ascii', 'replace')!r}: no etcd wrote it")

    def _inside(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        root, _ = _BUCKET.unpack(value[: _BUCKET.size])
        if root:
            found = self._tree(root, set(), 0)
        else:
            found = self._page(value[_BUCKET.size :], 0, "a page inside a bucket", set(), 0)
        for key, inner, is_bucket in found:
            if not is_bucket:
                yield key, inner

    def _check_hash(self) -> None:
        """Checks that a snapshot's bytes have the hash it names."""
        # bbolt writes whole pages; 32 bytes more than that are the hash of a snapshot.
        if self._size % 512 != _HASH_BYTES:
            return
        whole = memoryview(self._data)
        try:
            if hashlib.sha256(whole[:-_HASH_BYTES]).digest() != bytes(whole[-_HASH_BYTES:]):
                raise BoltError(f"{self._path} is damaged: its SHA-256 is not the one at its end")
        # A view that is not released would keep the map from being closed.
        finally:
            whole.release()
        self._size -= _HASH_BYTES

    def _meta(self) -> tuple[int, int]:
        """The page size, and the root of the newest whole transaction."""
        found: list[tuple[int, int, int]] = []
        # The page size is in the meta page itself, so page 1 is looked for at every size there can be.
        for start in (0, *_SIZES):
            meta = self._meta_at(start)
            if meta is not None and (start == 0 or meta[1] == start):
                found.append(meta)
        if not found:
            raise BoltError(f"{self._path} is no etcd database: it has no valid meta page")
        # The higher transaction: bbolt writes the two meta pages by turns.
        _, page_size, root = max(found)
        return page_size, root

    def _meta_at(self, start: int) -> tuple[int, int, int] | None:
        at = start + _PAGE.size
        end = at + _META.size
        if end + 8 > self._size:
            return None
        raw = self._data[at:end]
        magic, version, page_size, _, root, _, _, _, transaction = _META.unpack(raw)
        (checksum,) = struct.unpack("<Q", self._data[end : end + 8])
        if magic != _MAGIC or version != _VERSION or page_size not in _SIZES or checksum != _fnv(raw):
            return None
        return transaction, page_size, root

    def _tree(self, page: int, seen: set[int], depth: int) -> Iterator[tuple[bytes, bytes, bool]]:
        # Pages that form a circle would be read for ever.
        if page in seen or depth > _DEPTH:
            raise BoltError(f"{self._path}: page {page} is below itself")
        seen.add(page)
        start = page * self._page_size
        if page < 2 or start + self._page_size > self._size:
            raise BoltError(f"{self._path}: page {page} lies outside the file")
        number, _, _, overflow = _PAGE.unpack(self._data[start : start + _PAGE.size])
        end = start + (overflow + 1) * self._page_size
        if number != page or end > self._size:
            raise BoltError(f"{self._path}: page {page} is damaged")
        return self._page(self._data[start:end], page, f"page {page}", seen, depth)

    def _page(
        self, data: bytes, page: int, place: str, seen: set[int], depth: int
    ) -> Iterator[tuple[bytes, bytes, bool]]:
        if len(data) < _PAGE.size:
            raise BoltError(f"{self._path}: {place} is cut off")
        _, flags, count, _ = _PAGE.unpack(data[: _PAGE.size])
        element = _LEAF if flags & _IS_LEAF else _BRANCH
        if not flags & (_IS_LEAF | _IS_BRANCH) or _PAGE.size + count * element.size > len(data):
            raise BoltError(f"{self._path}: {place} is neither a branch nor a leaf")
        for index in range(count):
            at = _PAGE.size + index * element.size
            if element is _BRANCH:
                _, _, below = _BRANCH.unpack(data[at : at + element.size])
                yield from self._tree(below, seen, depth + 1)
                continue
            kind, position, key_size, value_size = _LEAF.unpack(data[at : at + element.size])
            start = at + position
            middle, end = start + key_size, start + key_size + value_size
            if end > len(data):
                raise BoltError(f"{self._path}: element {index} of {place} lies outside its page")
            is_bucket = bool(kind & _IS_BUCKET)
            if is_bucket and value_size < _BUCKET.size:
                raise BoltError(f"{self._path}: element {index} of {place} is a bucket without a root")
            yield data[start:middle], data[middle:end], is_bucket


def _fnv(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value
