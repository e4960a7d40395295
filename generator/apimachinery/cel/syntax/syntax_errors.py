"""The messages for a source that does not follow the grammar.

Users of kube-apiserver know the messages of an LL(*) parser with single-token repair, so one is run here, on
faulty sources only. At a wrong token it deletes it if the next one fits (``extraneous input``), or supposes the
expected one (``missing``), else it gives the rule up (``mismatched input``, ``no viable alternative``) and skips to
what may follow any open rule. Until a token matches again nothing more is reported.
"""

from __future__ import annotations

from typing import Any

from apimachinery.cel.syntax.grammar import EOF, EPSILON, ORDER, State, network
from apimachinery.cel.syntax.lexer import LexError, Token
from apimachinery.cel.values.recursion import TooDeep

MAX_REPAIRS = 30
MAX_STEPS = 20_000
_RANK = {kind: rank for rank, kind in enumerate(ORDER)}

Found = list[tuple[int, str]]
Stack = tuple[int, Any] | None
# state, callers within the lookahead, way, whether the decision's own rule was left
Config = tuple[int, Stack, int, bool]


def syntax_issues(source: str, tokens: list[Token], lex_errors: list[LexError], depth: int) -> Found:
    """(offset, message) of every syntax error, those of the lexer included; TooDeep past ``depth``."""
    found: Found = [(e.offset, f"token recognition error at: '{_escaped(e.text)}'") for e in lex_errors]
    recovery = _Recovery(source, tokens, depth)
    try:
        recovery.rule("start")
    except _TooManyRepairs:
        recovery.found.append(
            (recovery.token().offset, f"error recovery attempt limit exceeded: {MAX_REPAIRS}")
        )
    found += recovery.found
    return found or [(tokens[-1].offset, "no viable alternative")]


class _TooManyRepairs(Exception):
    pass


class _Mismatch(Exception):
    pass


class _NoViable(Exception):
    def __init__(self, start: int, offending: int):
        self.start = start
        self.offending = offending


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _expected_text(kinds: set[str] | frozenset[str]) -> str:
    listed = sorted(kinds, key=lambda kind: _RANK.get(kind, 0))
    return listed[0] if len(listed) == 1 else "{" + ", ".join(listed) + "}"


