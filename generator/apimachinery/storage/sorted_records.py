"""Records sorted by key, as a persistent tree: a change makes a new tree that shares what it did not touch.

Theory. A list must not cost more because many objects are stored, and must not change under whoever reads it. A tree
whose nodes are never changed gives both: the state at a moment is its root, taken in no time and safe to read on any
thread, and a write copies one leaf and the few nodes above it. Leaves are plain lists of records; inner nodes keep the
first key and the number of records of each child, so a run of keys (a *scope*) is two positions, found in
logarithmic time, and a page of it costs what the page holds.

Nodes split above ``WIDTH`` entries and join a neighbour below a quarter of that, so the depth stays logarithmic
however keys come and go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TypeVar, overload

from apimachinery.storage.interface import Record

WIDTH = 128
"""The most records of a leaf, and children of an inner node."""

_key = attrgetter("key")
Leaf = list[Record]
T = TypeVar("T")


@dataclass(slots=True)
class Inner:
    """An inner node: for each child, its first key and how many records it holds."""

    children: list[Leaf | Inner]
    firsts: list[str]
    sizes: list[int]


Node = Leaf | Inner
EMPTY: Leaf = []


def tree_of(records: Sequence[Record]) -> Node:
    """The tree of records that are sorted by key already."""
    level: list[Node] = [list(part) for part in _parts(records)]
    while len(level) > 1:
        level = [_inner(part) for part in _parts(level)]
    return level[0] if level else EMPTY


def with_record(root: Node, record: Record) -> Node:
    """The tree with ``record`` under its key, in place of the one that was there."""
    return _rooted(_put(root, record))


def without_key(root: Node, key: str) -> Node:
    """The tree without the record of ``key``; the same tree where there is none."""
    changed = _remove(root, key)
    if changed is None:
        return root
    while isinstance(changed, Inner) and len(changed.children) < 2:
        changed = changed.children[0] if changed.children else EMPTY
    return changed


class Run(Sequence[Record]):
    """The records of a tree between two positions; reading it costs what is read, whatever the tree holds."""

    __slots__ = ("_high", "_low", "_root")

    def __init__(self, root: Node, low: int, high: int) -> None:
        self._root = root
        self._low = low
        self._high = max(low, high)

    @classmethod
    def of(cls, root: Node, scope: str) -> Run:
        """The records below ``scope`` if it ends with a slash, else the one record whose key it is."""
        low = _position(root, scope)
        # "0" follows "/"; no string lies between a key and the key with a NUL behind it.
        return cls(root, low, _position(root, f"{scope[:-1]}0" if scope.endswith("/") else f"{scope}\0"))

    def __len__(self) -> int:
        return self._high - self._low

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(_leaves(self._root, self._low, self._high))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return list(self)[index]
            return list(chain.from_iterable(_leaves(self._root, self._low + start, self._low + stop)))
        place = self._low + (index if index >= 0 else len(self) + index)
        if not self._low <= place < self._high:
            raise IndexError(index)
        return next(iter(next(_leaves(self._root, place, place + 1))))

    def part(self, low: int, high: int) -> Run:
        """The records from one index up to another, read when they are asked for."""
        return Run(self._root, self._low + low, min(self._low + high, self._high))

    def first_at(self, key: str) -> int:
        """The index of the first record whose key is ``key`` or comes after it."""
        return min(max(_position(self._root, key) - self._low, 0), len(self))


def _parts(entries: Sequence[T]) -> Iterator[Sequence[T]]:
    """Consecutive parts of about the same length, each short enough for a node and none much too short."""
    count = -(-len(entries) // WIDTH)
    for index in range(count):
        yield entries[len(entries) * index // count : len(entries) * (index + 1) // count]


def _size(node: Node) -> int:
    return sum(node.sizes) if isinstance(node, Inner) else len(node)


def _first(node: Node) -> str:
    return node.firsts[0] if isinstance(node, Inner) else node[0].key


def _inner(children: Iterable[Node]) -> Inner:
    kept = list(children)
    return Inner(kept, [_first(child) for child in kept], [_size(child) for child in kept])


def _rooted(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else _inner(nodes)


def _put(node: Node, record: Record) -> list[Node]:
    """The node with the record in it, in two where it has become too wide."""
    key = record.key
    if not isinstance(node, Inner):
        leaf = node.copy()
        index = bisect_left(leaf, key, key=_key)
        if index < len(leaf) and leaf[index].key == key:
            leaf[index] = record
        else:
            leaf.insert(index, record)
        return [leaf] if len(leaf) <= WIDTH else [list(part) for part in _parts(leaf)]
    index = max(bisect_right(node.firsts, key) - 1, 0)
    return _replaced(node, index, index + 1, _put(node.children[index], record))


def _remove(node: Node, key: str) -> Node | None:
    """The node without the key; None where it does not hold it."""
    if not isinstance(node, Inner):
        index = bisect_left(node, key, key=_key)
        if index == len(node) or node[index].key != key:
            return None
        return node[:index] + node[index + 1 :]
    index = max(bisect_right(node.firsts, key) - 1, 0)
    child = _remove(node.children[index], key)
    if child is None:
        return None
    if _width(child) >= WIDTH // 4 or len(node.children) == 1:
        return _replaced(node, index, index + 1, [child] if _width(child) else [])[0]
    beside = index - 1 if index else index + 1
    pair = (node.children[beside], child) if beside < index else (child, node.children[beside])
    low = min(index, beside)
    return _replaced(node, low, low + 2, _joined(*pair))[0]


def _width(node: Node) -> int:
    return len(node.children) if isinstance(node, Inner) else len(node)


def _joined(left: Node, right: Node) -> list[Node]:
    """Two neighbours of one height as one node, or as two of about the same width."""
    if isinstance(left, Inner) and isinstance(right, Inner):
        return [_inner(part) for part in _parts([*left.children, *right.children])]
    assert not isinstance(left, Inner) and not isinstance(right, Inner)  # neighbours have one height
    return [list(part) for part in _parts([*left, *right])]


def _replaced(node: Inner, low: int, high: int, nodes: list[Node]) -> list[Node]:
    """An inner node with other children in place of some, in two where it has become too wide."""
    children: list[Node] = [*node.children]
    firsts, sizes = node.firsts.copy(), node.sizes.copy()
    children[low:high] = nodes
    firsts[low:high] = [_first(child) for child in nodes]
    sizes[low:high] = [_size(child) for child in nodes]
    if len(children) > WIDTH:
        return [_inner(part) for part in _parts(children)]
    return [Inner(children, firsts, sizes)]


def _position(root: Node, key: str) -> int:
    """How many records come before ``key``."""
    before, node = 0, root
    while isinstance(node, Inner):
        index = max(bisect_right(node.firsts, key) - 1, 0)
        before += sum(node.sizes[:index])
        node = node.children[index]
    return before + bisect_left(node, key, key=_key)


def _leaves(node: Node, low: int, high: int) -> Iterator[Leaf]:
    """The leaves between two positions, cut to them, in order."""
    if not isinstance(node, Inner):
        if low < high:
            yield node if low <= 0 and high >= len(node) else node[max(low, 0) : high]
        return
    for child, size in zip(node.children, node.sizes, strict=True):
        if low < size and high > 0:
            yield from _leaves(child, low, high)
        low, high = low - size, high - size
        if high <= 0:
            return
