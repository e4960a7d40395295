"""What the small shell of simulated containers can run."""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from apimachinery.server.node.commands import Command, Pod, Ran

LONGEST_SLEEP = 3600.0
LONGEST_SEQUENCE = 10_000
FOLDERS = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr", "var")
"""What a container has at its root, as far as ``ls`` says."""
_SUBSTITUTED = re.compile(r"\$\$|\$\((\w+)\)")
Files = dict[str, bytes]


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


def whole(said: bytes | Iterator[bytes]) -> bytes:
    """What a command says on stdout, to its end."""
    return said if isinstance(said, bytes) else b"".join(said)


def absolute(path: str) -> str:
    """The path of a file in a container, whose commands all run at its root."""
    return posixpath.normpath(posixpath.join("/", path))


def _missing(program: str, path: str) -> Ran:
    return Ran(stderr=f"{program}: {path}: No such file or directory\n".encode(), exit_code=1)


def _cat(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if not words:
        return Ran(iter(command.input))
    out = b""
    for path in words:
        if absolute(path) not in files:
            return replace(_missing("cat", path), stdout=out)
        out += files[absolute(path)]
    return Ran(out)


def _echo(command: Command, files: Files, words: Sequence[str]) -> Ran:
    plain = words[:1] == ["-n"]
    return Ran((" ".join(words[1:] if plain else words) + ("" if plain else "\n")).encode())


def _printf(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if not words:
        return Ran(stderr=b"printf: usage: printf FORMAT [ARGUMENT]...\n", exit_code=2)
    given = iter(words[1:])
    form = re.sub(r"\\([nt\\])", lambda each: {"n": "\n", "t": "\t"}.get(each[1], each[1]), words[0])
    return Ran(re.sub(r"%([sd%])", lambda each: "%" if each[1] == "%" else next(given, ""), form).encode())


def _seq(command: Command, files: Files, words: Sequence[str]) -> Ran:
    try:
        first, last = (int(words[0]), int(words[1])) if len(words) == 2 else (1, int(words[0]))
    except (ValueError, IndexError):
        return Ran(stderr=b"seq: FIRST and LAST, or LAST\n", exit_code=1)
    return Ran(
        "".join(f"{number}\n" for number in range(first, min(last, first + LONGEST_SEQUENCE) + 1)).encode()
    )


def _date(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if words:
        return Ran(stderr=f"date: invalid date '{words[0]}'\n".encode(), exit_code=1)
    return Ran(time.strftime("%a %b %e %H:%M:%S UTC %Y\n", time.gmtime()).encode())


def _env(command: Command, files: Files, words: Sequence[str]) -> Ran:
    environment = environment_of(command)
    if words:
        value = environment.get(words[0])
        return Ran(exit_code=1) if value is None else Ran(f"{value}\n".encode())
    return Ran("".join(f"{key}={value}\n" for key, value in environment.items()).encode())


def _ls(command: Command, files: Files, words: Sequence[str]) -> Ran:
    folder = next((absolute(word) for word in words if not word.startswith("-")), "/")
    if folder in files:
        return Ran(f"{folder}\n".encode())
    start = folder.rstrip("/") + "/"
    names = sorted({name[len(start) :].partition("/")[0] for name in files if name.startswith(start)} - {""})
    if folder == "/":
        names = sorted({*names, *FOLDERS})
    if not names and start not in files and folder.strip("/") not in FOLDERS:
        return _missing("ls", folder)
    return Ran("".join(f"{name}\n" for name in names).encode())


def seconds_of(words: Sequence[str]) -> float | None:
    """How long ``sleep`` sleeps; None where that is no time."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)([smhd]?)|(inf(?:inity)?)", words[0]) if words else None
    if match is None:
        return None
    if match[3]:
        return float("inf")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _sleep(command: Command, files: Files, words: Sequence[str]) -> Ran:
    seconds = seconds_of(words)
    if seconds is None:
        return Ran(stderr=b"sleep: invalid number\n", exit_code=1)
    time.sleep(min(seconds, LONGEST_SLEEP))
    return Ran()


def _touch(command: Command, files: Files, words: Sequence[str]) -> Ran:
    for path in words:
        files.setdefault(absolute(path), b"")
    return Ran()


def _mkdir(command: Command, files: Files, words: Sequence[str]) -> Ran:
    for path in words:
        if not path.startswith("-"):
            files.setdefault(absolute(path) + "/", b"")
    return Ran()


def _rm(command: Command, files: Files, words: Sequence[str]) -> Ran:
    flags = "".join(word[1:] for word in words if word.startswith("-"))
    for path in (absolute(word) for word in words if not word.startswith("-")):
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
            holds = absolute(path) in files
        case ["-d", path]:
            holds = any(name.startswith(absolute(path).rstrip("/") + "/") for name in files)
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


PROGRAMS: dict[str, Callable[[Command, Files, Sequence[str]], Ran]] = {
    "cat": _cat,
    "date": _date,
    "echo": _echo,
    "env": _env,
    "gzip": lambda command, files, words: Ran(gzip.compress(command.stdin)),
    "printenv": _env,
    "printf": _printf,
    "seq": _seq,
    "uptime": _says(lambda command: time.strftime(" %H:%M:%S up 1 day, load average: 0.00", time.gmtime())),
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
