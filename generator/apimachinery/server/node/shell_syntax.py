"""The grammar of the small shell: a text becomes a tree of commands.

Lists (``;``, newline, ``&&``, ``||``), pipes, ``!``, ``if``, ``while``, ``until``, ``for``, ``{ }``, ``( )``,
assignments, redirections, quotes, and ``$NAME``, ``${NAME}``, ``${NAME:-ELSE}``, ``$(COMMAND)``, ``$((SUM))`` in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

_OPERATOR: Final = re.compile(r"&&|\|\||;;|>>|>&|&>|<<|[;&|<>()\n]")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[?$#@*0-9]")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)=")
_BRACED: Final = re.compile(r"\{([A-Za-z_]\w*|[?$#@*0-9])(?::?-([^{}]*))?\}")
_REDIRECTIONS: Final = frozenset((">", ">>", "<", ">&", "&>"))
_OPENERS: Final = frozenset(("if", "while", "until", "for", "{"))
_ENDS: Final = frozenset(("then", "elif", "else", "fi", "do", "done", "}"))
_NEVER: Final = frozenset(("case", "esac", "function", "select"))


class ShellSyntaxError(ValueError):
    """A text that is no command, or one that this shell does not know."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: ``text``, or what is put in its place: a ``variable`` (with ``other`` where it has no value),
    the output of a ``command``, a ``sum``."""

    kind: str
    text: str
    quoted: bool = False
    other: str = ""


Word: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a channel goes, or comes from: ``number`` is 0, 1 or 2."""

    number: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """A program with its words, or assignments alone."""

    assigned: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Piped:
    """Commands of which each reads what the one before says."""

    parts: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class CommandList:
    """Commands with what joins each to the one before: ``;``, ``&&`` or ``||``."""

    items: tuple[tuple[str, Piped], ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """Commands in brackets, whose variables and ``exit`` are their own."""

    body: CommandList


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with what runs where the first of them holds."""

    branches: tuple[tuple[CommandList, CommandList], ...]
    other: CommandList


@dataclass(frozen=True, slots=True)
class LoopWhile:
    """``while``, or ``until`` where it is so ``negated``."""

    condition: CommandList
    body: CommandList
    negated: bool


@dataclass(frozen=True, slots=True)
class For:
    """A round for each word."""

    name: str
    words: tuple[Word, ...]
    body: CommandList


Node: TypeAlias = Simple | CommandList | Subshell | If | LoopWhile | For


def parse_shell(text: str) -> CommandList:
    """The commands of a text. Raises ShellSyntaxError."""
    return _Parser(_Words(text).tokens()).whole()


class _Words:
    """Words and operators of a text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text.replace("\\\n", ""), 0

    def tokens(self) -> list[str | Word]:
        """Operators as texts, words as tuples; a number before a redirection is part of the operator."""
        found: list[str | Word] = []
        while self.at < len(self.text):
            mark = self.text[self.at]
            number = re.compile(r"([012])(>>|>&|>|<)").match(self.text, self.at)
            operator = _OPERATOR.match(self.text, self.at)
            if mark in " \t\r":
                self.at += 1
            elif mark == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif number is not None or operator is not None:
                taken = number or operator
                assert taken is not None
                found.append(taken[0])
                self.at = taken.end()
            else:
                found.append(self._word())
        return found

    def _word(self) -> Word:
        pieces: list[Piece] = []
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark in " \t\r" or _OPERATOR.match(self.text, self.at):
                break
            if mark == "'":
                pieces.append(Piece("text", self._until("'"), quoted=True))
            elif mark == '"':
                pieces += self._quoted()
            elif mark == "\\":
                pieces.append(Piece("text", self.text[self.at + 1 : self.at + 2], quoted=True))
                self.at += 2
            elif mark in "$`":
                pieces.append(self._put(quoted=False))
            else:
                pieces.append(Piece("text", mark))
                self.at += 1
        return _joined(pieces)

    def _until(self, mark: str) -> str:
        end = self.text.find(mark, self.at + 1)
        if end < 0:
            raise ShellSyntaxError(f"no closing {mark}")
        found, self.at = self.text[self.at + 1 : end], end + 1
        return found

    def _quoted(self) -> list[Piece]:
        pieces = [Piece("text", "", quoted=True)]
        self.at += 1
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == '"':
                self.at += 1
                return pieces
            if mark in "$`":
                pieces.append(self._put(quoted=True))
                continue
            if mark == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "$", "\\", "`"):
                self.at += 1
            pieces.append(Piece("text", self.text[self.at], quoted=True))
            self.at += 1
        raise ShellSyntaxError('no closing "')

    def _put(self, *, quoted: bool) -> Piece:
        """What begins with ``$`` or a backquote."""
        if self.text[self.at] == "`":
            return Piece("command", self._until("`"), quoted)
        self.at += 1
        if self.text.startswith("((", self.at):
            return Piece("sum", self._balanced()[1:-1], quoted)
        if self.text.startswith("(", self.at):
            return Piece("command", self._balanced(), quoted)
        found = _BRACED.match(self.text, self.at) or _NAME.match(self.text, self.at)
        if found is None:
            if self.text.startswith("{", self.at):
                raise ShellSyntaxError("bad substitution")
            return Piece("text", "$", quoted)
        self.at = found.end()
        if found.re is _BRACED:
            return Piece("variable", found[1], quoted, found[2] or "")
        return Piece("variable", found[0], quoted)

    def _balanced(self) -> str:
        """What is between brackets, which may be in it too, but for those in quotes."""
        start, depth, quote = self.at + 1, 0, ""
        for at in range(self.at, len(self.text)):
            mark = self.text[at]
            if quote:
                quote = "" if mark == quote else quote
            elif mark in "'\"":
                quote = mark
            elif mark in "()":
                depth += 1 if mark == "(" else -1
                if not depth:
                    self.at = at + 1
                    return self.text[start:at]
        raise ShellSyntaxError("no closing )")


