"""The default of commands in containers: files in memory for each pod, a few programs, and a small ``sh -c``.

A line is commands joined by ``;``, ``&&``, ``||`` and ``|``, each with words in quotes, ``$NAME``, and ``>``, ``>>``
or ``<`` at its end. Programs: cat, echo, env, printenv, ls, pwd, hostname, sleep, touch, rm, mkdir, test, tar, true,
false, exit. Volumes are not mounted: a container sees what was written into its pod.
"""

from __future__ import annotations

import io
import posixpath
import re
import shlex
import tarfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from apimachinery.server.node.commands import Command, CommandInput, Pod, Ran

LONGEST_SLEEP = 3600.0
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")
_SUBSTITUTED = re.compile(r"\$\$|\$\((\w+)\)")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_PUNCTUATION = re.compile(r"[;&|<>()]+")
_SHELLS = ("sh", "bash", "ash")
_JOINTS = ("&&", "||", ";", "|")
Files = dict[str, bytes]


class Unknown(Exception):
    """A command of which nobody here knows what it does."""


@dataclass(slots=True)
class ShellOutput:
    """What a line said; ``said`` is both channels in order. ``began``: its first command was one that is known."""

    out: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    said: bytearray = field(default_factory=bytearray)
    began: bool = False

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
        line.add(_whole(ran.stdout), ran.stderr)
        return ran.exit_code

    def _session(self, command: Command) -> Iterator[bytes]:
        """A shell that reads its lines."""
        for piece in command.input:
            for line in piece.decode("utf-8", "replace").splitlines():
                if line.strip() == "exit":
                    return
                ran = self._line(command, line)
                yield _whole(ran.stdout) + ran.stderr

    def _line(self, command: Command, text: str) -> Ran:
        """Runs a line: what it says, and how its last command ended."""
        line = ShellOutput()
        steps = self._timed(command, text, line, known=False)
        try:
            while True:
                time.sleep(min(next(steps), LONGEST_SLEEP))
        except StopIteration as end:
            return Ran(bytes(line.out), bytes(line.errors), end.value)

    def _timed(
        self, command: Command, text: str, line: ShellOutput, *, known: bool
    ) -> Generator[float, None, int]:
        """Runs the commands of a line; ``known``: raises Unknown where one is not."""
        code, joint = 0, ";"
        given: bytes | None = None
        try:
            parts = list(_parts(text))
        except ValueError as fault:
            if known:
                raise Unknown(text) from None
            line.add(b"", f"sh: syntax error: {fault}\n".encode())
            return 2
        for words, following in parts:
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
            said, code = _whole(ran.stdout), ran.exit_code
            given = said if following == "|" else None
            line.add(b"" if following == "|" else said, ran.stderr)
        return code

    def _simple(
        self, command: Command, words: list[str], *, known: bool, plain: bool = False
    ) -> Generator[float, None, Ran]:
        """One command, with its redirections; ``plain`` words are no shell's. Raises Unknown where ``known``."""
        files, target, mode = self.of(command.pod), "", ""
        if not plain:
            words = [self._expanded(command, word) for word in words]
            while len(words) > 1 and _ASSIGNED.match(words[0]):
                words = words[1:]
        while not plain and len(words) > 2 and words[-2] in (">", ">>", "<"):
            mode, target = words[-2], _absolute(words[-1])
            words = words[:-2]
            if mode == "<":
                if target not in files:
                    return Ran(stderr=f"sh: can't open {target}: no such file\n".encode(), exit_code=1)
                command = replace(command, input=_given(files[target]))
        program = words[0].rpartition("/")[2]
        if known and (program not in _PROGRAMS or any(_PUNCTUATION.fullmatch(word) for word in words)):
            raise Unknown(program)
        if program == "sleep" and (seconds := _seconds(words[1:])) is not None:
            yield seconds
            return Ran()
        ran = self._program(command, words)
        if mode in (">", ">>"):
            before = files.get(target, b"") if mode == ">>" else b""
            files[target] = before + _whole(ran.stdout)
            return Ran(b"", ran.stderr, ran.exit_code)
        return ran

    def _expanded(self, command: Command, word: str) -> str:
        environment = environment_of(command)
        return _VARIABLE.sub(lambda match: environment.get(match[1].strip("{}"), ""), word)

    def _program(self, command: Command, argv: list[str]) -> Ran:
        if not argv:
            return Ran()
        program = _PROGRAMS.get(argv[0].rpartition("/")[2])
        if program is None:
            return Ran(
                stderr=f'exec: "{argv[0]}": executable file not found in $PATH'.encode(), exit_code=127
            )
        return program(command, self.of(command.pod), argv[1:])


