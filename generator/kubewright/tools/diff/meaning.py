"""What a CEL rule says, whatever words it says it in.

A rule becomes a term in normal form: without spaces, quotes, brackets and names of macro variables, conjunctions and
disjunctions without order, conditions drawn out of the calls they stand in, what is constant computed. Every step keeps
the value and the failures of the expression (``a || b`` is true though ``a`` fails, ``a ? b : true`` is not), so rules
with equal terms accept and refuse the same. That other rules differ is not said by different terms.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md, logical operators and errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, reduce
from itertools import permutations
from typing import Any, Final, Protocol, TypeAlias

from apimachinery.cel.libraries.catalog import ALL_MACROS
from apimachinery.cel.syntax.ast import (
    CallNode,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
)
from apimachinery.cel.syntax.macros import Expander, MacroKey
from apimachinery.cel.syntax.parser import parse
from apimachinery.cel.values.errors import CompileError

Term: TypeAlias = tuple[Any, ...]
"""``("and", terms)``, ``("has", of, field)``, …: the first says what it is, all is hashable."""

_MACROS: dict[MacroKey, Expander] = reduce(lambda all_, some: {**all_, **some}, ALL_MACROS, {})
_MAX_STEPS: Final = 20_000
"""How many terms may be made for one rule: conditions drawn out of many arguments double them each time."""


class _TooLarge(Exception):
    pass


class _Budget:
    """What is left of the steps of the rule at hand."""

    left = _MAX_STEPS

    @classmethod
    def spend(cls) -> None:
        """Counts one step. Raises ``_TooLarge``."""
        cls.left -= 1
        if cls.left < 0:
            raise _TooLarge


def _constant(value: Any) -> Term:
    return (
        "constant",
        type(value).__name__,
        repr(value),
        value if isinstance(value, bool | int | str) else None,
    )


TRUE: Final = _constant(True)
FALSE: Final = _constant(False)


_COUNTED: Final = re.compile(
    r"\[((?:has\([\w.]+\)(?:,\s*(?=has)|))+)\]\.filter\((\w+),\s*\2\s*==\s*true\)\.size\(\)"
)
"""How kubebuilder's AtMostOneOf and ExactlyOneOf count the fields that are there."""


def _sum(found: re.Match[str]) -> str:
    """The count as a sum, which is computed where it is known which fields are there."""
    return "(" + " + ".join(f"({each} ? 1 : 0)" for each in re.findall(r"has\([\w.]+\)", found[1])) + ")"


@cache
def meaning(rule: str) -> Term:
    """A term that two rules share only where they say the same; the text itself where it cannot be parsed."""
    _Budget.left = _MAX_STEPS
    try:
        return _read(parse(_COUNTED.sub(_sum, rule), _MACROS), {})
    except (CompileError, RecursionError, _TooLarge):
        return ("text", rule)


def is_implied(term: Term, others: Iterable[Term]) -> bool:
    """Whether what passes all ``others`` passes ``term``: because it is one of them, a part of one, or weaker by an
    alternative, also inside."""
    known = [*others]
    try:
        return all(any(_implies(other, part) for other in known) for part in _parts("and", term))
    except RecursionError:
        return False


def _implies(given: Term, term: Term) -> bool:
    """Whether ``term`` is true wherever ``given`` is."""
    if given == term:
        return True
    if given[0] == "or":
        return all(_implies(each, term) for each in given[1])
    if term[0] == "and":
        return all(_implies(given, each) for each in term[1])
    if given[0] == "and" and any(_implies(each, term) for each in given[1]):
        return True
    return term[0] == "or" and any(_implies(given, each) for each in term[1])


class OldState(Protocol):
    """What is known of objects of a state."""

    def is_there(self, path: tuple[str, ...]) -> bool | None:
        """Whether they have the field at ``path``; ``None`` where some may."""

    def never_is(self, path: tuple[str, ...], term: Term) -> bool:
        """Whether the field at ``path`` is always there, and never a constant."""


def assuming(term: Term, state: OldState) -> Term:
    """``term`` of objects of a state."""
    _Budget.left = _MAX_STEPS
    try:
        return _assuming(term, state)
    except (_TooLarge, RecursionError):
        return term