def _joined(pieces: list[Piece]) -> Word:
    """A word with texts of the same sort in one piece."""
    found: list[Piece] = []
    for piece in pieces:
        if found and piece.kind == found[-1].kind == "text" and piece.quoted == found[-1].quoted:
            found[-1] = Piece("text", found[-1].text + piece.text, piece.quoted)
        else:
            found.append(piece)
    return tuple(found)


class _Parser:
    def __init__(self, tokens: list[str | Word]) -> None:
        self._tokens, self._at = tokens, 0

    def whole(self) -> CommandList:
        found = self._list()
        if self._at < len(self._tokens):
            raise ShellSyntaxError(f"unexpected {self._shown()}")
        return found

    @property
    def _next(self) -> str | Word | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _keyword(self) -> str:
        """The next word where it is plain; empty otherwise."""
        word = self._next
        if isinstance(word, tuple) and len(word) == 1 and word[0].kind == "text" and not word[0].quoted:
            return word[0].text
        return ""

    def _shown(self) -> str:
        return self._keyword() or (repr(self._next) if isinstance(self._next, str) else "end")

    def _takes(self, *wanted: str) -> bool:
        if self._next in wanted or (self._keyword() in wanted and self._keyword()):
            self._at += 1
            return True
        return False

    def _expect(self, wanted: str) -> None:
        if not self._takes(wanted):
            raise ShellSyntaxError(f"expected {wanted}, not {self._shown()}")

    def _list(self) -> CommandList:
        items: list[tuple[str, Piped]] = []
        joint = ";"
        while True:
            while joint == ";" and self._takes(";", "\n"):
                pass
            while joint != ";" and self._takes("\n"):
                pass
            if self._next is None or self._next == ")" or self._keyword() in _ENDS:
                break
            items.append((joint, self._pipeline()))
            joint = self._next if isinstance(self._next, str) else ";"
            if joint == "&":
                raise ShellSyntaxError("jobs in the background are not simulated")
            if joint in ("&&", "||", ";", "\n"):
                self._at += 1
            joint = joint if joint in ("&&", "||") else ";"
        return CommandList(tuple(items))

    def _pipeline(self) -> Piped:
        negated = self._takes("!")
        parts = [self._command()]
        while self._takes("|"):
            parts.append(self._command())
        return Piped(tuple(parts), negated)

    def _command(self) -> Node:
        keyword = self._keyword()
        if keyword in _NEVER:
            raise ShellSyntaxError(f"{keyword} is not simulated")
        if self._takes("("):
            return self._closed(lambda: Subshell(self._list()), ")")
        if keyword not in _OPENERS:
            return self._simple()
        self._at += 1
        match keyword:
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "{":
                return self._closed(self._list, "}")
        condition = self._list()
        self._expect("do")
        return self._closed(lambda: LoopWhile(condition, self._list(), keyword == "until"), "done")

    def _closed(self, inner: Callable[[], Node], end: str) -> Node:
        found = inner()
        self._expect(end)
        if self._redirects():
            raise ShellSyntaxError(f"redirections after {end} are not simulated")
        return found

    def _redirects(self) -> bool:
        return isinstance(self._next, str) and self._next.lstrip("012") in _REDIRECTIONS

    def _if(self) -> Node:
        branches = [self._branch()]
        while self._takes("elif"):
            branches.append(self._branch())
        other = self._list() if self._takes("else") else CommandList(())
        return self._closed(lambda: If(tuple(branches), other), "fi")

    def _branch(self) -> tuple[CommandList, CommandList]:
        condition = self._list()
        self._expect("then")
        return condition, self._list()

    def _for(self) -> Node:
        name = self._keyword()
        self._at += 1
        self._expect("in")
        words: list[Word] = []
        while isinstance(self._next, tuple):
            words.append(self._next)
            self._at += 1
        self._takes(";", "\n")
        while self._takes("\n"):
            pass
        self._expect("do")
        return self._closed(lambda: For(name, tuple(words), self._list()), "done")

    def _simple(self) -> Simple:
        assigned: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while self._next is not None:
            token = self._next
            if isinstance(token, tuple):
                self._at += 1
                match = None if words else _assignment(token)
                if match is None:
                    words.append(token)
                else:
                    assigned.append(match)
            elif self._redirects():
                self._at += 1
                redirections.append(self._redirection(token))
            else:
                break
        if not (assigned or words or redirections):
            raise ShellSyntaxError(f"unexpected {self._shown()}")
        return Simple(tuple(assigned), tuple(words), tuple(redirections))

    def _redirection(self, token: str) -> Redirection:
        target = self._next
        if not isinstance(target, tuple):
            raise ShellSyntaxError(f"no file after {token}")
        self._at += 1
        operator = token.lstrip("012")
        number = int(token[0]) if token[0] in "012" else (0 if operator == "<" else 1)
        return Redirection(number, operator, target)


def _assignment(word: Word) -> tuple[str, Word] | None:
    """The name and the value of ``NAME=VALUE``."""
    first = word[0]
    match = _ASSIGNED.match(first.text) if first.kind == "text" and not first.quoted else None
    if match is None:
        return None
    rest = first.text[match.end() :]
    return match[1], ((Piece("text", rest), *word[1:]) if rest else word[1:])
