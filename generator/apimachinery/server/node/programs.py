"""What the small shell of simulated containers can run."""

from __future__ import annotations

import gzip
import io
import operator
import posixpath
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace

from apimachinery.meta.json import Json
from apimachinery.server.node.arithmetic import is_number, summed
from apimachinery.server.node.commands import Command, Pod, Ran

LONGEST_SLEEP = 3600.0
LONGEST_SEQUENCE = 10_000
FOLDERS = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr", "var")
"""What a container has at its root, as far as ``ls`` says."""
_SUBSTITUTED = re.compile(r"\$\$|\$\((\w+)\)")
Files = MutableMapping[str, bytes]


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


def container_of_command(command: Command) -> Json:
    """The container that a command runs in; empty for one that is not there."""
    spec = command.pod["spec"]
    keys = ("containers", "initContainers", "ephemeralContainers")
    every = (each for key in keys for each in spec.get(key) or ())
    return next((each for each in every if each["name"] == command.container), {})


def is_read_only(command: Command, path: str) -> bool:
    """Whether nothing can be written at a path: it is in a root that is read-only, and in no volume."""
    container = container_of_command(command)
    if not (container.get("securityContext") or {}).get("readOnlyRootFilesystem"):
        return False
    mounts = [each["mountPath"] for each in container.get("volumeMounts") or () if not each.get("readOnly")]
    writable = ["/dev", *(absolute(mount) for mount in mounts)]
    return not any(path == mount or path.startswith(mount.rstrip("/") + "/") for mount in writable)


def _identity(command: Command, key: str) -> int:
    """The user or group (``runAsUser``, ``runAsGroup``) of a container; root where nobody says so."""
    own = container_of_command(command).get("securityContext") or {}
    of_pod = command.pod["spec"].get("securityContext") or {}
    return int(own.get(key) or of_pod.get(key) or 0)


def _id(command: Command, files: Files, words: Sequence[str]) -> Ran:
    user, group = _identity(command, "runAsUser"), _identity(command, "runAsGroup")
    of_pod = command.pod["spec"].get("securityContext") or {}
    more = [*(of_pod.get("supplementalGroups") or ()), *filter(None, [of_pod.get("fsGroup")])]
    groups = [*dict.fromkeys([group, *more])]
    named = [f"{number}{'' if number else '(root)'}" for number in (user, group)]
    shown = {
        "": f"uid={named[0]} gid={named[1]} groups={','.join(f'{each}' if each else '0(root)' for each in groups)}",
        "-u": str(user),
        "-g": str(group),
        "-G": " ".join(map(str, groups)),
    }
    text = shown.get(words[0] if words else "")
    return Ran(stderr=b"id: -u, -g or -G\n", exit_code=1) if text is None else Ran(f"{text}\n".encode())


def _whoami(command: Command) -> str:
    user = _identity(command, "runAsUser")
    return str(user) if user else "root"


def _missing(program: str, path: str) -> Ran:
    return Ran(stderr=f"{program}: {path}: No such file or directory\n".encode(), exit_code=1)


def _busy(program: str, path: str) -> Ran:
    return Ran(stderr=f"{program}: can't remove '{path}': Device or resource busy\n".encode(), exit_code=1)


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
        if is_read_only(command, absolute(path)):
            return Ran(stderr=f"touch: {path}: Read-only file system\n".encode(), exit_code=1)
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
            if not _dropped(files, name):
                return _busy("rm", name)
    return Ran()


def _dropped(files: Files, name: str) -> bool:
    """Deletes a file; False for one that the container was given."""
    try:
        del files[name]
    except KeyError:
        return False
    return True


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}


def _test(command: Command, files: Files, words: Sequence[str]) -> Ran:
    given = list(words[:-1]) if words[-1:] in (["]"], ["]]"]) else list(words)
    negated = False
    while given[:1] == ["!"] and len(given) > 1:
        negated, given = not negated, given[1:]
    holds = _holds(files, given)
    if holds is None:
        return Ran(stderr=b"test: unknown operand\n", exit_code=2)
    return Ran(exit_code=int(holds == negated))


