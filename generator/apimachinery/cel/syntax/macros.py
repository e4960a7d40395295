"""Macros: calls that the parser replaces by comprehensions and presence tests.

A macro is known by its name, its number of arguments and whether it has a target. The expansions are those of
the CEL specification, because kube-apiserver's costs and messages follow from them.
"""

from __future__ import annotations

from collections.abc import Callable

from apimachinery.cel.syntax.ast import (
    ACCUMULATOR,
    CallNode,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
)

Expander = Callable[[int, Node | None, list[Node]], Node | None]
MacroKey = tuple[str, int, bool]


class MacroError(Exception):
    """A macro with an argument of a wrong form."""

    def __init__(self, offset: int, message: str):
        super().__init__(message)
        self.offset = offset
        self.message = message


def _variable(node: Node, others: tuple[str, ...] = ()) -> str:
    if not isinstance(node, Ident) or node.ident.startswith("."):
        raise MacroError(node.offset, "argument must be a simple name")
    if node.ident == ACCUMULATOR or node.ident == "__result__":
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    if node.ident in others:
        raise MacroError(node.offset, f"duplicate variable name: {node.ident}")
    return node.ident


def _two_variables(args: list[Node]) -> tuple[str, str]:
    first = _variable(args[0])
    second = _variable(args[1])
    if first == second:
        raise MacroError(args[1].offset, f"duplicate variable name: {first}")
    return first, second


def _has(at: int, target: Node | None, args: list[Node]) -> Node | None:
    operand = args[0]
    if isinstance(operand, Select) and not operand.test_only:
        return Select(at, operand.operand, operand.field, test_only=True)
    raise MacroError(operand.offset, "invalid argument to has() macro")


def _fold(
    at: int, target: Node | None, var: str, var2: str, init: Node, condition: Node, step: Node, result: Node
) -> Node:
    assert target is not None
    return Comprehension(
        at,
        range=target,
        var=var,
        var2=var2,
        accu=ACCUMULATOR,
        init=init,
        condition=condition,
        step=step,
        result=result,
    )


def _accu(at: int) -> Node:
    return Ident(at, ACCUMULATOR)


