"""The tree of an expression, as the parser builds it (macros already expanded) and the checker marks it.

Each node has the offset of its place in the source (that of the operator, the dot or the opening bracket) and
three marks of the checker: ``type``; ``overloads`` of a call, the ids that may apply; ``name`` of an identifier
or select that was resolved to a declared (qualified) name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apimachinery.cel.values.types import Type


class Node:
    """Any expression."""

    __slots__ = ("name", "offset", "overloads", "type")

    def __init__(self, offset: int):
        self.offset = offset
        self.type: Type | None = None
        self.overloads: tuple[str, ...] = ()
        self.name: str | None = None


class Literal(Node):
    """A constant; ``value`` is a CEL value."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any):
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A variable, a type's name or the head of a qualified name."""

    __slots__ = ("ident",)

    def __init__(self, offset: int, ident: str):
        super().__init__(offset)
        self.ident = ident


class Select(Node):
    """``operand.field``; with ``test_only`` it is what ``has`` asks."""

    __slots__ = ("field", "operand", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, test_only: bool = False):
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test_only = test_only


class CallNode(Node):
    """A function, an operator (``_+_``) or, with a ``target``, a method."""

    __slots__ = ("args", "function", "target")

    def __init__(self, offset: int, function: str, args: list[Node], target: Node | None = None):
        super().__init__(offset)
        self.function = function
        self.args = args
        self.target = target


class ListExpr(Node):
    """A list literal; ``optional`` holds the indices of elements written ``?e``."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()):
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class MapExpr(Node):
    """A map literal of (key, value, is optional); ``offsets`` are those of the colons."""

    __slots__ = ("entries", "offsets")

    def __init__(self, offset: int, entries: list[tuple[Node, Node, bool]], offsets: tuple[int, ...] = ()):
        super().__init__(offset)
        self.entries = entries
        self.offsets = offsets


class StructExpr(Node):
    """A message literal ``Name{field: value}`` of (field, value, is optional, offset)."""

    __slots__ = ("entries", "message")

    def __init__(self, offset: int, message: str, entries: list[tuple[str, Node, bool, int]]):
        super().__init__(offset)
        self.message = message
        self.entries = entries


class Comprehension(Node):
    """A fold of ``step`` over ``range``, stopped by ``condition``; what macros expand to."""

    __slots__ = ("accu", "condition", "init", "range", "result", "step", "var", "var2")

    def __init__(
        self,
        offset: int,
        *,
        range: Node,
        var: str,
        accu: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
        var2: str = "",
    ):
        super().__init__(offset)
        self.range = range
        self.var = var
        self.var2 = var2
        self.accu = accu
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result


ACCUMULATOR = "@result"
"""The name of the accumulator in expanded macros; no source can spell it."""
