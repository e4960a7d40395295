"""Field sets, in the very form of FieldsV1.

Theory. A field set is a set of paths. A path is a sequence of path elements, each a string that says what it
is: ``f:name`` a field, ``k:{"name":"a"}`` an item of a map list by its keys, ``v:"a"`` an item of a set,
``i:0`` an item by index. A set is a tree of dicts by path element; a node is a member of the set if it is
empty, or if it holds the element ``.``:

    {"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}}      .spec.a   .spec.b   .spec.b.c

That is FieldsV1 as it is in managedFields, so reading and writing cost next to nothing. The root is not a
member of itself: ``{}`` is the empty set. Keys are canonical JSON, hence equal elements are equal strings.

Sets are values: no function changes one, and results share their unchanged parts with the arguments.
Normal form: no node below the root is ``{".": {}}`` (that is ``{}``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from apimachinery.merge.elements import in_order

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

LEAF: Final[FieldSet] = {}
"""The node of a member without members below it. Never written to."""


def from_paths(paths: Iterable[Sequence[str]]) -> FieldSet:
    """The set of the given paths. An element without a prefix is a field name: ``("metadata", "labels")``."""
    out: FieldSet = {}
    for path in paths:
        node: FieldSet = {}
        for element in reversed(path):
            node = {element if element[1:2] == ":" else f"f:{element}": node}
        out = union(out, node)
    return out


def is_member(node: FieldSet | None) -> bool:
    """Whether a node (not the root) is itself in the set."""
    return node is not None and (not node or "." in node)


def as_member(node: FieldSet | None) -> FieldSet:
    """The node with itself in the set."""
    if not node:
        return LEAF
    return node if "." in node else {".": LEAF, **node}


def has(fields: FieldSet, path: Sequence[str]) -> bool:
    """Whether ``path`` is a member."""
    node: FieldSet | None = fields
    for element in path:
        if node is None:
            return False
        node = node.get(element)
    return bool(path) and is_member(node)


def paths(fields: FieldSet) -> Iterator[Path]:
    """The members, each node's own ones sorted and before those below them (kube-apiserver's order)."""
    # Members first, then what is below them: the order in which kube-apiserver lists conflicts.
    elements = in_order(key for key in fields if key != ".")
    for element in elements:
        if is_member(fields[element]):
            yield (element,)
    for element in elements:
        for rest in paths(fields[element]):
            yield (element, *rest)


def size(fields: FieldSet) -> int:
    """The number of members."""
    return sum(1 for _ in paths(fields))


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """The paths in either."""
    if not a or a is b:
        return b
    if not b:
        return a
    out = dict(a)
    for element, node in b.items():
        mine = a.get(element)
        out[element] = node if mine is None else _join(mine, node)
    return out


def _join(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a or a is b:
        return a if a else as_member(b)
    return as_member(a) if not b else union(a, b)


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """The paths in both."""
    if a is b:
        return a
    out: FieldSet = {}
    # The smaller set is walked, the larger one looked up.
    if len(b) < len(a):
        a, b = b, a
    for element, node in a.items():
        other = b.get(element)
        if other is None:
            continue
        if node and other:
            # Equal subtrees are common, and are shared instead of rebuilt.
            common = node if node == other else intersection(node, other)
            if common:
                out[element] = LEAF if len(common) == 1 and "." in common else common
        elif is_member(node) and is_member(other):
            out[element] = LEAF
    return out


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """The paths of ``a`` that are not in ``b``. A path below a path of ``b`` stays."""
    if not b or not a:
        return a
    return _without(a, b, recursive=False)


def recursive_difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """The paths of ``a`` that are neither in ``b`` nor below a path of ``b``."""
    if not b or not a:
        return a
    return _without(a, b, recursive=True)


def _without(a: FieldSet, b: FieldSet, *, recursive: bool) -> FieldSet:
    # A result is made only when something differs; unchanged sets are returned as they are.
    out: FieldSet | None = None
    # Whichever has fewer elements is walked.
    for element in b if len(b) <= len(a) else a:
        node = a.get(element)
        other = b.get(element)
        if node is None or other is None:
            continue
        member = not other or "." in other
        if not node:
            rest = None if member else node
        elif (recursive and member) or node == other:
            rest = None
        else:
            # A leaf of b takes the node itself; what is below stays.
            kept = _without(node, other or _SELF, recursive=recursive)
            rest = kept if kept is node else (LEAF if len(kept) == 1 and "." in kept else kept or None)
        if rest is not node:
            if out is None:
                out = dict(a)
            if rest is None:
                del out[element]
            else:
                out[element] = rest
    return a if out is None else out


_SELF: Final[FieldSet] = {".": LEAF}


def leaves(fields: FieldSet) -> FieldSet:
    """The members that have no members below them."""
    return {element: leaves(node) if node else LEAF for element, node in fields.items() if element != "."}


def prefixes(fields: FieldSet) -> FieldSet:
    """The members and every path above one: what must exist for the members to exist."""
    return {element: as_member(prefixes(node)) for element, node in fields.items() if element != "."}
