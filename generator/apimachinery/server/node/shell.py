"""The default of commands in containers: files in memory for each pod, a few programs, and a small ``sh -c``.

A line is commands joined by ``;``, ``&&``, ``||`` and ``|``, each with words in quotes, ``$NAME``, ``$(COMMAND)`` and
redirections (``>``, ``>>``, ``<``, ``2>``, ``>&2``, ``2>&1``), and ``for NAME in WORDS; do …; done``. ``programs`` has
what can be run. Volumes are not mounted: a container sees what was written into its pod.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from apimachinery.server.node.commands import Command, CommandInput, ErrorOutput, Pod, Ran
from apimachinery.server.node.programs import (
    LONGEST_SLEEP,
    PROGRAMS,
    Files,
    absolute,
    environment_of,
    seconds_of,
    substituted,
    whole,
)

_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")
_COMMAND = re.compile(r"\$\(([^()]*)\)")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\b([^;\n]*)[;\n]\s*do\s(.*?)[;\n]\s*done\b", re.S)
_KEYWORDS = frozenset(("for", "while", "until", "if", "case", "function"))
_ERRORS = "\x02"
"""Stands for the 2 of ``2>`` until the line is split."""
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_PUNCTUATION = re.compile(r"[;&|<>()]+")
_REDIRECTIONS = (">", ">>", "<", ">&")
_SHELLS = ("sh", "bash", "ash")
_JOINTS = ("&&", "||", ";", "|")


class Unknown(Exception):
    """A command of which nobody here knows what it does."""


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


class ContainerShell:
    """Runs commands in the containers of pods."""

    def __init__(self) -> None:
        self._files: dict[str, Files] = {}

    def of(self, pod: Pod) -> Files:
        """The files of a pod by absolute path."""
        return self._files.setdefault(pod["metadata"]["uid"], {})

    def __call__(self, command: Command) -> Ran:
        """Runs a command."""
        argv = list(command.argv)
        if argv and argv[0].rpartition("/")[2] in _SHELLS:
            if len(argv) == 1:
                return Ran(self._session(command))
            if (text := _script(argv)) is not None:
                return self._line(command, text)
        return self._program(command, argv)

    def steps(self, command: Command, line: ShellOutput) -> Generator[float, None, int]:
        """Runs the command of a container: gives the seconds that it sleeps, and at its end its exit code. Raises
        Unknown."""
        environment = environment_of(command)
        argv = [substituted(word, environment) for word in command.argv]
        text = _script(argv) if argv and argv[0].rpartition("/")[2] in _SHELLS else None
        if text is not None:
            if "`" in text or "$(" in text:
                raise Unknown(text)
            return (yield from self._timed(command, text, line, known=True))
        ran = yield from self._simple(command, argv, known=True, plain=True)
        line.began = True
        line.add(whole(ran.stdout), ran.stderr)
        return ran.exit_code

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
        steps = self._timed(command, text, line, known=False)
        try:
            while True:
                time.sleep(min(next(steps), LONGEST_SLEEP))
        except StopIteration as end:
            out = bytes(line.out)
            said = out if line.rest is None else chain((out,), line.rest)
            return Ran(said, bytes(line.errors), end.value)

    def _timed(
        self, command: Command, text: str, line: ShellOutput, *, known: bool
    ) -> Generator[float, None, int]:
        """Runs the commands of a line; ``known``: raises Unknown where one is not."""
        code, joint = 0, ";"
        given: bytes | None = None
        try:
            parts = list(_parts(self._substituted(command, text)))
        except ValueError as fault:
            if known:
                raise Unknown(text) from None
            line.add(b"", f"sh: syntax error: {fault}\n".encode())
            return 2
        for number, (words, following) in enumerate(parts):
            runs = {"&&": code == 0, "||": code != 0}.get(joint, True)
            joint = following
            if not runs or not words:
                continue
            if words[0] == "exit":
                last = words[1] if len(words) > 1 else str(code)
                return int(last) % 256 if last.isdigit() else 2
            sent = command if given is None else replace(command, input=_given(given))
            ran = yield from self._simple(sent, words, known=known)
            line.began = True
            if number == len(parts) - 1 and not known and not isinstance(ran.stdout, bytes):
                line.rest, ran = ran.stdout, replace(ran, stdout=b"")
            said, code = whole(ran.stdout), ran.exit_code
            given = said if following == "|" else None
            line.add(b"" if following == "|" else said, ran.stderr)
        return code

    def _simple(
        self, command: Command, words: list[str], *, known: bool, plain: bool = False
    ) -> Generator[float, None, Ran]:
        """One command, with its redirections; ``plain`` words are no shell's. Raises Unknown where ``known``."""
        files = self.of(command.pod)
        targets: dict[int, str | int] = {1: 1, 2: 2}
        if not plain:
            words = [self._expanded(command, word) for word in words]
            while len(words) > 1 and _ASSIGNED.match(words[0]):
                words = words[1:]
            words, given, absent = _redirected(words, targets, files)
            if absent:
                return Ran(stderr=f"sh: can't open {absent}: no such file\n".encode(), exit_code=1)
            command = command if given is None else replace(command, input=_given(given))
        program = words[0].rpartition("/")[2] if words else ""
        if known and (program not in PROGRAMS or any(_PUNCTUATION.fullmatch(word) for word in words)):
            raise Unknown(program)
        if program == "sleep" and (seconds := seconds_of(words[1:])) is not None:
            yield seconds
            return Ran()
        ran = self._program(command, words)
        if targets == {1: 1, 2: 2}:
            return ran
        said: dict[str | int, bytes] = {1: b"", 2: b""}
        for target, text in ((targets[1], whole(ran.stdout)), (targets[2], ran.stderr)):
            said[target] = said.get(target, b"") + text
        for target, text in said.items():
            if isinstance(target, str) and target != "/dev/null":
                files[target] = files.get(target, b"") + text
        return Ran(said[1], said[2], ran.exit_code)

    def _substituted(self, command: Command, text: str) -> str:
        """A line with the loops unrolled, and what commands in it say. Raises ValueError."""
        text = _COMMAND.sub(
            lambda each: " ".join(whole(self._line(command, each[1]).stdout).decode().split()), text
        )

        def unrolled(loop: re.Match[str]) -> str:
            variable = re.compile(rf"\$(?:{loop[1]}\b|\{{{loop[1]}\}})")
            rounds = [variable.sub(lambda _, word=word: word, loop[3]) for word in shlex.split(loop[2])]
            return ";".join(each.strip(" ;\n") for each in rounds) or "true"

        return _LOOP.sub(unrolled, text)

    def _expanded(self, command: Command, word: str) -> str:
        environment = environment_of(command)
        return _VARIABLE.sub(lambda match: environment.get(match[1].strip("{}"), ""), word)

    def _program(self, command: Command, argv: list[str]) -> Ran:
        if not argv:
            return Ran()
        program = PROGRAMS.get(argv[0].rpartition("/")[2])
        if program is None:
            return Ran(
                stderr=f'exec: "{argv[0]}": executable file not found in $PATH'.encode(), exit_code=127
            )
        return program(command, self.of(command.pod), argv[1:])


