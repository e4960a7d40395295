"""Tokens to tree, by recursive descent; macros are expanded on the way.

Grammar (lowest first): ``a ? b : c``; ``||``; ``&&``; relations; ``+ -``; ``* / %``; unary ``! -``; members
``.f``, ``.?f``, ``.f(…)``, ``[i]``, ``[?i]``; primaries. ``||`` and ``&&`` are built as balanced trees.
Depth is limited as in cel-go: no rule of its grammar may be open more than 250 times, where a chain of
n operators of one rule opens it n times. A faulty source is handed to ``syntax_errors`` for its messages.
"""

from __future__ import annotations

from collections.abc import Mapping

from apimachinery.cel.syntax import literals
from apimachinery.cel.syntax.ast import CallNode, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr
from apimachinery.cel.syntax.lexer import EOF, LexError, Token, tokenize
from apimachinery.cel.syntax.macros import Expander, MacroError, MacroKey
from apimachinery.cel.syntax.syntax_errors import syntax_issues
from apimachinery.cel.values.errors import CompileError, Issue
from apimachinery.cel.values.recursion import TooDeep, allow_depth

allow_depth()

MAX_DEPTH = 250
MAX_SIZE = 100_000
NO_LOCATION = -1

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS = {
    "'<'": "_<_",
    "'<='": "_<=_",
    "'>='": "_>=_",
    "'>'": "_>_",
    "'=='": "_==_",
    "'!='": "_!=_",
    "'in'": "@in",
}
_SUMS = {"'+'": "_+_", "'-'": "_-_"}
_PRODUCTS = {"'*'": "_*_", "'/'": "_/_", "'%'": "_%_"}


class _SyntaxFault(Exception):
    """The source does not follow the grammar; the messages are made elsewhere."""


