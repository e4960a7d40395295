"""What a simulated node does with pods: stages and failures by annotation or rule, and what tests answer for them.

Annotations of a pod win over rules, of which the first that picks it counts. Durations are Go's (``1m30s``, ``200ms``):

    node.kubewright.dev/start-after      from bound to running
    node.kubewright.dev/ready-after      from running to ready
    node.kubewright.dev/succeed-after    from running to Succeeded
    node.kubewright.dev/fail-after       from running to Failed (restarted where its restartPolicy says so)
    node.kubewright.dev/exit-code        of containers that end (0, or 1 where they fail)
    node.kubewright.dev/terminate-after  from deletion to gone; never longer than the grace period
    node.kubewright.dev/image-error      "true": the image is never pulled
    node.kubewright.dev/logs             what its containers said
    node.kubewright.dev/cpu, .../memory  what it uses, as quantities (else a tenth of what it requests)
"""

from __future__ import annotations

import fnmatch
import io
import posixpath
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Final

from apimachinery.kinds.amounts import aggregate, parsed
from apimachinery.meta.json import Json
from apimachinery.meta.selectors import parse_label_selector
from apimachinery.server.node.faults import NodeFaults
from apimachinery.server.node.shapes import NodeShape, shapes

PREFIX: Final = "node.kubewright.dev/"
JOB_SECONDS: Final = 0.5
MOST_IMAGES: Final = 50
FOREVER: Final = float("inf")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h)")

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Seconds between stages; ``FOREVER`` for those that do not come."""

    start_after: float = 0.0
    ready_after: float = 0.0
    succeed_after: float = FOREVER
    fail_after: float = FOREVER
    terminate_after: float = 0.0
    exit_code: int | None = None
    image_error: bool = False
    logs: str = ""
    cpu: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRule:
    """Which pods ``plan`` is for: by label selector, and by patterns (``*``) of namespace and name."""

    plan: Plan
    selector: str = ""
    namespace: str = "*"
    name: str = "*"

    def picks(self, pod: Pod) -> bool:
        """Whether the rule is for a pod."""
        metadata = pod["metadata"]
        return (
            fnmatch.fnmatchcase(metadata.get("namespace", ""), self.namespace)
            and fnmatch.fnmatchcase(metadata["name"], self.name)
            and parse_label_selector(self.selector).matches(metadata.get("labels") or {})
        )


@dataclass(frozen=True, slots=True)
class Command:
    """A command to be run in a container (empty: an attach); ``stdin`` is everything that was sent."""

    pod: Pod
    container: str
    argv: tuple[str, ...]
    stdin: bytes = b""
    tty: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0


Execute = Callable[[Command], Ran]
Logs = Callable[[Pod, str], str]
Forward = Callable[[Pod, int, bytes], bytes]


class ContainerFiles:
    """The default of commands: files in memory for each pod, and the few programs that copying needs
    (``tar``, ``cat``, ``echo``, ``true``, ``false``, ``sh -c`` with one of them)."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, bytes]] = {}

    def of(self, pod: Pod) -> dict[str, bytes]:
        """The files of a pod by absolute path."""
        return self._files.setdefault(pod["metadata"]["uid"], {})

    def __call__(self, command: Command) -> Ran:
        """Runs a command."""
        argv = list(command.argv)
        if len(argv) == 3 and argv[0] in ("sh", "/bin/sh") and argv[1] == "-c":
            argv = argv[2].split()
        files = self.of(command.pod)
        match argv:
            case ["echo", *words]:
                return Ran((" ".join(words) + "\n").encode())
            case ["true"] | []:
                return Ran()
            case ["false"]:
                return Ran(exit_code=1)
            case ["cat"]:
                return Ran(command.stdin)
            case ["cat", path]:
                if path not in files:
                    return Ran(stderr=f"cat: {path}: No such file or directory\n".encode(), exit_code=1)
                return Ran(files[path])
            case ["tar", flags, "-", *rest] if "x" in flags:
                return self._unpack(files, rest, command.stdin)
            case ["tar", flags, "-", *rest] if "c" in flags:
                return self._pack(files, rest)
        said = f'exec: "{argv[0]}": executable file not found in $PATH'
        return Ran(stderr=said.encode(), exit_code=127)

    def _unpack(self, files: dict[str, bytes], rest: Sequence[str], archive: bytes) -> Ran:
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

    def _pack(self, files: dict[str, bytes], rest: Sequence[str]) -> Ran:
        folder, paths = "/", list(rest)
        if len(paths) > 1 and paths[0] == "-C":
            folder, paths = paths[1], paths[2:]
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for path in paths:
                whole = posixpath.normpath(posixpath.join(folder, path))
                found = {
                    name: data
                    for name, data in files.items()
                    if name == whole or name.startswith(whole + "/")
                }
                if not found:
                    text = f"tar: {path}: Cannot stat: No such file or directory\n"
                    return Ran(stderr=text.encode(), exit_code=2)
                for name, data in sorted(found.items()):
                    info = tarfile.TarInfo(posixpath.relpath(name, folder))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        return Ran(out.getvalue())


