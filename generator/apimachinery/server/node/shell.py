"""The default of commands in containers: files in memory for each pod, a few programs, and a small ``sh -c``.

``shell_syntax`` has the grammar, ``programs`` what can be run, ``mounts`` the files that a container sees. Its volumes
are empty at first, whatever they are of.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from apimachinery.server.node.arithmetic import summed
from apimachinery.server.node.commands import Command, CommandInput, ErrorOutput, Pod, Ran
from apimachinery.server.node.mounts import files_of
from apimachinery.server.node.programs import (
    LONGEST_SLEEP,
    PROGRAMS,
    Files,
    absolute,
    container_of_command,
    environment_of,
    is_read_only,
    seconds_of,
    substituted,
    whole,
)
from apimachinery.server.node.shell_syntax import (
    CommandList,
    For,
    If,
    LoopWhile,
    Node,
    Piped,
    Redirection,
    ShellSyntaxError,
    Simple,
    Subshell,
    Word,
    parse_shell,
)

_OPTIONS = re.compile(r"-[a-z]+")
_SHELLS = ("sh", "bash", "ash")
BUSY_ROUNDS, BUSY_SECONDS = 100, 60.0
"""A loop that does not sleep goes on after so many rounds so much later, as it would keep the node from everything."""
MOST_ROUNDS = 10_000
"""After which the shell gives up where somebody waits for it."""
MOST_SAID = 2 << 20
_NOTHING = frozenset((":", "trap", "set", "export", "wait", "umask"))
"""Builtins that change nothing that is seen here."""
Steps = Generator[float, None, Any]


class Unknown(Exception):
    """A command of which nobody here knows what it does."""


class _Exit(Exception):
    """The end of a line, with its code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class ShellOutput:
    """What a line said; ``said`` is both channels in order. ``began``: its first command was one that is known.
    ``rest`` is what its last command still says."""

    out: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    said: bytearray = field(default_factory=bytearray)
    began: bool = False
    rest: Iterator[bytes] | None = None

    def add(self, out: bytes, errors: bytes) -> None:
        """Adds what a command said."""
        self.out += out
        self.errors += errors
        self.said += out + errors
        for kept in (self.out, self.errors, self.said):
            del kept[: max(len(kept) - MOST_SAID, 0)]


class ContainerShell:
    """Runs commands in the containers of pods."""

    def __init__(self) -> None:
        self._files: dict[str, Files] = {}

    def of(self, pod: Pod) -> Files:
        """What was written into a pod, by absolute path."""
        return self._files.setdefault(pod["metadata"]["uid"], {})

    def _seen(self, command: Command) -> Files:
        """The files that a command sees."""
        return files_of(command, container_of_command(command), self.of(command.pod))

    def __call__(self, command: Command) -> Ran:
        """Runs a command."""
        argv = list(command.argv)
        if argv and argv[0].rpartition("/")[2] in _SHELLS:
            if len(argv) == 1:
                return Ran(self._session(command))
            if (text := _script(argv)) is not None:
                return self._line(command, text)
        return run_program(command, self._seen(command), argv)

    def steps(self, command: Command, line: ShellOutput) -> Generator[float, None, int]:
        """Runs the command of a container: gives the seconds that it sleeps, and at its end its exit code. Raises
        Unknown."""
        environment = environment_of(command)
        argv = [substituted(word, environment) for word in command.argv]
        text = _script(argv) if argv and argv[0].rpartition("/")[2] in _SHELLS else None
        shell = _Shell(command, self._seen(command), line, known=True)
        if text is not None:
            return (yield from shell.run(text))
        ran = yield from shell.program(command, argv)
        line.began = True
        line.add(whole(ran.stdout), ran.stderr)
        return int(ran.exit_code)

    def _session(self, command: Command) -> Iterator[bytes]:
        """A shell that reads its lines."""
        for piece in command.input:
            for line in piece.decode("utf-8", "replace").splitlines():
                if line.strip() == "exit":
                    return
                ran = self._line(command, line)
                yield whole(ran.stdout)
                yield ErrorOutput(ran.stderr)

    def _line(self, command: Command, text: str) -> Ran:
        """Runs a line: what it says, and how its last command ended."""
        line = ShellOutput()
        steps = _Shell(command, self._seen(command), line, known=False).run(text)
        left = LONGEST_SLEEP
        try:
            while left > 0:
                seconds = min(next(steps), left)
                time.sleep(seconds)
                left -= seconds
            return Ran(bytes(line.out), bytes(line.errors) + b"sh: it took too long\n", 1)
        except StopIteration as end:
            out = bytes(line.out)
            said = out if line.rest is None else chain((out,), line.rest)
            return Ran(said, bytes(line.errors), end.value)