def _script(argv: Sequence[str]) -> str | None:
    return argv[2] if len(argv) > 2 and argv[1] in ("-c", "-ec", "-xc") else None


def substituted(text: str, environment: Mapping[str, str]) -> str:
    """A word of a container's command with its ``$(NAME)``, as a kubelet puts variables into it."""
    return _SUBSTITUTED.sub(
        lambda match: "$" if match[0] == "$$" else environment.get(match[1], match[0]), text
    )


def environment_of(command: Command) -> dict[str, str]:
    """The variables of a container."""
    found = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    spec = command.pod["spec"]
    found |= command.variables
    found["HOSTNAME"] = spec.get("hostname") or command.pod["metadata"]["name"]
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        if container["name"] == command.container:
            for each in container.get("env") or ():
                path = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
                if path:
                    found[each["name"]] = _field(command.pod, path)
                elif "valueFrom" not in each:
                    found[each["name"]] = substituted(each.get("value") or "", found)
    return found


def _field(pod: Pod, path: str) -> str:
    """A field of the downward API."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if keyed is not None:
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    value: object = pod
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    if isinstance(value, list):  # addresses
        return ",".join(str(each.get("ip", "")) for each in value if isinstance(each, dict))
    return str(value)


def _parts(text: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a line, each with what joins it to the next. Raises ValueError."""
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _JOINTS:
            yield words, word
            words = []
        elif word == "&":
            raise ValueError("jobs in the background are not simulated")
        else:
            words.append(word)
    yield words, ";"


def _given(data: bytes) -> CommandInput:
    made = CommandInput()
    made.feed(data)
    made.end()
    return made


def _whole(said: bytes | Iterator[bytes]) -> bytes:
    return said if isinstance(said, bytes) else b"".join(said)


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join("/", path))


def _missing(program: str, path: str) -> Ran:
    return Ran(stderr=f"{program}: {path}: No such file or directory\n".encode(), exit_code=1)


