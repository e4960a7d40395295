"""CEL's grammar as a transition network, for the messages of syntax errors only.

A rule is a graph of states from a start to a stop. A state matches a token set, calls a rule, or decides between
ways; its kind says how a parser with error recovery behaves there (block, loop entry, loop back).
The grammar's left-recursive rules are written as loops, which accept the same and expect the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

EOF = "<EOF>"
# The order in which messages list token kinds.
ORDER = (
    EOF, "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "']'", "'{'", "'}'", "'('",
    "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'", "'*'", "'/'", "'%'", "'true'", "'false'", "'null'",
    "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER",
)  # fmt: skip
EPSILON = ""


class State:
    """A state. ``tokens`` or ``rule`` lead to ``targets[0]``; otherwise each target is a way without input."""

    __slots__ = ("kind", "number", "rule", "targets", "tokens")

    def __init__(self, number: int, kind: str = "basic"):
        self.number = number
        self.kind = kind
        self.tokens: frozenset[str] | None = None
        self.rule = ""
        self.targets: list[State] = []


Part = Callable[["Network", State], State]


class Network:
    """All rules, linked; ``follow`` lists for each rule the states after its calls."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.start: dict[str, State] = {}
        self.stop: dict[str, State] = {}
        self.follow: dict[str, list[State]] = {}
        self.rule_of: dict[int, str] = {}
        self._next: dict[int, frozenset[str]] = {}

    def state(self, kind: str = "basic") -> State:
        """A new state."""
        made = State(len(self.states), kind)
        self.states.append(made)
        return made

    def rule(self, name: str, body: Part) -> None:
        """Define a rule."""
        self.start[name] = self.state()
        self.stop[name] = self.state("stop")
        body(self, self.start[name]).targets.append(self.stop[name])

    def link(self) -> None:
        """Collect the states after each rule's calls."""
        self.follow = {name: [] for name in self.start}
        self.rule_of = {stop.number: name for name, stop in self.stop.items()}
        for state in self.states:
            if state.rule:
                self.follow[state.rule].append(state.targets[0])

    def next_tokens(self, state: State) -> frozenset[str]:
        """The tokens that may come at ``state``; with EPSILON if its rule may end before any."""
        found = self._next.get(state.number)
        if found is None:
            found = self._next[state.number] = frozenset(self._look(state, set()))
        return found

    def _look(self, state: State, seen: set[int]) -> set[str]:
        if state.number in seen:
            return set()
        seen.add(state.number)
        if state.kind == "stop":
            return {EPSILON}
        if state.tokens is not None:
            return set(state.tokens)
        if state.rule:
            inner = self._look(self.start[state.rule], seen)
            if EPSILON in inner:
                inner = (inner - {EPSILON}) | self._look(state.targets[0], seen)
            return inner
        found: set[str] = set()
        for target in state.targets:
            found |= self._look(target, seen)
        return found


def tok(*kinds: str) -> Part:
    """One token of ``kinds``."""

    def build(net: Network, at: State) -> State:
        here = net.state()
        at.targets.append(here)
        here.tokens = frozenset(kinds)
        after = net.state()
        here.targets.append(after)
        return after

    return build


def call(name: str) -> Part:
    """A call of a rule."""

    def build(net: Network, at: State) -> State:
        here = net.state()
        at.targets.append(here)
        here.rule = name
        after = net.state()
        here.targets.append(after)
        return after

    return build


def seq(*parts: Part) -> Part:
    """One after the other."""

    def build(net: Network, at: State) -> State:
        for part in parts:
            at = part(net, at)
        return at

    return build


def either(*parts: Part) -> Part:
    """One of several."""

    def build(net: Network, at: State) -> State:
        block, end = net.state("block"), net.state()
        at.targets.append(block)
        for part in parts:
            way = net.state()
            block.targets.append(way)
            part(net, way).targets.append(end)
        return end

    return build


def maybe(part: Part) -> Part:
    """Once or not."""
    return either(part, lambda net, at: at)