class _Shell:
    """Runs one text. ``known``: raises Unknown where a command is not, as nobody waits for what it says."""

    def __init__(self, command: Command, files: Files, line: ShellOutput, *, known: bool) -> None:
        self._command, self._files, self._line, self._known = command, files, line, known
        self._variables = environment_of(command)
        self._code = self._rounds = 0
        self._last: Node | None = None

    def run(self, text: str) -> Generator[float, None, int]:
        """Runs a text; its exit code."""
        try:
            tree = parse_shell(text)
        except ShellSyntaxError as fault:
            if self._known:
                raise Unknown(text) from None
            self._line.add(b"", f"sh: syntax error: {fault}\n".encode())
            return 2
        if tree.items:
            self._last = tree.items[-1][1].parts[-1]
        try:
            yield from self._list(tree, self._command, self._line)
        except _Exit as end:
            return end.code
        return self._code

    def _list(self, tree: CommandList, command: Command, line: ShellOutput) -> Steps:
        for joint, pipeline in tree.items:
            if joint == ";" or (joint == "&&") == (self._code == 0):
                yield from self._pipeline(pipeline, command, line)

    def _pipeline(self, pipeline: Piped, command: Command, line: ShellOutput) -> Steps:
        for number, part in enumerate(pipeline.parts):
            if number == len(pipeline.parts) - 1:
                yield from self._node(part, command, line)
                break
            said = ShellOutput(began=line.began)
            yield from self._node(part, command, said)
            line.began |= said.began
            line.add(b"", bytes(said.errors))
            command = replace(command, input=_given(bytes(said.out)))
        if pipeline.negated:
            self._code = int(not self._code)

    def _node(self, node: Node, command: Command, line: ShellOutput) -> Steps:
        match node:
            case Simple():
                yield from self._simple(node, command, line)
            case CommandList():
                yield from self._list(node, command, line)
            case Subshell():
                outside = dict(self._variables)
                try:
                    yield from self._list(node.body, command, line)
                except _Exit as end:
                    self._code = end.code
                self._variables = outside
            case If():
                yield from self._if(node, command, line)
            case LoopWhile():
                yield from self._loop(node, command, line)
            case For():
                self._code = 0
                for word in (yield from self._words(node.words, line)):
                    self._variables[node.name] = word
                    yield from self._round()
                    yield from self._list(node.body, command, line)

    def _if(self, node: If, command: Command, line: ShellOutput) -> Steps:
        for condition, body in node.branches:
            yield from self._list(condition, command, line)
            if self._code == 0:
                yield from self._list(body, command, line)
                return
        self._code = 0
        yield from self._list(node.other, command, line)

    def _loop(self, node: LoopWhile, command: Command, line: ShellOutput) -> Steps:
        code = 0
        while True:
            yield from self._list(node.condition, command, line)
            if (self._code != 0) != node.negated:
                self._code = code
                return
            yield from self._round()
            yield from self._list(node.body, command, line)
            code = self._code

    def _round(self) -> Steps:
        """Counts a round of a loop: none goes on for ever without time that passes."""
        self._rounds += 1
        if self._rounds % BUSY_ROUNDS == 0 and self._known:
            yield BUSY_SECONDS
        if self._rounds > MOST_ROUNDS and not self._known:
            self._line.add(b"", f"sh: stopped after {MOST_ROUNDS} rounds\n".encode())
            raise _Exit(1)

    def _simple(self, node: Simple, command: Command, line: ShellOutput) -> Steps:
        """One command, with its redirections."""
        for name, word in node.assigned:
            value = yield from self._text(word, line)
            if not node.words:
                self._variables[name] = value
        words = yield from self._words(node.words, line)
        if words[:1] == ["exec"]:
            words = words[1:]
        if words[:1] == ["exit"]:
            last = words[1] if len(words) > 1 else str(self._code)
            raise _Exit(int(last) % 256 if last.isdigit() else 2)
        targets: dict[int, str | int] = {1: 1, 2: 2}
        for each in node.redirections:
            target = yield from self._text(each.target, line)
            path = absolute(target)
            if each.operator != "<" and path != "/dev/null" and is_read_only(command, path):
                shell = command.argv[0]
                line.add(b"", f"{shell}: can't create {target}: Read-only file system\n".encode())
                self._code = 1
                return
            given, absent = _redirected(each, target, targets, self._files)
            if absent:
                line.add(b"", f"sh: can't open {absent}: no such file\n".encode())
                self._code = 1
                return
            command = command if given is None else replace(command, input=_given(given))
        if words and words[0] not in _NOTHING:
            ran = yield from self.program(command, words)
        else:
            ran = Ran()
        line.began = True
        self._say(ran, targets, line, streams=node is self._last and line is self._line)
        self._code = ran.exit_code

    def program(self, command: Command, words: list[str]) -> Generator[float, None, Ran]:
        """Runs a program. Raises Unknown."""
        name = words[0].rpartition("/")[2] if words else ""
        if self._known and name not in PROGRAMS:
            raise Unknown(name)
        if name == "sleep" and (seconds := seconds_of(words[1:])) is not None:
            if seconds and self._known:
                self._rounds = 0
            yield seconds
            return Ran()
        if name == "tail" and words[1:] == ["-f", "/dev/null"]:
            yield float("inf")
        return run_program(command, self._files, words)

    def _say(self, ran: Ran, targets: dict[int, str | int], line: ShellOutput, *, streams: bool) -> None:
        """Puts what a program said where it goes."""
        if targets == {1: 1, 2: 2}:
            if streams and not self._known and not isinstance(ran.stdout, bytes):
                line.rest, ran = ran.stdout, replace(ran, stdout=b"")
            line.add(whole(ran.stdout), ran.stderr)
            return
        said: dict[str | int, bytes] = {1: b"", 2: b""}
        for target, text in ((targets[1], whole(ran.stdout)), (targets[2], ran.stderr)):
            said[target] = said.get(target, b"") + text
        for target, text in said.items():
            if isinstance(target, str) and target != "/dev/null":
                self._files[target] = self._files.get(target, b"") + text
        line.add(said[1], said[2])

    def _words(self, words: Iterable[Word], line: ShellOutput) -> Generator[float, None, list[str]]:
        """The words of a command: what is put into them without quotes makes as many as it has."""
        found: list[str] = []
        for word in words:
            fields: list[str] = []
            open_field = False
            for piece in word:
                text = piece.text if piece.kind == "text" else (yield from self._put(piece, line))
                if piece.kind == "text" or piece.quoted:
                    fields[-1:] = [fields[-1] + text] if open_field else ([*fields[-1:], text])
                    open_field = True
                    continue
                parts = text.split()
                if not parts:
                    open_field = open_field and not text
                    continue
                if open_field and not text[0].isspace():
                    fields[-1] += parts.pop(0)
                fields += parts
                open_field = not text[-1].isspace()
            found += fields
        return found

    def _text(self, word: Word, line: ShellOutput) -> Generator[float, None, str]:
        """A word that stays one."""
        found = ""
        for piece in word:
            found += piece.text if piece.kind == "text" else (yield from self._put(piece, line))
        return found

    def _put(self, piece: Any, line: ShellOutput) -> Generator[float, None, str]:
        if piece.kind == "command":
            return (yield from self._output(piece.text, line))
        if piece.kind == "sum":
            return str(summed(piece.text, self._variables))
        if piece.text == "?":
            return str(self._code)
        value = self._variables.get(piece.text, "")
        return value or piece.other

    def _output(self, text: str, line: ShellOutput) -> Generator[float, None, str]:
        """What a command within a word says."""
        inner = _Shell(self._command, self._files, ShellOutput(began=line.began), known=self._known)
        inner._variables = dict(self._variables)
        self._code = yield from inner.run(text)
        line.began |= inner._line.began
        line.add(b"", bytes(inner._line.errors))
        said = whole(chain((bytes(inner._line.out),), inner._line.rest or ()))
        return said.decode("utf-8", "replace").rstrip("\n")