def _all(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = (_variable(args[0]), "") if len(args) == 2 else _two_variables(args)
    condition = CallNode(at, "@not_strictly_false", [_accu(at)])
    step = CallNode(at, "_&&_", [_accu(at), args[-1]])
    return _fold(at, target, var, var2, Literal(at, True), condition, step, _accu(at))


def _exists(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = (_variable(args[0]), "") if len(args) == 2 else _two_variables(args)
    condition = CallNode(at, "@not_strictly_false", [CallNode(at, "!_", [_accu(at)])])
    step = CallNode(at, "_||_", [_accu(at), args[-1]])
    return _fold(at, target, var, var2, Literal(at, False), condition, step, _accu(at))


def _exists_one(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = (_variable(args[0]), "") if len(args) == 2 else _two_variables(args)
    more = CallNode(at, "_+_", [_accu(at), Literal(at, 1)])
    step = CallNode(at, "_?_:_", [args[-1], more, _accu(at)])
    result = CallNode(at, "_==_", [_accu(at), Literal(at, 1)])
    return _fold(at, target, var, var2, Literal(at, 0), Literal(at, True), step, result)


def _collect(
    at: int, target: Node | None, var: str, var2: str, init: Node, step: Node, condition: Node | None
) -> Node:
    if condition is not None:
        step = CallNode(at, "_?_:_", [condition, step, _accu(at)])
    return _fold(at, target, var, var2, init, Literal(at, True), step, _accu(at))


def _append(at: int, element: Node) -> Node:
    return CallNode(at, "_+_", [_accu(at), ListExpr(at, [element])])


def _map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    condition = args[1] if len(args) == 3 else None
    return _collect(at, target, _variable(args[0]), "", ListExpr(at, []), _append(at, args[-1]), condition)


def _filter(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var = _variable(args[0])
    step = _append(at, Ident(args[0].offset, var))
    return _collect(at, target, var, "", ListExpr(at, []), step, args[1])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = _two_variables(args)
    condition = args[2] if len(args) == 4 else None
    return _collect(at, target, var, var2, ListExpr(at, []), _append(at, args[-1]), condition)


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = _two_variables(args)
    condition = args[2] if len(args) == 4 else None
    step = CallNode(at, "cel.@mapInsert", [_accu(at), Ident(at, var), args[-1]])
    return _collect(at, target, var, var2, MapExpr(at, []), step, condition)


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node | None:
    var, var2 = _two_variables(args)
    condition = args[2] if len(args) == 4 else None
    step = CallNode(at, "cel.@mapInsert", [_accu(at), args[-1]])
    return _collect(at, target, var, var2, MapExpr(at, []), step, condition)


def bind(at: int, name: str, value: Node, body: Node) -> Node:
    """``body`` with ``name`` standing for ``value``, computed at most once."""
    return Comprehension(
        at,
        range=ListExpr(at, []),
        var="#unused",
        accu=name,
        init=value,
        condition=Literal(at, False),
        step=Ident(at, name),
        result=body,
    )


def _opt_map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    assert target is not None
    var = _variable(args[0])
    body = bind(at, var, CallNode(at, "value", [], target), args[1])
    some = CallNode(at, "optional.of", [body])
    return CallNode(
        at, "_?_:_", [CallNode(at, "hasValue", [], target), some, CallNode(at, "optional.none", [])]
    )


def _opt_flat_map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    assert target is not None
    var = _variable(args[0])
    body = bind(at, var, CallNode(at, "value", [], target), args[1])
    return CallNode(
        at, "_?_:_", [CallNode(at, "hasValue", [], target), body, CallNode(at, "optional.none", [])]
    )


def _is_cel(target: Node | None) -> bool:
    return isinstance(target, Ident) and target.ident == "cel"


def _cel_bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not _is_cel(target):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return bind(at, args[0].ident, args[1], args[2])


def _int_argument(node: Node, what: str) -> int:
    if isinstance(node, Literal) and type(node.value) is int and node.value >= 0:
        return node.value
    raise MacroError(node.offset, f"{what} requires a single non-negative int constant arg")


def _cel_index(at: int, target: Node | None, args: list[Node]) -> Node | None:
    return Ident(at, f"@index{_int_argument(args[0], 'cel.index()')}") if _is_cel(target) else None


def _cel_iter_var(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not _is_cel(target):
        return None
    depth, unique = (_int_argument(a, "cel.iterVar()") for a in args)
    return Ident(at, f"@it:{depth}:{unique}")


def _cel_accu_var(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not _is_cel(target):
        return None
    depth, unique = (_int_argument(a, "cel.accuVar()") for a in args)
    return Ident(at, f"@ac:{depth}:{unique}")


def _cel_block(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not _is_cel(target):
        return None
    if not isinstance(args[0], ListExpr):
        raise MacroError(args[0].offset, "cel.block requires the first arg to be a list literal")
    body = args[1]
    for index in reversed(range(len(args[0].elements))):
        body = bind(at, f"@index{index}", args[0].elements[index], body)
    return body


def _table(*rows: tuple[str, tuple[int, ...], bool, Expander]) -> dict[MacroKey, Expander]:
    return {(name, count, member): expand for name, counts, member, expand in rows for count in counts}


STANDARD = _table(
    ("has", (1,), False, _has),
    ("all", (2,), True, _all),
    ("exists", (2,), True, _exists),
    ("exists_one", (2,), True, _exists_one),
    ("existsOne", (2,), True, _exists_one),
    ("map", (2, 3), True, _map),
    ("filter", (2,), True, _filter),
)
TWO_VARIABLES = _table(
    ("all", (3,), True, _all),
    ("exists", (3,), True, _exists),
    ("exists_one", (3,), True, _exists_one),
    ("existsOne", (3,), True, _exists_one),
    ("transformList", (3, 4), True, _transform_list),
    ("transformMap", (3, 4), True, _transform_map),
    ("transformMapEntry", (3, 4), True, _transform_map_entry),
)
OPTIONAL = _table(("optMap", (2,), True, _opt_map), ("optFlatMap", (2,), True, _opt_flat_map))
BINDINGS = _table(
    ("bind", (3,), True, _cel_bind),
    ("block", (2,), True, _cel_block),
    ("index", (1,), True, _cel_index),
    ("iterVar", (2,), True, _cel_iter_var),
    ("accuVar", (2,), True, _cel_accu_var),
)
