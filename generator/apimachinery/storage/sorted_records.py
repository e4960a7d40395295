"""Records sorted by key, as a persistent tree: whoever reads it has a state that no later change touches.

Theory. A list must not cost more because many objects are stored, and must not change under whoever reads it. A tree
whose nodes are never changed gives both: the state at a moment is its root, taken in no time and safe to read on any
thread, and a write copies one leaf and the few nodes above it. Leaves are plain lists of records; inner nodes keep the
first key and the number of records of each child, so a run of keys (a *scope*) is two positions, found in
logarithmic time, and a page of it costs what the page holds.

Most writes follow a write, not a read. So the nodes that were made since somebody last read are the tree's own: it
changes them in place, and only what a reader may hold is copied.

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


class RecordTree:
    """Records by key. It is changed in one thread; what it gives to readers (``run``, ``fork``) stays as it is."""

    __slots__ = ("_own", "_root")

    def __init__(self, root: Node) -> None:
        self._root = root
        # By identity, and kept alive by it: what nobody else refers to yet.
        self._own: dict[int, Node] = {}

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordTree:
        """The tree of records that are sorted by key already."""
        level: list[Node] = [list(part) for part in _parts(records)]
        while len(level) > 1:
            level = [_inner(part) for part in _parts(level)]
        return cls(level[0] if level else [])

    def run(self, scope: str) -> Run:
        """The records below ``scope`` if it ends with a slash, else the one record whose key it is."""
        # Whoever has a run may read it on any thread, so all nodes are shared from here on.
        self._own.clear()
        return Run(self._root, scope)

    def fork(self) -> RecordTree:
        """A tree with the same records, which changes on its own."""
        self._own.clear()
        return RecordTree(self._root)

    def put(self, record: Record) -> None:
        """Puts ``record`` under its key, in place of the one that was there."""
        key = record.key
        path, leaf = self._path(key)
        index = bisect_left(leaf, key, key=_key)
        if index < len(leaf) and leaf[index].key == key:
            leaf[index] = record
            return
        leaf.insert(index, record)
        for node, place in path:
            node.sizes[place] += 1
            if key < node.firsts[place]:
                node.firsts[place] = key
        if len(leaf) > WIDTH:
            self._split(path, leaf)

    def remove(self, key: str) -> None:
        """Removes the record of ``key``, if there is one."""
        path, leaf = self._path(key)
        index = bisect_left(leaf, key, key=_key)
        if index == len(leaf) or leaf[index].key != key:
            return
        del leaf[index]
        for node, place in path:
            node.sizes[place] -= 1
        child: Node = leaf
        for node, place in reversed(path):
            if _width(child):
                node.firsts[place] = _first(child)
            if _width(child) < WIDTH // 4:
                self._shrink(node, place, child)
            child = node
        while isinstance(child, Inner) and len(child.children) < 2:
            self._own.pop(id(child), None)
            child = child.children[0] if child.children else []
        self._root = child

    def _path(self, key: str) -> tuple[list[tuple[Inner, int]], Leaf]:
        """The nodes down to the leaf of a key, each with the place of the next one in it, and the leaf: they become the
        tree's own."""
        own = self._own
        path: list[tuple[Inner, int]] = []
        node = self._root
        if id(node) not in own:
            node = self._root = self._copied(node)
        while isinstance(node, Inner):
            index = bisect_right(node.firsts, key) - 1
            # A key before all others goes into the first leaf.
            if index < 0:
                index = 0
            path.append((node, index))
            child = node.children[index]
            if id(child) not in own:
                child = node.children[index] = self._copied(child)
            node = child
        return path, node

    def _copied(self, node: Node) -> Node:
        if isinstance(node, Inner):
            return self._owned(Inner(node.children.copy(), node.firsts.copy(), node.sizes.copy()))
        return self._owned(node.copy())

    def _owned(self, node: Node) -> Node:
        self._own[id(node)] = node
        return node

    def _split(self, path: list[tuple[Inner, int]], wide: Node) -> None:
        """Puts two nodes in place of one that has become too wide, and so on upwards."""
        while True:
            # Once replaced, its id may be used by another object.
            del self._own[id(wide)]
            halves = [self._owned(half) for half in _halves(wide)]
            if not path:
                self._root = self._owned(_inner(halves))
                return
            node, place = path.pop()
            _replace(node, place, place + 1, halves)
            if len(node.children) <= WIDTH:
                return
            wide = node

    def _shrink(self, node: Inner, place: int, narrow: Node) -> None:
        """Joins a node that has become narrow with a neighbour, or takes it out where it is empty."""
        # Not the tree's own any more: the joined node replaces it.
        self._own.pop(id(narrow), None)
        if not _width(narrow):
            _replace(node, place, place + 1, [])
        elif len(node.children) == 1:
            self._owned(narrow)
        else:
            low = place - 1 if place else 0
            left, right = node.children[low : low + 2]
            self._own.pop(id(left if right is narrow else right), None)
            _replace(node, low, low + 2, [self._owned(part) for part in _joined(left, right)])