class _Recovery:
    def __init__(self, source: str, tokens: list[Token], depth: int):
        self.left = depth
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.net = network()
        self.calls: list[State] = []
        self.state = self.net.start["start"]
        self.recovering = False
        self.last_error = -1
        self.last_states: set[int] = set()
        self.repairs = 0
        self.steps = 0
        self.found: Found = []

    # The stream

    def token(self) -> Token:
        return self.tokens[self.at]

    def kind(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)].kind

    def consume(self) -> None:
        if self.at < len(self.tokens) - 1:
            self.at += 1

    def report(self, offset: int, message: str) -> None:
        self.recovering = True
        if len(self.found) < 100:
            self.found.append((offset, message))

    def shown(self) -> str:
        return f"'{_escaped(self.token().text)}'"

    # What may come

    def expected(self) -> set[str]:
        following = self.net.next_tokens(self.state)
        found = set(following)
        calls = list(self.calls)
        while EPSILON in following and calls:
            following = self.net.next_tokens(calls.pop().targets[0])
            found |= following
        found.discard(EPSILON)
        if EPSILON in following:
            found.add(EOF)
        return found

    def may_follow(self, state: State) -> set[str]:
        """Tokens at ``state`` given the open calls."""
        before = self.state
        self.state = state
        found = self.expected()
        self.state = before
        return found

    def recovery_set(self) -> set[str]:
        found: set[str] = set()
        for caller in self.calls:
            found |= self.net.next_tokens(caller.targets[0])
        found.discard(EPSILON)
        return found

    # Repair

    def repaired(self) -> None:
        self.repairs += 1
        if self.repairs > MAX_REPAIRS:
            raise _TooManyRepairs

    def unwanted(self) -> None:
        if not self.recovering:
            expecting = _expected_text(self.expected())
            self.report(self.token().offset, f"extraneous input {self.shown()} expecting {expecting}")

    def deleted(self) -> bool:
        """Delete the current token if the next one is expected here."""
        if self.kind(1) not in self.expected() or self.kind() == EOF:
            return False
        self.unwanted()
        self.consume()
        self.recovering = False
        return True

    def sync(self, state: State) -> None:
        """Repair before a decision."""
        if self.recovering:
            return
        following = self.net.next_tokens(state)
        if EPSILON in following or self.kind() in following:
            return
        if state.kind in ("block", "star entry"):
            if not self.deleted():
                raise _Mismatch
        else:
            self.unwanted()
            self.skip_to(self.expected() | self.recovery_set())

    def match(self, state: State) -> None:
        assert state.tokens is not None
        if self.kind() in state.tokens:
            self.recovering = False
            self.consume()
            return
        self.repaired()
        if self.deleted():
            self.consume()
            return
        if self.kind() in self.may_follow(state.targets[0]):
            if not self.recovering:
                missing = _expected_text(self.expected())
                self.report(self.token().offset, f"missing {missing} at {self.shown()}")
            return
        raise _Mismatch

    def skip_to(self, kinds: set[str]) -> None:
        while self.kind() != EOF and self.kind() not in kinds:
            self.consume()

    def give_up(self) -> None:
        """Leave the rule: skip to what may follow any open one."""
        self.repaired()
        if self.last_error == self.at and self.state.number in self.last_states:
            self.consume()
        self.last_error = self.at
        self.last_states.add(self.state.number)
        self.skip_to(self.recovery_set())

    # Rules

    def rule(self, name: str) -> None:
        if name == "expr":
            self.left -= 1
            if self.left < 0:
                raise TooDeep
        try:
            self.walk(self.net.start[name])
        except _NoViable as error:
            if not self.recovering:
                self.report(self.tokens[error.offending].offset, self.no_viable(error))
            self.give_up()
        except _Mismatch:
            if not self.recovering:
                text = f"mismatched input {self.shown()} expecting {_expected_text(self.expected())}"
                self.report(self.token().offset, text)
            self.give_up()
        if name == "expr":
            self.left += 1

    def no_viable(self, error: _NoViable) -> str:
        start, offending = self.tokens[error.start], self.tokens[error.offending]
        if start.kind == EOF:
            return "no viable alternative at input '<EOF>'"
        stop = offending.offset + (0 if offending.kind == EOF else len(offending.text))
        text = self.source[start.offset : stop]
        if offending.kind == EOF:
            last = self.tokens[error.offending - 1]
            text = self.source[start.offset : last.offset + len(last.text)]
        if text[:1] == "." and text[1:] in ("true", "false", "null"):
            return f"mismatched input '{text[1:]}' expecting IDENTIFIER"
        return f"no viable alternative at input '{_escaped(text)}'"

    def walk(self, state: State) -> None:
        while state.kind != "stop":
            if state.tokens is not None:
                self.state = state
                self.match(state)
                state = state.targets[0]
            elif state.rule:
                self.state = state
                self.calls.append(state)
                self.rule(state.rule)
                self.calls.pop()
                state = state.targets[0]
            elif state.kind == "basic":
                state = state.targets[0]
            else:
                self.state = state
                self.sync(state)
                state = state.targets[self.choose(state) if len(state.targets) > 1 else 0]

    # Prediction

    def choose(self, state: State) -> int:
        """The way to go at a decision, looking ahead as far as needed."""
        configs = self.closure(
            [(target.number, None, way, False) for way, target in enumerate(state.targets)]
        )
        ahead = 0
        while True:
            kind = self.kind(ahead)
            reached = self.step(configs, kind)
            if not reached:
                # A way on which the decision's own rule is done is good enough.
                finished = [way for _, _, way, outside in configs if outside]
                if finished:
                    return min(finished)
                raise _NoViable(self.at, min(self.at + ahead, len(self.tokens) - 1))
            ways = {way for _, _, way, _ in reached}
            if len(ways) == 1:
                return ways.pop()
            places: dict[tuple[int, object], set[int]] = {}
            for number, stack, way, _ in reached:
                places.setdefault((number, stack), set()).add(way)
            self.steps += len(reached)
            if all(len(found) > 1 for found in places.values()) or kind == EOF or self.steps > MAX_STEPS:
                return min(ways)
            configs = reached
            ahead += 1

    def step(self, configs: list[Config], kind: str) -> list[Config]:
        moved: list[Config] = []
        for number, stack, way, outside in configs:
            state = self.net.states[number]
            if state.tokens is not None and kind in state.tokens:
                moved.append((state.targets[0].number, stack, way, outside))
        return self.closure(moved)

    def closure(self, configs: list[Config]) -> list[Config]:
        """All configurations reachable without input."""
        seen: dict[Config, None] = {}
        work = list(reversed(configs))
        while work:
            config = work.pop()
            if config in seen:
                continue
            seen[config] = None
            number, stack, way, outside = config
            state = self.net.states[number]
            if state.kind == "stop":
                if stack is not None:
                    work.append((stack[0], stack[1], way, outside))
                else:
                    after = self.net.follow[self.net.rule_of[number]]
                    work += [(follow.number, None, way, True) for follow in reversed(after)]
            elif state.rule:
                below = (state.targets[0].number, stack)
                work.append((self.net.start[state.rule].number, below, way, outside))
            elif state.tokens is None:
                work += [(target.number, stack, way, outside) for target in reversed(state.targets)]
        return list(seen)