def _cat(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if not words:
        return Ran(iter(command.input))
    out = b""
    for path in words:
        if _absolute(path) not in files:
            return replace(_missing("cat", path), stdout=out)
        out += files[_absolute(path)]
    return Ran(out)


def _echo(command: Command, files: Files, words: Sequence[str]) -> Ran:
    plain = words[:1] == ["-n"]
    return Ran((" ".join(words[1:] if plain else words) + ("" if plain else "\n")).encode())


def _env(command: Command, files: Files, words: Sequence[str]) -> Ran:
    environment = environment_of(command)
    if words:
        value = environment.get(words[0])
        return Ran(exit_code=1) if value is None else Ran(f"{value}\n".encode())
    return Ran("".join(f"{key}={value}\n" for key, value in environment.items()).encode())


def _ls(command: Command, files: Files, words: Sequence[str]) -> Ran:
    folder = next((_absolute(word) for word in words if not word.startswith("-")), "/")
    if folder in files:
        return Ran(f"{folder}\n".encode())
    start = folder.rstrip("/") + "/"
    names = sorted({name[len(start) :].partition("/")[0] for name in files if name.startswith(start)} - {""})
    if not names and folder != "/" and start not in files:
        return _missing("ls", folder)
    return Ran("".join(f"{name}\n" for name in names).encode())


def _seconds(words: Sequence[str]) -> float | None:
    """How long ``sleep`` sleeps; None where that is no time."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)([smhd]?)|(inf(?:inity)?)", words[0]) if words else None
    if match is None:
        return None
    if match[3]:
        return float("inf")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _sleep(command: Command, files: Files, words: Sequence[str]) -> Ran:
    seconds = _seconds(words)
    if seconds is None:
        return Ran(stderr=b"sleep: invalid number\n", exit_code=1)
    time.sleep(min(seconds, LONGEST_SLEEP))
    return Ran()


def _touch(command: Command, files: Files, words: Sequence[str]) -> Ran:
    for path in words:
        files.setdefault(_absolute(path), b"")
    return Ran()


def _mkdir(command: Command, files: Files, words: Sequence[str]) -> Ran:
    for path in words:
        if not path.startswith("-"):
            files.setdefault(_absolute(path) + "/", b"")
    return Ran()


def _rm(command: Command, files: Files, words: Sequence[str]) -> Ran:
    flags = "".join(word[1:] for word in words if word.startswith("-"))
    for path in (_absolute(word) for word in words if not word.startswith("-")):
        gone = [name for name in files if name == path or ("r" in flags and name.startswith(path + "/"))]
        if not gone and "f" not in flags:
            return _missing("rm", path)
        for name in gone:
            del files[name]
    return Ran()


def _test(command: Command, files: Files, words: Sequence[str]) -> Ran:
    given = list(words[:-1]) if words[-1:] == ["]"] else list(words)
    match given:
        case ["-f" | "-e", path]:
            holds = _absolute(path) in files
        case ["-d", path]:
            holds = any(name.startswith(_absolute(path).rstrip("/") + "/") for name in files)
        case ["-n", text] | [text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case [one, "=" | "==", other]:
            holds = one == other
        case [one, "!=", other]:
            holds = one != other
        case _:
            return Ran(stderr=b"test: unknown operand\n", exit_code=2)
    return Ran(exit_code=int(not holds))


def _tar(command: Command, files: Files, words: Sequence[str]) -> Ran:
    match list(words):
        case [flags, "-", *rest] if "x" in flags:
            return _unpack(files, rest, command.stdin)
        case [flags, "-", *rest] if "c" in flags:
            return _pack(files, rest)
    return Ran(stderr=b"tar: only archives on stdin and stdout\n", exit_code=2)


def _unpack(files: Files, rest: Sequence[str], archive: bytes) -> Ran:
    folder = rest[1] if len(rest) == 2 and rest[0] == "-C" else "/"
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                found = tar.extractfile(member) if member.isfile() else None
                if found is not None:
                    files[posixpath.normpath(posixpath.join(folder, member.name))] = found.read()
    except tarfile.TarError as error:
        return Ran(stderr=f"tar: {error}\n".encode(), exit_code=2)
    return Ran()


def _pack(files: Files, rest: Sequence[str]) -> Ran:
    folder, paths = "/", list(rest)
    if len(paths) > 1 and paths[0] == "-C":
        folder, paths = paths[1], paths[2:]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in paths:
            whole = posixpath.normpath(posixpath.join(folder, path))
            found = {
                name: data for name, data in files.items() if name == whole or name.startswith(whole + "/")
            }
            if not found:
                text = f"tar: {path}: Cannot stat: No such file or directory\n"
                return Ran(stderr=text.encode(), exit_code=2)
            for name, data in sorted(found.items()):
                info = tarfile.TarInfo(posixpath.relpath(name, folder))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return Ran(out.getvalue())


def _says(text: Callable[[Command], str]) -> Callable[[Command, Files, Sequence[str]], Ran]:
    return lambda command, files, words: Ran(f"{text(command)}\n".encode())


def _ends(code: int) -> Callable[[Command, Files, Sequence[str]], Ran]:
    return lambda command, files, words: Ran(exit_code=code)


_PROGRAMS: dict[str, Callable[[Command, Files, Sequence[str]], Ran]] = {
    "cat": _cat,
    "echo": _echo,
    "env": _env,
    "printenv": _env,
    "ls": _ls,
    "pwd": _says(lambda command: "/"),
    "hostname": _says(lambda command: environment_of(command)["HOSTNAME"]),
    "sleep": _sleep,
    "touch": _touch,
    "mkdir": _mkdir,
    "rm": _rm,
    "test": _test,
    "[": _test,
    "tar": _tar,
    "true": _ends(0),
    "false": _ends(1),
}