class Run(Sequence[Record]):
    """The records of a scope of a tree, or of a part of it; reading it costs what is read, whatever the tree holds.

    Its two positions are looked for when they are first needed: who has the answer kept does not need them."""

    __slots__ = ("_root", "_scope", "_span")

    def __init__(self, root: Node, scope: str, span: tuple[int, int] | None = None) -> None:
        self._root = root
        self._scope = scope
        self._span = span

    def _bounds(self) -> tuple[int, int]:
        """The positions of the first record and of the one after the last."""
        span = self._span
        if span is None:
            scope = self._scope
            # "0" follows "/"; no string lies between a key and the key with a NUL behind it.
            end = f"{scope[:-1]}0" if scope.endswith("/") else f"{scope}\0"
            span = self._span = (_position(self._root, scope), _position(self._root, end))
        return span

    def __len__(self) -> int:
        low, high = self._bounds()
        return high - low

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(_leaves(self._root, *self._bounds()))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        low, high = self._bounds()
        if isinstance(index, slice):
            start, stop, step = index.indices(high - low)
            if step != 1:
                return list(self)[index]
            return list(chain.from_iterable(_leaves(self._root, low + start, low + stop)))
        place = index + (low if index >= 0 else high)
        if not low <= place < high:
            raise IndexError(index)
        return _record_at(self._root, place)

    def part(self, low: int, high: int) -> Run:
        """The records from one index up to another, read when they are asked for."""
        start, end = self._bounds()
        first = start + low
        return Run(self._root, self._scope, (first, max(first, min(start + high, end))))

    def first_at(self, key: str) -> int:
        """The index of the first record whose key is ``key`` or comes after it."""
        low, high = self._bounds()
        return min(max(_position(self._root, key) - low, 0), high - low)


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


def _width(node: Node) -> int:
    return len(node.children) if isinstance(node, Inner) else len(node)


def _joined(left: Node, right: Node) -> list[Node]:
    """Two neighbours of one height as one node, or as two of about the same width."""
    if isinstance(left, Inner) and isinstance(right, Inner):
        return [_inner(part) for part in _parts([*left.children, *right.children])]
    assert not isinstance(left, Inner) and not isinstance(right, Inner)  # neighbours have one height
    return [list(part) for part in _parts([*left, *right])]


def _halves(node: Node) -> list[Node]:
    if isinstance(node, Inner):
        return [_inner(part) for part in _parts(node.children)]
    return [list(part) for part in _parts(node)]


def _replace(node: Inner, low: int, high: int, nodes: list[Node]) -> None:
    """Puts other children in place of some."""
    node.children[low:high] = nodes
    node.firsts[low:high] = [_first(child) for child in nodes]
    node.sizes[low:high] = [_size(child) for child in nodes]


def _position(root: Node, key: str) -> int:
    """How many records come before ``key``."""
    before, node = 0, root
    while isinstance(node, Inner):
        index = max(bisect_right(node.firsts, key) - 1, 0)
        before += sum(node.sizes[:index])
        node = node.children[index]
    return before + bisect_left(node, key, key=_key)


def _record_at(node: Node, position: int) -> Record:
    while isinstance(node, Inner):
        for child, size in zip(node.children, node.sizes, strict=True):
            if position < size:
                node = child
                break
            position -= size
    return node[position]


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
