"""What shapes that become definitions are called.

A name comes from the field: ``secretRef`` gives ``SecretRef``, the items of ``tags`` ``Tag``. Where several shapes
would have one name, that of the type around comes before; no name is longer than ``MAX_NAME``. Names that users give go
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kubewright.ir.types import Definition, Struct, Value

MAX_NAME = 60
_GENERIC = frozenset(
    {"spec", "status", "metadata", "config", "data", "value", "item", "items", "template", "options"}
)


@dataclass(slots=True)
class Shape:
    """One shape: ``struct`` with its parts folded already, ``edges`` the places where it is used."""

    number: int
    struct: Struct
    value: Value
    edges: list[Edge] = field(default_factory=list)
    name: str = ""
    definition: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A use of a shape: the definition and the shape around it, the field, and its depth in the definition."""

    owner: Definition
    parent: int | None
    word: str
    depth: int


class NamesError(ValueError):
    """Why a name that was given cannot be used."""


def name_shapes(folded: Sequence[Shape], shapes: Sequence[Shape], definitions: Iterable[Definition]) -> None:
    """Gives each of ``folded`` its ``name`` and the ``definition`` that it becomes; none is called as one of
    ``definitions`` of its group and version. Raises ``NamesError`` where a ``given`` name is taken."""
    taken: dict[tuple[str, str], set[str]] = {}
    for definition in definitions:
        taken.setdefault((definition.group, definition.version), set()).add(
            definition.name.rpartition(".")[2].lower()
        )
    for shape in folded:
        if shape.given:
            owner = shape.edges[0].owner
            if shape.given.lower() in taken[owner.group, owner.version]:
                raise NamesError(f"{shape.given}: {owner.group}/{owner.version} has a type of this name")
            taken[owner.group, owner.version].add(shape.given.lower())
    for shape in sorted(folded, key=lambda s: (min(e.depth for e in s.edges), -len(s.edges), s.number)):
        owner = shape.edges[0].owner
        used = taken[owner.group, owner.version]
        shape.name = shape.given or next(
            name for name in _candidates(shape, shapes) if name.lower() not in used
        )
        used.add(shape.name.lower())
        prefix = owner.name.rpartition(".")[0]
        shape.definition = f"{prefix}.{shape.name}"


def _candidates(shape: Shape, shapes: Sequence[Shape]) -> Iterator[str]:
    words: dict[str, int] = {}
    for edge in shape.edges:
        words[edge.word] = words.get(edge.word, 0) + 1
    word = min(words, key=lambda w: (w.lower() in _GENERIC, -words[w], len(w), w))
    own = _capital(word)
    if word.lower() not in _GENERIC and not word.isdigit():
        yield own
    edges = [edge for edge in shape.edges if edge.word == word]
    for edge in edges[:4]:
        around = _around(edge, shapes)
        if around.endswith(own):
            yield around
        if len(around) + len(own) <= MAX_NAME:
            yield around + own
    for edge in edges[:1]:
        kind = _capital(edge.owner.name.rpartition(".")[2])
        if len(kind) + len(own) <= MAX_NAME:
            yield kind + own
    own = own[:MAX_NAME]
    count = 2
    while True:
        yield f"{own}{count}"
        count += 1


def _around(edge: Edge, shapes: Sequence[Shape]) -> str:
    if edge.parent is None:
        return _capital(edge.owner.name.rpartition(".")[2])
    parent = shapes[edge.parent]
    return parent.name or _capital(parent.edges[0].word)


def _capital(word: str) -> str:
    parts = [part for part in "".join(c if c.isalnum() else " " for c in word).split() if part]
    name = "".join(part[0].upper() + part[1:] for part in parts)
    return name if name[:1].isalpha() else f"Type{name}"
