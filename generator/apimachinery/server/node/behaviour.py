"""What a simulated node does with pods: stages and failures by annotation or rule, and what tests answer for them.

Annotations of a pod win over rules, of which the first that picks it counts. Durations are Go's (``1m30s``, ``200ms``):

    node.kubewright.dev/start-after      from bound to running
    node.kubewright.dev/ready-after      from running to ready
    node.kubewright.dev/succeed-after    from running to Succeeded
    node.kubewright.dev/fail-after       from running to Failed (restarted where its restartPolicy says so)
    node.kubewright.dev/exit-code        of containers that end (0, or 1 where they fail)
    node.kubewright.dev/terminate-after  from deletion to gone; never longer than the grace period
    node.kubewright.dev/image-error      "true": the image is never pulled
    node.kubewright.dev/ready            "false": its readiness probe fails, from now on
    node.kubewright.dev/live             "false": its liveness probes fail, and its containers begin again
    node.kubewright.dev/logs             what its containers said (else what their commands did)
    node.kubewright.dev/cpu, .../memory  what it uses, as quantities (else a tenth of what it requests); of a Node too
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from apimachinery.meta.json import Json
from apimachinery.meta.selectors import parse_label_selector
from apimachinery.server.node.commands import Command as Command
from apimachinery.server.node.commands import Execute, Pod
from apimachinery.server.node.commands import Ran as Ran
from apimachinery.server.node.faults import NodeFaults
from apimachinery.server.node.mounts import check_mounts
from apimachinery.server.node.runs import CommandRun, ask, begin
from apimachinery.server.node.shapes import NodeShape, shapes
from apimachinery.server.node.shell import ContainerShell

PREFIX: Final = "node.kubewright.dev/"
JOB_SECONDS: Final = 0.5
MOST_IMAGES: Final = 50
FOREVER: Final = float("inf")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h)")


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
    ready: bool = True
    live: bool = True
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


Logs = Callable[[Pod, str], str]
FindVariables = Callable[[Json], Mapping[str, str]]
Forward = Callable[[Pod, int, bytes], bytes]
Listens = Callable[[Pod, int], bool]
UsageOf = Callable[[Pod, str], str]


def all_containers(pod: Pod) -> list[Json]:
    """The containers of a pod, of every sort."""
    return [
        each
        for key in ("containers", "initContainers", "ephemeralContainers")
        for each in pod["spec"].get(key) or ()
    ]


def _at_every_port(pod: Pod, port: int) -> bool:
    return True


def _echo(pod: Pod, port: int, data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBehaviour:
    """A simulated node as a test gives it. ``execute`` answers exec and attach, ``logs`` what containers said,
    ``forward`` what a port answers to some bytes; they are called in threads. ``listens`` says whether something is
    at a port of a pod. ``plan`` is for pods that no rule picks.
    """

    name: str = "kubewright-node"
    nodes: int = 1
    template: Json | None = None
    """A Node whose labels, taints and capacity the nodes have."""
    faults: NodeFaults = field(default_factory=NodeFaults)
    plan: Plan = field(default_factory=Plan)
    rules: Sequence[PodRule] = ()
    execute: Execute = field(default_factory=ContainerShell)
    logs: Logs | None = None
    forward: Forward = _echo
    listens: Listens = _at_every_port
    usage: UsageOf | None = None
    """What a pod uses of ``cpu`` or ``memory``, as a quantity; empty for what its plan says. Must not wait."""

    images: list[str] = field(default_factory=list)
    """Those that were pulled, as the nodes show them."""
    runs: dict[tuple[str, str], list[CommandRun | None]] = field(default_factory=dict)
    """The last two runs of each container, by the pod's uid and its name."""
    ended: dict[str, int] = field(default_factory=dict)
    """The exit codes of pods, by uid, whose command ended while somebody was attached."""

    @property
    def shapes(self) -> tuple[NodeShape, ...]:
        """The nodes. Raises TemplateError."""
        return shapes(self.name, self.nodes, self.template)

    def note_images(self, names: Sequence[str]) -> None:
        """Remembers what was pulled, up to what a node shows."""
        for name in names:
            if name not in self.images and len(self.images) < MOST_IMAGES:
                self.images.append(name)

    def refusal(self, pod: Pod, port: int) -> bytes:
        """What a kubelet says of a port of a pod at which nothing listens; empty where something does."""
        if self.listens(pod, port):
            return b""
        metadata = pod["metadata"]
        where = f"{metadata['name']}_{metadata.get('namespace', '')}({metadata['uid']})"
        return f"error forwarding port {port} to pod {where}: connection refused".encode()

    def log(self, pod: Pod, container: str, *, previous: bool = False) -> str | None:
        """What a container said: as a test or an annotation has it, else what its command did; None where there was no
        such run."""
        if self.logs is not None and not previous:
            return self.logs(pod, container)
        text: str | None = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}logs")
        if text is not None and not previous:
            return text if not text or text.endswith("\n") else text + "\n"
        runs = self.runs.get((pod["metadata"]["uid"], container), [])
        status = _status_of(pod, container)
        # While a container waits for its next run, the last one is the current one and the previous one.
        back = 2 if previous and "waiting" not in (status.get("state") or {}) else 1
        if previous and not (status.get("lastState") or {}).get("terminated"):
            return None
        run = runs[-back] if len(runs) >= back else None
        return "" if run is None else run.output.decode("utf-8", "replace")

    def begin(self, pod: Pod, variables: FindVariables, container: Json) -> CommandRun | None:
        """Begins the command of a container; None where it cannot be simulated. ``variables`` finds those whose values
        other objects have. Raises ContainerConfigError."""
        argv = [*(container.get("command") or ()), *(container.get("args") or ())]
        run = None
        if any("subPathExpr" in each for each in container.get("volumeMounts") or ()):
            check_mounts(Command(pod, container["name"], (), variables=variables(container)), container)
        # Arguments alone are for a program that the image names. What reads its stdin runs when a client attaches.
        if isinstance(self.execute, ContainerShell) and container.get("command"):
            reads = bool(container.get("stdin"))
            if not (reads and container.get("stdinOnce")):
                run = begin(self.execute, pod, container["name"], argv, variables(container), reads=reads)
        runs = self.runs.setdefault((pod["metadata"]["uid"], container["name"]), [])
        runs.append(run)
        del runs[:-2]
        return run

    def ask(self, pod: Pod, variables: FindVariables, container: Json, argv: Sequence[str]) -> int | None:
        """How a probe's command ends; None where that cannot be known."""
        if not isinstance(self.execute, ContainerShell):
            return None
        return ask(self.execute, pod, container["name"], argv, variables(container))

    def forget(self, uid: str) -> None:
        """Drops the runs of a pod that is gone."""
        for key in [key for key in self.runs if key[0] == uid]:
            del self.runs[key]
        self.ended.pop(uid, None)

    def attach(self, command: Command) -> Ran:
        """What a client is attached to: a container's own command, which begins now if it reads what it is sent."""
        container = next(each for each in all_containers(command.pod) if each["name"] == command.container)
        argv = (*(container.get("command") or ()), *(container.get("args") or ()))
        runs = self.runs.get((command.pod["metadata"]["uid"], command.container)) or [None]
        if not argv or not container.get("stdin") or runs[-1] is not None:
            return Ran(iter(command.input))
        ran = self.execute(replace(command, argv=argv))
        self.ended[command.pod["metadata"]["uid"]] = ran.exit_code
        self.faults.changed()
        return ran

    def plan_of(self, pod: Pod) -> Plan:
        """What is to become of a pod. Annotations that cannot be read are passed over."""
        plan = next((rule.plan for rule in self.rules if rule.picks(pod)), None)
        if plan is None:
            plan = self.plan
        if (code := self.ended.get(pod["metadata"].get("uid", ""))) is not None:
            if code:
                return replace(plan, fail_after=0.0, exit_code=code)
            return replace(plan, succeed_after=0.0, exit_code=0)
        annotations = pod["metadata"].get("annotations") or {}
        changes: dict[str, Any] = {}
        for known in fields(Plan):
            text = annotations.get(PREFIX + known.name.replace("_", "-"))
            if text is not None and (value := _read(known.name, text)) is not None:
                changes[known.name] = value
        if "fail_after" in changes and "succeed_after" not in changes:
            changes["succeed_after"] = FOREVER
        return replace(plan, **changes) if changes else plan


def _status_of(pod: Pod, container: str) -> Json:
    """The status of a container of any sort; empty where there is none."""
    status = pod.get("status") or {}
    keys = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    every = [each for key in keys for each in status.get(key) or ()]
    return next((each for each in every if each["name"] == container), {})


def _read(name: str, text: str) -> float | int | bool | str | None:
    if name in ("logs", "cpu", "memory"):
        return text
    if name in ("image_error", "ready", "live"):
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