def _assuming(term: Term, there: OldState) -> Term:
    if term[0] == "has" and (path := _path(term)) is not None:
        known = there.is_there(path)
        return term if known is None else TRUE if known else FALSE
    if term[0] == "call" and term[1] in ("_==_", "_!=_"):
        for one, other in permutations(term[2]):
            path = _path(one)
            if path and there.never_is(path, other):
                return FALSE if term[1] == "_==_" else TRUE
    parts = tuple(_assuming(p, there) if _is_term(p) else _each(p, there) for p in term[1:])
    if term[0] in ("constant", "text"):
        return term
    return _made(term[0], parts)


def _each(part: Any, there: OldState) -> Any:
    if isinstance(part, frozenset):
        return frozenset(_assuming(each, there) for each in part)
    if isinstance(part, tuple):
        return tuple(_assuming(each, there) if _is_term(each) else each for each in part)
    return part


def _is_term(part: Any) -> bool:
    return isinstance(part, tuple) and bool(part) and isinstance(part[0], str)


def _path(term: Term) -> tuple[str, ...] | None:
    """Of a chain of selections from ``self``: its fields."""
    if term[0] == "name":
        return () if term[1] == "self" else None
    if term[0] not in ("has", "select"):
        return None
    above = _path(term[1])
    return None if above is None else (*above, term[2])


def _parts(joint: str, term: Term) -> frozenset[Term]:
    return term[1] if term[0] == joint else frozenset({term})


def _read(node: Node, bound: dict[str, str]) -> Term:
    """``bound`` holds the names of variables of macros, by what the rule calls them."""
    _Budget.spend()
    match node:
        case Literal():
            return _constant(node.value)
        case Ident():
            return ("name", bound.get(node.ident, node.ident))
        case Select():
            kind = "has" if node.test_only else "select"
            return _made(kind, (_read(node.operand, bound), node.field))
        case CallNode():
            return _call(node, bound)
        case ListExpr() if not node.optional:
            return ("list", tuple(_read(each, bound) for each in node.elements))
        case MapExpr() if not any(optional for _, _, optional in node.entries):
            pairs = [(_read(key, bound), _read(value, bound)) for key, value, _ in node.entries]
            return ("map", *(("pair", *pair) for pair in pairs))
        case Comprehension():
            return _fold(node, bound)
    raise _TooLarge  # what rules have hardly ever is compared as text


def _call(node: CallNode, bound: dict[str, str]) -> Term:
    args = tuple(_read(each, bound) for each in node.args)
    if node.target is not None:
        args = (_read(node.target, bound), *args)
    match node.function:
        case "_&&_":
            return _joined("and", args)
        case "_||_":
            return _joined("or", args)
        case "!_":
            return _negated(args[0])
        case "_?_:_":
            return _chosen(*args)
        case name:
            # size(x) and x.size() are one; a method is otherwise no function.
            word = name if node.target is None or name == "size" else f".{name}"
            return _made("call", (word, args))


def _fold(node: Comprehension, bound: dict[str, str]) -> Term:
    depth = str(len(bound))
    names = {node.var: f"#{depth}", node.accu: f"@{depth}"}
    if node.var2:
        names[node.var2] = f"#{depth}b"
    inside = {**bound, **names}
    over = _read(node.range, bound)
    rest = (
        _read(node.init, bound),
        *(_read(each, inside) for each in (node.condition, node.step, node.result)),
    )
    return _made("fold", (over, *rest, ("name", names[node.accu])))


def _made(kind: str, parts: tuple[Any, ...]) -> Term:
    """A term of that kind in normal form, from parts that are."""
    if kind in ("and", "or"):
        return _joined(kind, parts[0])
    if kind == "not":
        return _negated(parts[0])
    if kind == "if":
        return _chosen(*parts)
    if kind in ("has", "select", "fold") and parts[0][0] == "if":
        _, condition, one, other = parts[0]
        return _chosen(condition, _made(kind, (one, *parts[1:])), _made(kind, (other, *parts[1:])))
    if kind == "fold" and parts[0] in (("list", ()), ("map",)):
        return parts[1] if parts[3] == parts[4] else (kind, *parts)
    if kind == "call":
        return _called(*parts)
    return (kind, *parts)


def _called(name: str, args: tuple[Term, ...]) -> Term:
    _Budget.spend()
    for place, arg in enumerate(args):
        if arg[0] == "if":  # functions fail where an argument does, so a condition may be asked first
            _, condition, one, other = arg
            made = [_called(name, (*args[:place], each, *args[place + 1 :])) for each in (one, other)]
            return _chosen(condition, *made)
    if name == "_!=_":
        return _negated(_called("_==_", args))
    if name in ("_>_", "_>=_"):
        return _called(name.replace(">", "<"), args[::-1])
    if name == "_==_":
        args = tuple(sorted(args, key=repr))
    known = _computed(name, args)
    return ("call", name, args) if known is None else known