def star(part: Part) -> Part:
    """Any number of times."""

    def build(net: Network, at: State) -> State:
        entry, inside, outside = net.state("star entry"), net.state(), net.state()
        at.targets.append(entry)
        entry.targets += [inside, outside]
        back = net.state("star back")
        part(net, inside).targets.append(back)
        back.targets += [inside, outside]
        return outside

    return build


def plus(part: Part) -> Part:
    """Once or more."""

    def build(net: Network, at: State) -> State:
        block, outside, back = net.state("block"), net.state(), net.state("plus back")
        at.targets.append(block)
        inside = net.state()
        block.targets.append(inside)
        part(net, inside).targets.append(back)
        back.targets += [inside, outside]
        return outside

    return build


@cache
def network() -> Network:
    """The grammar."""
    net = Network()
    for rule, body in {**_operators(), **_operands(), **_lists()}.items():
        net.rule(rule, body)
    net.link()
    return net


def _operators() -> dict[str, Part]:
    opt, name = maybe(tok("'?'")), call("escapeIdent")
    return {
        "start": seq(call("expr"), tok(EOF)),
        "expr": seq(call("or"), maybe(seq(tok("'?'"), call("or"), tok("':'"), call("expr")))),
        "or": seq(call("and"), star(seq(tok("'||'"), call("and")))),
        "and": seq(call("relation"), star(seq(tok("'&&'"), call("relation")))),
        "relation": seq(
            call("calc"),
            star(seq(tok("'<'", "'<='", "'>='", "'>'", "'=='", "'!='", "'in'"), call("calc"))),
        ),
        "calc": seq(call("unary"), star(seq(tok("'*'", "'/'", "'%'", "'+'", "'-'"), call("unary")))),
        "unary": either(
            call("member"),
            seq(plus(tok("'!'")), call("member")),
            seq(plus(tok("'-'")), call("member")),
        ),
        "member": seq(
            call("primary"),
            star(
                either(
                    seq(tok("'.'"), opt, name),
                    seq(tok("'.'"), tok("IDENTIFIER"), tok("'('"), maybe(call("exprList")), tok("')'")),
                    seq(tok("'['"), opt, call("expr"), tok("']'")),
                )
            ),
        ),
    }


def _operands() -> dict[str, Part]:
    comma = maybe(tok("','"))
    return {
        "primary": either(
            seq(maybe(tok("'.'")), tok("IDENTIFIER")),
            seq(maybe(tok("'.'")), tok("IDENTIFIER"), tok("'('"), maybe(call("exprList")), tok("')'")),
            seq(tok("'('"), call("expr"), tok("')'")),
            seq(tok("'['"), maybe(call("listInit")), comma, tok("']'")),
            seq(tok("'{'"), maybe(call("mapInit")), comma, tok("'}'")),
            seq(
                maybe(tok("'.'")),
                tok("IDENTIFIER"),
                star(seq(tok("'.'"), tok("IDENTIFIER"))),
                tok("'{'"),
                maybe(call("fieldInit")),
                comma,
                tok("'}'"),
            ),
            call("literal"),
        ),
    }


def _lists() -> dict[str, Part]:
    opt, comma = maybe(tok("'?'")), tok("','")
    return {
        "exprList": seq(call("expr"), star(seq(comma, call("expr")))),
        "listInit": seq(call("optExpr"), star(seq(comma, call("optExpr")))),
        "fieldInit": seq(
            call("optField"),
            tok("':'"),
            call("expr"),
            star(seq(comma, call("optField"), tok("':'"), call("expr"))),
        ),
        "optField": seq(opt, call("escapeIdent")),
        "mapInit": seq(
            call("optExpr"),
            tok("':'"),
            call("expr"),
            star(seq(comma, call("optExpr"), tok("':'"), call("expr"))),
        ),
        "escapeIdent": either(tok("IDENTIFIER"), tok("ESC_IDENTIFIER")),
        "optExpr": seq(opt, call("expr")),
        "literal": either(
            seq(maybe(tok("'-'")), tok("NUM_INT")),
            seq(maybe(tok("'-'")), tok("NUM_FLOAT")),
            *(tok(kind) for kind in ("NUM_UINT", "STRING", "BYTES", "'true'", "'false'", "'null'")),
        ),
    }