class Positions:
    """Offsets of a source as line (from 1) and column (from 0)."""

    def __init__(self, source: str):
        self.length = len(source)
        self.starts = [0]
        at = source.find("\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = source.find("\n", at + 1)

    def issue(self, offset: int, message: str) -> Issue:
        """An issue at ``offset``."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        # Before the first character of nothing is a column less.
        return Issue(low + 1, offset - self.starts[low] if self.length else -1, message)


def parse(source: str, macros: Mapping[MacroKey, Expander], optional_syntax: bool = True) -> Node:
    """Parse ``source``; raise CompileError with everything that is wrong in it."""
    if len(source) > MAX_SIZE:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SIZE}"
        raise CompileError([Issue(NO_LOCATION, NO_LOCATION, message)], source)
    tokens, lex_errors = tokenize(source)
    try:
        return _parse(source, tokens, lex_errors, macros, optional_syntax)
    except TooDeep as deep:
        message = str(deep) or f"expression recursion limit exceeded: {MAX_DEPTH}"
        raise CompileError([Issue(NO_LOCATION, NO_LOCATION, message)], source) from None


def _parse(
    source: str,
    tokens: list[Token],
    lex_errors: list[LexError],
    macros: Mapping[MacroKey, Expander],
    optional_syntax: bool,
) -> Node:
    parser = _Parser(tokens, macros, optional_syntax)
    if not lex_errors:
        try:
            node = parser.whole()
            if not parser.faults:
                return node
            faults = parser.faults
        except _SyntaxFault:
            faults = []
    else:
        faults = []
    if not faults:
        found = syntax_issues(source, tokens, lex_errors, MAX_DEPTH)
        faults = [(offset, f"Syntax error: {message}") for offset, message in found]
    positions = Positions(source)
    issues = [positions.issue(offset, message) for offset, message in faults]
    raise CompileError(sorted(issues, key=lambda i: (i.line, i.column)), source)


class _Parser:
    def __init__(self, tokens: list[Token], macros: Mapping[MacroKey, Expander], optional_syntax: bool):
        self.tokens = tokens
        self.at = 0
        self.macros = macros
        self.optional_syntax = optional_syntax
        self.faults: list[tuple[int, str]] = []
        self.depth = 0  # open rules of the kind that is deepest in any nesting
        self.chain = {"relation": 0, "calc": 0, "member": 0}

    # The stream

    def take(self, kind: str) -> Token:
        token = self.tokens[self.at]
        if token[0] != kind:
            raise _SyntaxFault
        self.at += 1
        return token

    def fault(self, offset: int, message: str) -> Node:
        self.faults.append((offset, message))
        return Literal(offset, None)

    # Rules

    def whole(self) -> Node:
        node = self.expr()
        self.take(EOF)
        return node

    def expr(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep
        node = self.logical("'||'", "_||_")
        token = self.tokens[self.at]
        if token[0] == "'?'":
            self.at += 1
            then = self.logical("'||'", "_||_")
            self.take("':'")
            node = CallNode(token[2], "_?_:_", [node, then, self.expr()])
        self.depth -= 1
        return node

    def logical(self, kind: str, function: str) -> Node:
        below_or = kind == "'||'"
        node = self.logical("'&&'", "_&&_") if below_or else self.relation()
        if self.tokens[self.at][0] != kind:
            return node
        terms, offsets = [node], []
        while self.tokens[self.at][0] == kind:
            offsets.append(self.tokens[self.at][2])
            self.at += 1
            terms.append(self.logical("'&&'", "_&&_") if below_or else self.relation())
        # As cel-go: a chain of a thousand terms would else be a tree as deep, beyond the limits of recursion.
        return _balance(function, terms, offsets, 0, len(offsets) - 1)

    def link(self, rule: str) -> None:
        """Count one more link of a chain of operators of ``rule``."""
        self.chain[rule] += 1
        if self.chain[rule] + self.depth > MAX_DEPTH:
            raise TooDeep("max recursion depth exceeded")

    def relation(self) -> Node:
        node = self.sum()
        operator = _RELATIONS.get(self.tokens[self.at][0])
        if operator is None:
            return node
        links = self.chain["relation"]
        while operator is not None:
            self.link("relation")
            offset = self.tokens[self.at][2]
            self.at += 1
            node = CallNode(offset, operator, [node, self.sum()])
            operator = _RELATIONS.get(self.tokens[self.at][0])
        self.chain["relation"] = links
        return node

    def sum(self) -> Node:
        links = self.chain["calc"]
        node = self.product()
        operator = _SUMS.get(self.tokens[self.at][0])
        while operator is not None:
            self.link("calc")
            offset = self.tokens[self.at][2]
            self.at += 1
            node = CallNode(offset, operator, [node, self.product()])
            operator = _SUMS.get(self.tokens[self.at][0])
        self.chain["calc"] = links
        return node

    def product(self) -> Node:
        node = self.unary()
        operator = _PRODUCTS.get(self.tokens[self.at][0])
        if operator is None:
            return node
        while operator is not None:
            self.link("calc")
            offset = self.tokens[self.at][2]
            self.at += 1
            node = CallNode(offset, operator, [node, self.unary()])
            operator = _PRODUCTS.get(self.tokens[self.at][0])
        return node

    def unary(self) -> Node:
        token = self.tokens[self.at]
        kind = token[0]
        if kind != "'!'" and kind != "'-'":
            return self.member()
        # The sign is part of a literal: -9223372036854775808 is an int, without it the number is none.
        if kind == "'-'" and self.tokens[self.at + 1][0] in ("NUM_INT", "NUM_FLOAT"):
            return self.member()
        count = 0
        while self.tokens[self.at][0] == kind:
            count += 1
            self.at += 1
        operand = self.member()
        # As cel-go: an even number of signs is none, even before what cannot be negated.
        if count % 2 == 0:
            return operand
        return CallNode(token[2], "!_" if kind == "'!'" else "-_", [operand])

    def member(self) -> Node:
        node = self.primary()
        kind = self.tokens[self.at][0]
        if kind != "'.'" and kind != "'['":
            return node
        links = self.chain["member"]
        while True:
            token = self.tokens[self.at]
            if token[0] == "'.'":
                self.link("member")
                self.at += 1
                node = self.field(node, token)
            elif token[0] == "'['":
                self.link("member")
                self.at += 1
                optional = self.optional_mark()
                index = self.expr()
                self.take("']'")
                node = CallNode(token[2], "_[?_]" if optional else "_[_]", [node, index])
            else:
                self.chain["member"] = links
                return node

    def optional_mark(self) -> bool:
        token = self.tokens[self.at]
        if token[0] != "'?'":
            return False
        self.at += 1
        if not self.optional_syntax:
            self.fault(token[2], "unsupported syntax '?'")
        return True

    def field(self, operand: Node, dot: Token) -> Node:
        optional = self.optional_mark()
        token = self.tokens[self.at]
        if token[0] == "ESC_IDENTIFIER":
            name = token[1][1:-1]
        elif token[0] == "IDENTIFIER":
            name = token[1]
            following = self.tokens[self.at + 1]
            if following[0] == "'('" and not optional:
                self.at += 2
                return self.call(following[2], name, self.arguments(), operand)
        else:
            raise _SyntaxFault
        self.at += 1
        if optional:
            return CallNode(dot[2], "_?._", [operand, Literal(token[2], name)])
        return Select(dot[2], operand, name)

    def arguments(self) -> list[Node]:
        if self.tokens[self.at][0] == "')'":
            self.at += 1
            return []
        found = [self.expr()]
        while self.tokens[self.at][0] == "','":
            self.at += 1
            found.append(self.expr())
        self.take("')'")
        return found

    def call(self, offset: int, function: str, args: list[Node], target: Node | None) -> Node:
        expand = self.macros.get((function, len(args), target is not None))
        if expand is not None:
            try:
                expanded = expand(offset, target, args)
            except MacroError as error:
                return self.fault(error.offset, error.message)
            if expanded is not None:
                return expanded
        return CallNode(offset, function, args, target)

    def primary(self) -> Node:
        token = self.tokens[self.at]
        kind, text, offset = token
        if kind == "IDENTIFIER" or kind == "'.'":
            return self.named(token)
        self.at += 1
        if kind == "STRING":
            return self.literal(offset, text, literals.string_value)
        if kind == "NUM_INT":
            return self.literal(offset, text, literals.int_value)
        if kind == "'('":
            node = self.expr()
            self.take("')'")
            return node
        if kind == "'['":
            return self.list_literal(offset)
        if kind == "'{'":
            return self.map_literal(offset)
        if kind == "'true'":
            return Literal(offset, True)
        if kind == "'false'":
            return Literal(offset, False)
        if kind == "'null'":
            return Literal(offset, None)
        if kind == "NUM_FLOAT":
            return self.literal(offset, text, literals.double_value)
        if kind == "NUM_UINT":
            return self.literal(offset, text, literals.uint_value)
        if kind == "BYTES":
            return self.literal(offset, text, literals.bytes_value)
        if kind == "'-'":
            number = self.tokens[self.at]
            self.at += 1
            if number[0] == "NUM_INT":
                return self.literal(offset, "-" + number[1], literals.int_value)
            if number[0] == "NUM_FLOAT":
                return self.literal(offset, "-" + number[1], literals.double_value)
        raise _SyntaxFault

    def literal(self, offset: int, text: str, read) -> Node:  # type: ignore[no-untyped-def]
        try:
            return Literal(offset, read(text))
        except literals.LiteralError as error:
            return self.fault(offset, str(error))

    def named(self, token: Token) -> Node:
        """An identifier, a global call or a message, with or without a leading dot."""
        leading = token[0] == "'.'"
        if leading:
            self.at += 1
        if self.message_follows():
            return self.message(leading)
        name_token = self.take("IDENTIFIER")
        text = name_token[1]
        if text in RESERVED:
            self.fault(name_token[2], f"reserved identifier: {text}")
        name = "." + text if leading else text
        following = self.tokens[self.at]
        if following[0] == "'('":
            self.at += 1
            return self.call(following[2], name, self.arguments(), None)
        return Ident(token[2], name)

    def message_follows(self) -> bool:
        tokens, at = self.tokens, self.at
        while tokens[at][0] == "IDENTIFIER":
            following = tokens[at + 1][0]
            if following == "'{'":
                return True
            if following != "'.'":
                return False
            at += 2
        return False

    def message(self, leading: bool) -> Node:
        names = [self.take("IDENTIFIER")[1]]
        while self.tokens[self.at][0] == "'.'":
            self.at += 1
            names.append(self.take("IDENTIFIER")[1])
        offset = self.take("'{'")[2]
        entries: list[tuple[str, Node, bool, int]] = []
        self.lone_comma("'}'")
        while self.tokens[self.at][0] != "'}'":
            if entries:
                self.take("','")
                if self.tokens[self.at][0] == "'}'":
                    break
            optional = self.optional_mark()
            token = self.tokens[self.at]
            if token[0] not in ("IDENTIFIER", "ESC_IDENTIFIER"):
                raise _SyntaxFault
            self.at += 1
            colon = self.take("':'")
            field = token[1].strip("`")
            entries.append((field, self.expr(), optional, colon[2]))
        self.take("'}'")
        return StructExpr(offset, ("." if leading else "") + ".".join(names), entries)

    def lone_comma(self, closing: str) -> None:
        """Takes ``[,]`` for ``[]``, as the grammar does."""
        if self.tokens[self.at][0] == "','" and self.tokens[self.at + 1][0] == closing:
            self.at += 1

    def list_literal(self, offset: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        self.lone_comma("']'")
        while self.tokens[self.at][0] != "']'":
            if elements:
                self.take("','")
                if self.tokens[self.at][0] == "']'":
                    break
            if self.optional_mark():
                optional.add(len(elements))
            elements.append(self.expr())
        self.take("']'")
        return ListExpr(offset, elements, frozenset(optional))

    def map_literal(self, offset: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        colons: list[int] = []
        self.lone_comma("'}'")
        while self.tokens[self.at][0] != "'}'":
            if entries:
                self.take("','")
                if self.tokens[self.at][0] == "'}'":
                    break
            optional = self.optional_mark()
            key = self.expr()
            colons.append(self.take("':'")[2])
            entries.append((key, self.expr(), optional))
        self.take("'}'")
        return MapExpr(offset, entries, tuple(colons))


def _balance(function: str, terms: list[Node], offsets: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balance(function, terms, offsets, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balance(function, terms, offsets, middle + 1, high)
    return CallNode(offsets[middle], function, [left, right])