def _computed(name: str, args: tuple[Term, ...]) -> Term | None:
    if name == "size" and args[0] in (("list", ()), ("map",)):
        return _constant(0)
    if len(args) != 2 or not all(arg[0] == "constant" and arg[3] is not None for arg in args):
        return None
    one, other = args[0][3], args[1][3]
    if name == "_==_" and type(one) is type(other):
        return _constant(one == other)
    if isinstance(one, str) and isinstance(other, str) and name == ".startsWith":
        return _constant(one.startswith(other))
    if type(one) is int and type(other) is int:
        if name == "_+_" and abs(one + other) < 2**62:
            return _constant(one + other)
        if name in ("_<_", "_<=_"):
            return _constant(one < other if name == "_<_" else one <= other)
    return None


def _negated(term: Term) -> Term:
    _Budget.spend()
    match term[0]:
        case "constant" if term in (TRUE, FALSE):
            return FALSE if term == TRUE else TRUE
        case "not":
            inner: Term = term[1]
            return inner
        case "and" | "or":
            return _joined("or" if term[0] == "and" else "and", [_negated(each) for each in term[1]])
        case "if":
            return _chosen(term[1], _negated(term[2]), _negated(term[3]))
    return ("not", term)


def _joined(joint: str, terms: Iterable[Term]) -> Term:
    """``and`` or ``or`` of terms: in no order, each once."""
    _Budget.spend()
    ends, idle = (FALSE, TRUE) if joint == "and" else (TRUE, FALSE)
    parts = {part for term in terms for part in _parts(joint, term)} - {idle}
    other = "or" if joint == "and" else "and"
    sure = [part for part in parts if _never_fails(part)]
    if ends in parts or any(_negated(part) in parts for part in sure):
        return ends
    found: set[Term] = set()
    for part in parts:
        if part[0] == other:
            # a && (!a || b) is a && b, and a || (!a && b) is a || b.
            needless = {_negated(each) for each in sure if each != part}
            part = _joined(other, part[1] - needless) if part[1] & needless else part
        found |= _parts(joint, part)
    found -= {idle}
    if found != parts:
        return _joined(joint, found)
    if not found:
        return idle
    return next(iter(found)) if len(found) == 1 else (joint, frozenset(found))


def _chosen(condition: Term, one: Term, other: Term) -> Term:
    """``condition ? one : other``."""
    _Budget.spend()
    if condition in (TRUE, FALSE):
        return one if condition == TRUE else other
    if condition[0] == "if":
        _, first, yes, no = condition
        return _chosen(first, _chosen(yes, one, other), _chosen(no, one, other))
    if condition[0] == "not":
        return _chosen(condition[1], other, one)
    if _never_fails(condition):
        if one == other:
            return one
        for side, joint, asked, rest in (
            (one, "or", condition, other),
            (other, "or", _negated(condition), one),
            (one, "and", _negated(condition), other),
            (other, "and", condition, one),
        ):
            if side == (TRUE if joint == "or" else FALSE):
                return _joined(joint, (asked, rest))
    return ("if", condition, one, other)


def _never_fails(term: Term, given: frozenset[Term] = frozenset()) -> bool:
    """Whether a term has a value, whatever the object, where ``given`` hold: ``has(self.x)`` and what is made of such,
    and ``has(self.x.y)`` next to it."""
    match term[0]:
        case "constant":
            return True
        case "has":
            above = term[1]
            return bool(above == ("name", "self") or (above[0] == "select" and ("has", *above[1:]) in given))
        case "not":
            return _never_fails(term[1], given)
        case "and" | "or":
            return _never_fail(term[1], given, is_and=term[0] == "and")
        case "if":
            return all(_never_fails(each, given) for each in term[1:])
    return False


def _never_fail(terms: frozenset[Term], given: frozenset[Term], *, is_and: bool) -> bool:
    """Of operands: one that is not reached may fail, as ``has(self.x) && has(self.x.y)`` does not."""
    left = set(terms)
    while sure := {each for each in left if _never_fails(each, given)}:
        left -= sure
        given |= sure if is_and else {_negated(each) for each in sure}
    return not left