def run_program(command: Command, files: Files, argv: list[str]) -> Ran:
    """Runs one of the programs."""
    if not argv:
        return Ran()
    program = PROGRAMS.get(argv[0].rpartition("/")[2])
    if program is None:
        return Ran(stderr=f'exec: "{argv[0]}": executable file not found in $PATH'.encode(), exit_code=127)
    return program(command, files, argv[1:])


def _script(argv: Sequence[str]) -> str | None:
    """The text that a shell is to run: what follows its options, if ``c`` is one of them."""
    options = 1
    while options < len(argv) and _OPTIONS.fullmatch(argv[options]):
        options += 1
    asked = any("c" in each for each in argv[1:options])
    return argv[options] if asked and options < len(argv) else None


def _redirected(
    each: Redirection, target: str, targets: dict[int, str | int], files: Files
) -> tuple[bytes | None, str]:
    """What is given to the command, and the name of a file that is not there. ``targets`` gets where stdout and stderr
    go: to one of these, or a file, which is emptied."""
    path = absolute(target)
    if each.operator == "<":
        return (files[path], "") if path in files else (None, "" if path == "/dev/null" else target)
    if each.operator == ">&" and target in ("1", "2"):
        targets[each.number] = targets[int(target)]
        return None, ""
    for number in (1, 2) if each.operator in ("&>", ">&") else (each.number,):
        targets[number] = path
    if each.operator != ">>" and path != "/dev/null":
        files[path] = b""
    return None, ""


def _given(data: bytes) -> CommandInput:
    made = CommandInput()
    made.feed(data)
    made.end()
    return made