def _planned_logs(pod: Pod, container: str) -> str:
    text: str = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}logs", "")
    return text if not text or text.endswith("\n") else text + "\n"


def _echo(pod: Pod, port: int, data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBehaviour:
    """A simulated node as a test gives it. ``execute`` answers exec and attach, ``logs`` what containers said,
    ``forward`` what a port answers to some bytes; they are called in threads. ``plan`` is for pods that no rule picks.
    """

    name: str = "kubewright-node"
    nodes: int = 1
    template: Json | None = None
    """A Node whose labels, taints and capacity the nodes have."""
    faults: NodeFaults = field(default_factory=NodeFaults)
    plan: Plan = field(default_factory=Plan)
    rules: Sequence[PodRule] = ()
    execute: Execute = field(default_factory=ContainerFiles)
    logs: Logs = _planned_logs
    forward: Forward = _echo

    images: list[str] = field(default_factory=list)
    """Those that were pulled, as the nodes show them."""

    @property
    def shapes(self) -> tuple[NodeShape, ...]:
        """The nodes. Raises TemplateError."""
        return shapes(self.name, self.nodes, self.template)

    def note_images(self, names: Sequence[str]) -> None:
        """Remembers what was pulled, up to what a node shows."""
        for name in names:
            if name not in self.images and len(self.images) < MOST_IMAGES:
                self.images.append(name)

    def usage(self, pod: Pod, metric: str) -> Fraction | None:
        """What a pod uses; see ``used_by``."""
        return used_by(pod, self.plan_of(pod), metric)

    def plan_of(self, pod: Pod) -> Plan:
        """What is to become of a pod. Annotations that cannot be read are passed over."""
        plan = next((rule.plan for rule in self.rules if rule.picks(pod)), None)
        if plan is None:
            plan = self.plan
            owners = pod["metadata"].get("ownerReferences") or ()
            if any(owner.get("kind") == "Job" for owner in owners) and plan.succeed_after == FOREVER:
                plan = replace(plan, succeed_after=JOB_SECONDS)
        annotations = pod["metadata"].get("annotations") or {}
        changes: dict[str, Any] = {}
        for known in fields(Plan):
            text = annotations.get(PREFIX + known.name.replace("_", "-"))
            if text is not None and (value := _read(known.name, text)) is not None:
                changes[known.name] = value
        if "fail_after" in changes and "succeed_after" not in changes:
            changes["succeed_after"] = FOREVER
        return replace(plan, **changes) if changes else plan


_LEAST_USED: Final = {"cpu": Fraction(1, 1000), "memory": Fraction(8 << 20)}


def used_by(pod: Pod, plan: Plan, metric: str) -> Fraction | None:
    """What a pod uses of ``cpu`` (cores) or ``memory`` (bytes), as its plan says or plausibly; None where it does not
    run."""
    if metric not in _LEAST_USED or (pod.get("status") or {}).get("phase") != "Running":
        return None
    given = parsed(plan.cpu if metric == "cpu" else plan.memory)
    if given is not None:
        return given.value
    requests = aggregate(pod["spec"], "requests").get(metric)
    return max(requests.value / 10 if requests is not None else Fraction(0), _LEAST_USED[metric])


def _read(name: str, text: str) -> float | int | bool | str | None:
    if name in ("logs", "cpu", "memory"):
        return text
    if name == "image_error":
        return text == "true"
    if name == "exit_code":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None
    return parse_duration(text)


def parse_duration(text: str) -> float | None:
    """Seconds of a duration as Go writes them (``1h2m3.5s``); None where it is none."""
    parts = _DURATION.findall(text[:64])
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return 0.0 if text == "0" else None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