def _script(argv: Sequence[str]) -> str | None:
    return argv[2] if len(argv) > 2 and argv[1] in ("-c", "-ec", "-xc") else None


def _redirected(
    words: list[str], targets: dict[int, str | int], files: Files
) -> tuple[list[str], bytes | None, str]:
    """The words without redirections, what is given to the command, and the name of a file that is not there.
    ``targets`` gets where stdout and stderr go: to one of these, or a file, which is emptied."""
    argv: list[str] = []
    given: bytes | None = None
    rest = iter(words)
    for word in rest:
        if word not in _REDIRECTIONS:
            argv.append(word)
            continue
        number = 2 if argv[-1:] == [_ERRORS] else 1
        argv = argv[:-1] if number == 2 else argv
        target = next(rest, "")
        if word == ">&" and target in ("1", "2"):
            targets[number] = targets[int(target)]
            continue
        path = absolute(target)
        if word == "<":
            if path not in files:
                return argv, None, target
            given = files[path]
            continue
        targets[number] = path
        if word != ">>" and path != "/dev/null":
            files[path] = b""
    return [word.replace(_ERRORS, "2") for word in argv], given, ""


def _parts(text: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a line, each with what joins it to the next. Raises ValueError."""
    marked = re.sub(r"(?<!\S)2(?=>)", _ERRORS, text.replace("\n", ";"))
    lexer = shlex.shlex(marked, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _JOINTS:
            yield words, word
            words = []
        elif word == "&":
            raise ValueError("jobs in the background are not simulated")
        elif word in _KEYWORDS and not words:
            raise ValueError(f"{word} is not simulated")
        else:
            words.append(word)
    yield words, ";"


def _given(data: bytes) -> CommandInput:
    made = CommandInput()
    made.feed(data)
    made.end()
    return made