def _holds(files: Files, given: list[str]) -> bool | None:
    """Whether what is tested is so; None for what is not known."""
    match given:
        case ["-f" | "-e" | "-r" | "-w" | "-x", path]:
            return absolute(path) in files or (given[0] != "-f" and _is_folder(files, path))
        case ["-s", path]:
            return bool(files.get(absolute(path)))
        case ["-d", path]:
            return _is_folder(files, path)
        case ["-n", text] | [text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case []:
            return False
        case [one, "=" | "==", other]:
            return one == other
        case [one, "!=", other]:
            return one != other
        case [one, compared, other] if compared in _COMPARED and is_number(one) and is_number(other):
            return _COMPARED[compared](int(one), int(other))
    return None


def _is_folder(files: Files, path: str) -> bool:
    return any(name.startswith(absolute(path).rstrip("/") + "/") for name in files)


def _expr(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if not words or any(
        not (is_number(word) or word in ("+", "-", "*", "/", "%", "(", ")")) for word in words
    ):
        return Ran(stderr=b"expr: syntax error\n", exit_code=2)
    found = summed(" ".join(words), {})
    return Ran(f"{found}\n".encode(), exit_code=int(found == 0))


def _wc(command: Command, files: Files, words: Sequence[str]) -> Ran:
    flags = "".join(word[1:] for word in words if word.startswith("-")) or "lwc"
    paths = [word for word in words if not word.startswith("-")]
    if paths and absolute(paths[0]) not in files:
        return _missing("wc", paths[0])
    data = files[absolute(paths[0])] if paths else command.stdin
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    shown = [str(counts[flag]) for flag in "lwc" if flag in flags]
    return Ran((" ".join([*shown, *paths[:1]]) + "\n").encode())


def _awk(command: Command, files: Files, words: Sequence[str]) -> Ran:
    printed = re.fullmatch(r"\s*\{\s*print\s+\$(\d+)\s*\}\s*", words[0]) if len(words) == 1 else None
    if printed is None:
        return Ran(stderr=b"awk: only {print $N} of stdin\n", exit_code=2)
    number = int(printed[1])
    lines = command.stdin.decode("utf-8", "replace").splitlines()
    fields = [[line, *line.split()] for line in lines]
    return Ran("".join(f"{each[number] if number < len(each) else ''}\n" for each in fields).encode())


def _moves(*, keeps: bool) -> Callable[[Command, Files, Sequence[str]], Ran]:
    """``cp`` and ``mv`` of one file."""

    def move(command: Command, files: Files, words: Sequence[str]) -> Ran:
        program = "cp" if keeps else "mv"
        paths = [word for word in words if not word.startswith("-")]
        if len(paths) != 2:
            return Ran(stderr=f"{program}: one file, and where it goes\n".encode(), exit_code=1)
        source, target = absolute(paths[0]), absolute(paths[1])
        if source not in files:
            return _missing(program, paths[0])
        if paths[1].endswith("/") or _is_folder(files, target) or target.strip("/") in FOLDERS:
            target = posixpath.join(target, posixpath.basename(source))
        files[target] = files[source]
        if not keeps and target != source and not _dropped(files, source):
            return _busy(program, paths[0])
        return Ran()

    return move


def _head(command: Command, files: Files, words: Sequence[str]) -> Ran:
    count, rest = "10", list(words)
    if rest[:1] == ["-n"] and len(rest) > 1:
        count, rest = rest[1], rest[2:]
    elif rest and re.fullmatch(r"-n?[0-9]+", rest[0]):
        count, rest = rest[0].lstrip("-n"), rest[1:]
    if not re.fullmatch(r"[0-9]{1,9}", count) or len(rest) > 1:
        return Ran(stderr=b"head: -n LINES, and one file\n", exit_code=1)
    if rest and absolute(rest[0]) not in files:
        return _missing("head", rest[0])
    data = files[absolute(rest[0])] if rest else command.stdin
    return Ran(b"".join(data.splitlines(keepends=True)[: int(count)]))


_MOUNTED = (
    ("overlay", "/", "overlay", "rw,relatime"),
    ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"),
    ("cgroup", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime"),
)


def _mount(command: Command, files: Files, words: Sequence[str]) -> Ran:
    if words and not (len(words) == 2 and words[0] == "-t"):
        return Ran(stderr=b"mount: permission denied (are you root?)\n", exit_code=1)
    shown = [
        f"{source} on {path} type {kind} ({options})\n"
        for source, path, kind, options in _MOUNTED
        if kind in (words[1:] or [kind])
    ]
    return Ran("".join(shown).encode())


def _sysctl(command: Command, files: Files, words: Sequence[str]) -> Ran:
    given = (command.pod["spec"].get("securityContext") or {}).get("sysctls") or ()
    values = {each["name"].replace("/", "."): each["value"] for each in given}
    out, errors = "", ""
    for name in words:
        key = name.replace("/", ".")
        if key in values:
            out += f"{key} = {values[key]}\n"
        else:
            errors += f"sysctl: error: '{name}' is an unknown key\n"
    return Ran(out.encode(), errors.encode(), int(bool(errors)))


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
    "awk": _awk,
    "cat": _cat,
    "cp": _moves(keeps=True),
    "date": _date,
    "echo": _echo,
    "env": _env,
    "expr": _expr,
    "id": _id,
    "whoami": _says(_whoami),
    "gzip": lambda command, files, words: Ran(gzip.compress(command.stdin)),
    "printenv": _env,
    "head": _head,
    "mount": _mount,
    "printf": _printf,
    "seq": _seq,
    "uptime": _says(lambda command: time.strftime(" %H:%M:%S up 1 day, load average: 0.00", time.gmtime())),
    "ls": _ls,
    "pwd": _says(lambda command: "/"),
    "hostname": _says(lambda command: environment_of(command)["HOSTNAME"]),
    "sleep": _sleep,
    "touch": _touch,
    "mkdir": _mkdir,
    "mv": _moves(keeps=False),
    "rm": _rm,
    "test": _test,
    "[": _test,
    "[[": _test,
    "sysctl": _sysctl,
    "tail": lambda command, files, words: Ran(stderr=b"tail: only -f /dev/null\n", exit_code=1),
    "tar": _tar,
    "true": _ends(0),
    "false": _ends(1),
    "wc": _wc,
}
