"""What the containers of a pod do, one after another, and the status that a kubelet writes of it. No I/O.

Containers of ``initContainers`` run in order: each has to end with 0 before the next one begins, but for sidecars
(``restartPolicy: Always``), which have to have begun. Then the others run side by side. One that ends begins again as
the pod's restartPolicy says, after a wait that doubles. A run ends when the pod's plan says so, else when its command
does, where that can be simulated; else never, but for init containers, which end at once.

    Pending (bound, initializing) → Running → Succeeded | Failed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.server.node.behaviour import FOREVER, JOB_SECONDS, Plan
from apimachinery.server.node.runs import CommandRun
from apimachinery.server.node.variables import ContainerConfigError

# A kubelet waits 10 s at first: whoever tests what follows a crash should not have to.
FIRST_RESTART_SECONDS = 1.0
RESTART = "RestartContainer"
KILLED, STOPPED = 137, 143
"""Exit codes of what is killed, and of what ends by the signal that asks it to."""
# The kubelet's limit for one container.
MESSAGE_BYTES, MESSAGE_PATH = 4096, "/dev/termination-log"
TOO_LONG = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
Begin = Callable[[Json], CommandRun | None]
"""Begins the command of a container; None where it cannot be simulated, and runs on. Raises ContainerConfigError."""
RETRY_SECONDS = 10.0
"""After which a container that cannot be made is tried again, if its pod does not change before."""
Ask = Callable[[Json, list[str]], int | None]
"""How a command in a container ends; None where that cannot be known."""


@dataclass(slots=True)
class Life:
    """The runs of one container. Moments are seconds of the node's clock; None for what has not come."""

    spec: Json
    is_init: bool = False
    started: float | None = None
    ended: float | None = None
    resumes: float | None = None
    restarts: int = 0
    exit_code: int = 0
    started_at: str = ""
    finished_at: str = ""
    message: str = ""
    run: CommandRun | None = None
    last: Json | None = None
    probed: float = 0.0
    failures: int = 0
    healthy: bool = True
    refused: str = ""
    """Why it cannot be made as it is."""
    resources: Json = field(default_factory=dict)

    @property
    def is_sidecar(self) -> bool:
        """Whether it runs beside the others, though it begins before them."""
        return self.spec.get("restartPolicy") == "Always"

    @property
    def runs(self) -> bool:
        """Whether it runs now."""
        return self.started is not None and self.ended is None

    @property
    def is_over(self) -> bool:
        """Whether it ended and does not begin again."""
        return self.ended is not None and self.resumes is None

    def begin(self, moment: float, begin: Begin) -> None:
        """Begins a run, unless the container cannot be made."""
        try:
            run = begin(self.spec)
        except ContainerConfigError as fault:
            self.refused = str(fault)
            return
        if self.ended is not None:
            self.last = self.terminated()
        self.started, self.ended, self.resumes = moment, None, None
        self.started_at, self.run, self.refused = now(), run, ""
        self.resources = self.spec.get("resources") or {}
        self.probed, self.failures = moment, 0
        self.healthy = not (self.spec.get("readinessProbe") or {}).get("exec")

    def end(self, moment: float, code: int, policy: str) -> None:
        """Ends the run; a next one follows where the policy says so."""
        self.ended, self.exit_code, self.finished_at = moment, code, now()
        self.message = _message(self.spec, self.run, code)
        if policy == "Always" or (policy == "OnFailure" and code):
            self.resumes = moment + FIRST_RESTART_SECONDS * 2 ** min(self.restarts, 8)
            self.restarts += 1

    def resize(self, moment: float, begin: Begin) -> None:
        """Takes over resources that changed; the container begins again where its policy for one of them says so."""
        wanted = self.spec.get("resources") or {}
        if not self.runs or wanted == self.resources:
            return
        changed = {
            name
            for sort in ("limits", "requests")
            for of in (wanted.get(sort) or {}, self.resources.get(sort) or {})
            for name in of
            if (wanted.get(sort) or {}).get(name) != (self.resources.get(sort) or {}).get(name)
        }
        self.resources = wanted
        policies = self.spec.get("resizePolicy") or ()
        if any(each["resourceName"] in changed and each["restartPolicy"] == RESTART for each in policies):
            self.end(moment, KILLED, "Never")
            self.restarts += 1
            self.begin(moment, begin)

    def terminated(self) -> Json:
        """How the last run ended."""
        state: Json = {
            "exitCode": self.exit_code,
            "reason": "Error" if self.exit_code else "Completed",
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
        }
        if self.message:
            state["message"] = self.message
        return state


@dataclass(slots=True)
class PodLife:
    """What a node knows of a pod that is bound to it since a moment."""

    uid: str
    bound: float
    host: str = ""
    deleted: float = 0.0
    pull_failed: bool = False
    too_long: bool = False
    lives: dict[str, Life] = field(default_factory=dict)
    written: object = None
    """What of it the pod's status says."""

    def of(self, containers: list[Json] | None, *, init: bool = False) -> list[Life]:
        """The lives of containers."""
        found = []
        for each in containers or ():
            life = self.lives.setdefault(each["name"], Life(each, init))
            life.spec = each
            found.append(life)
        return found

    def move(self, pod: Json, plan: Plan, moment: float, begin: Begin, ask: Ask) -> float:
        """Brings the containers to where they are at a moment; seconds until something changes."""
        spec = pod["spec"]
        starts = self.bound + plan.start_after
        self.pull_failed = plan.image_error and moment >= starts and not self.lives
        if self.pull_failed or moment < starts:
            return max(starts - moment, 0.0) or FOREVER
        policy = spec.get("restartPolicy") or "Always"
        waits = [FOREVER]
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and not self.too_long:
            waits.append(self.bound + deadline - moment)
            if waits[-1] <= 0:
                self.too_long = True
                self.stop(moment, KILLED)
                return FOREVER
        # With restartPolicy Always, too, an init container that succeeded does not run again.
        once = "Never" if policy == "Never" else "OnFailure"
        for life in self.of(spec.get("initContainers"), init=True):
            waits.append(_moved(life, moment, _init_end(life), "Always" if life.is_sidecar else once, begin))
            if not (life.is_sidecar or (life.is_over and not life.exit_code)):
                return min(waits)
        is_job = any(each.get("kind") == "Job" for each in pod["metadata"].get("ownerReferences") or ())
        mains = self.of(spec["containers"])
        for life in mains:
            waits.append(_moved(life, moment, _end_of(life, plan, is_job), policy, begin))
            if life.runs and life.started is not None:
                due = life.started + _ready_after(life.spec, plan) - moment
                waits += [due] if due > 0 else []
        probed = (_probe(life, plan, moment, policy, ask) for life in mains)
        waits += [wait for wait in probed if wait is not None]
        for life in self.of(spec.get("ephemeralContainers")):
            # Ephemeral containers are never restarted, whatever the policy of their pod.
            waits.append(_moved(life, moment, (FOREVER, 0), "Never", begin))
        if all(life.is_over for life in mains):
            self.stop(moment, STOPPED)  # sidecars go last
            return FOREVER
        return min(waits)

    def stop(self, moment: float, code: int) -> None:
        """Ends what runs or would begin again, for good."""
        for life in self.lives.values():
            if life.runs:
                life.end(moment, code, "Never")
            life.resumes = None

    def picture(self, pod: Json, plan: Plan, moment: float) -> object:
        """What a status would say, as something to compare."""
        return (
            self.phase(pod),
            self.pull_failed,
            pod["metadata"].get("generation", 0),
            tuple(
                (name, each.started, each.ended, each.resumes, each.refused, _is_ready(each, plan, moment))
                for name, each in self.lives.items()
            ),
        )

    def phase(self, pod: Json) -> str:
        """Pending, Running, Succeeded or Failed."""
        spec = pod["spec"]
        inits = [life for life in self.lives.values() if life.is_init]
        if self.too_long or any(life.is_over and life.exit_code and not life.is_sidecar for life in inits):
            return "Failed"
        mains = [self.lives[each["name"]] for each in spec["containers"] if each["name"] in self.lives]
        if not mains or any(life.started is None for life in mains):
            return "Pending"
        if all(life.is_over for life in mains):
            return "Failed" if any(life.exit_code for life in mains) else "Succeeded"
        return "Running"

    def write(self, pod: Json, plan: Plan, moment: float, address: str) -> Json:
        """Makes the status of a pod what it is at a moment, in place."""
        status, spec = pod.setdefault("status", {}), pod["spec"]
        status["phase"] = phase = self.phase(pod)
        addresses = self.addresses(address)
        if all(life.started is None for life in self.lives.values()):
            addresses = {key: value for key, value in addresses.items() if key.startswith("host")}
        status.update(addresses)
        if generation := pod.get("metadata", {}).get("generation"):
            status["observedGeneration"] = generation
        status.setdefault("startTime", now())
        if self.too_long:
            status["reason"], status["message"] = TOO_LONG
        inits, mains, others = (
            [(each, self.lives.get(each["name"])) for each in spec.get(key) or ()]
            for key in ("initContainers", "containers", "ephemeralContainers")
        )
        unfinished = [each["name"] for each, life in inits if not _is_through(life)]
        for kind, holds, reason, message in _conditions(phase, unfinished, mains, plan, moment):
            set_condition(status, kind, holds, reason, message)
        for key, containers in (
            ("initContainerStatuses", inits),
            ("containerStatuses", mains),
            ("ephemeralContainerStatuses", others),
        ):
            if containers:
                initializing = "PodInitializing" if inits and unfinished else "ContainerCreating"
                status[key] = [
                    self._shown(each, life, initializing, plan, moment) for each, life in containers
                ]
        return pod

    def addresses(self, own: str) -> Json:
        """The part of a status that says where a pod is."""
        return {"hostIP": self.host, "hostIPs": [{"ip": self.host}], "podIP": own, "podIPs": [{"ip": own}]}

    def _shown(self, spec: Json, life: Life | None, waiting: str, plan: Plan, moment: float) -> Json:
        """The status of one container."""
        image, begun = spec.get("image", ""), life is not None and life.started is not None
        shown: Json = {
            "name": spec["name"],
            "image": image,
            "imageID": f"simulated://{image}" if begun else "",
            "ready": _is_through(life)
            if life is not None and life.is_init
            else _is_ready(life, plan, moment),
            "started": life is not None and life.runs,
            "restartCount": life.restarts if life is not None else 0,
            "state": self._state(spec, life, waiting),
        }
        if life is not None and begun:
            last = life.terminated() if life.resumes is not None else life.last
            if last is not None:
                shown["lastState"] = {"terminated": last}
            shown["containerID"] = f"simulated://{spec['name']}-{life.restarts}"
            shown["resources"] = spec.get("resources") or {}
            if requests := shown["resources"].get("requests"):
                shown["allocatedResources"] = requests
        return shown

    def _state(self, spec: Json, life: Life | None, waiting: str) -> dict[str, Any]:
        if life is None or life.started is None:
            if self.pull_failed:
                text = f'Back-off pulling image "{spec.get("image", "")}"'
                return {"waiting": {"reason": "ImagePullBackOff", "message": text}}
            if life is not None and life.refused:
                return {"waiting": {"reason": "CreateContainerConfigError", "message": life.refused}}
            return {"waiting": {"reason": waiting}}
        if life.resumes is not None and life.ended is not None:
            text = f"back-off {life.resumes - life.ended:g}s restarting failed container"
            return {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        return {"running": {"startedAt": life.started_at}} if life.runs else {"terminated": life.terminated()}


def _moved(life: Life, moment: float, end: tuple[float, int], policy: str, begin: Begin) -> float:
    """Begins and ends runs of a container up to a moment; seconds until it changes. ``end`` says after how many seconds
    a run ends, and how, where its command does not."""
    if life.started is None or (life.resumes is not None and moment >= life.resumes):
        life.begin(moment, begin)
        if life.refused:
            return RETRY_SECONDS
    life.resize(moment, begin)
    if life.resumes is not None:
        return life.resumes - moment
    if life.started is None or life.ended is not None:
        return FOREVER
    after, code = end
    if life.run is not None and after == FOREVER:
        due = life.run.go_on(moment - life.started)
        if not life.run.has_ended:
            return due
        after, code = 0.0, life.run.exit_code
    due = life.started + after - moment
    if due > 0:
        return due
    life.end(moment, code, policy)
    return FOREVER if life.resumes is None else life.resumes - moment


def _init_end(life: Life) -> tuple[float, int]:
    """When a run of an init container ends where its command does not say."""
    return (FOREVER, 0) if life.run is not None or life.is_sidecar or life.started is None else (0.0, 0)


def _end_of(life: Life, plan: Plan, is_job: bool) -> tuple[float, int]:
    """When a run of a container ends where its command does not say."""
    if plan.fail_after <= plan.succeed_after and plan.fail_after < FOREVER:
        return plan.fail_after, 1 if plan.exit_code is None else plan.exit_code
    if plan.succeed_after < FOREVER:
        return plan.succeed_after, plan.exit_code or 0
    if is_job and life.run is None and life.started is not None:
        return JOB_SECONDS, 0
    return FOREVER, 0


def _probe(life: Life, plan: Plan, moment: float, policy: str, ask: Ask) -> float | None:
    """Asks the probes of a container that run a command; seconds until the next time, None where there are none.
    A liveness probe that fails often enough ends the run."""
    if not life.runs or life.started is None:
        return None
    if not plan.live and "livenessProbe" in life.spec:
        life.end(moment, KILLED, policy)
        return None if life.resumes is None else life.resumes - moment
    probes = [life.spec.get(key) or {} for key in ("readinessProbe", "livenessProbe")]
    asked = [probe for probe in probes if probe.get("exec")]
    if not asked:
        return None
    period = float(min(probe.get("periodSeconds") or 10 for probe in asked))
    begins = life.started + min(probe.get("initialDelaySeconds") or 0 for probe in asked)
    due = max(begins, life.probed + (period if life.probed > life.started else 0.0))
    if moment < due:
        return due - moment
    life.probed = max(moment, life.started + 1e-6)
    for probe, is_liveness in zip(probes, (False, True), strict=True):
        command = (probe.get("exec") or {}).get("command")
        if not command:
            continue
        code = ask(life.spec, command)
        if not is_liveness:
            life.healthy = not code
            continue
        life.failures = life.failures + 1 if code else 0
        if life.failures >= (probe.get("failureThreshold") or 3):
            life.end(moment, KILLED, policy)
            return None if life.resumes is None else life.resumes - moment
    return period


def _is_ready(life: Life | None, plan: Plan, moment: float) -> bool:
    if life is None or not life.runs or life.started is None or not (plan.ready and life.healthy):
        return False
    return moment - life.started >= _ready_after(life.spec, plan)


def _ready_after(spec: Json, plan: Plan) -> float:
    """How long a container is not ready after its start: no probe is made before its delay."""
    delays = (
        (spec.get(key) or {}).get("initialDelaySeconds") or 0 for key in ("startupProbe", "readinessProbe")
    )
    return max(plan.ready_after, *delays)


def _is_through(life: Life | None) -> bool:
    """Whether an init container lets the next one begin."""
    if life is None:
        return False
    return life.runs if life.is_sidecar else life.is_over and not life.exit_code


def _message(spec: Json, run: CommandRun | None, code: int) -> str:
    """What a container leaves behind: its file of messages, or the end of what it said where it failed."""
    if run is None:
        return ""
    text = run.take(spec.get("terminationMessagePath") or MESSAGE_PATH)
    if not text and code and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        text = run.output.decode("utf-8", "replace").rstrip("\n")
        return text[-2048:]
    return text[:MESSAGE_BYTES]


def _conditions(
    phase: str,
    unfinished: list[str],
    mains: list[tuple[Json, Life | None]],
    plan: Plan,
    moment: float,
) -> Iterator[tuple[str, bool, str, str]]:
    """Type, value, reason and message of each condition."""
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    yield "PodReadyToStartContainers", not ended, "", ""
    if unfinished:
        names = " ".join(unfinished)
        yield (
            "Initialized",
            False,
            "ContainersNotInitialized",
            f"containers with incomplete status: [{names}]",
        )
    else:
        yield "Initialized", True, "PodCompleted" if phase == "Succeeded" else "", ""
    waiting = [spec["name"] for spec, life in mains if not _is_ready(life, plan, moment)]
    reason = ended or ("ContainersNotReady" if waiting else "")
    message = "" if ended or not waiting else f"containers with unready status: [{' '.join(waiting)}]"
    for kind in ("Ready", "ContainersReady"):
        yield kind, not waiting, reason, message
    yield "PodScheduled", True, "", ""


def set_condition(status: Json, kind: str, holds: bool, reason: str = "", message: str = "") -> None:
    """Sets one condition of a pod's status; its time changes with its value only."""
    conditions: list[Json] = status.setdefault("conditions", [])
    value = "True" if holds else "False"
    made: Json = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": now()}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    for at, found in enumerate(conditions):
        if found["type"] == kind:
            if found["status"] == value:
                made["lastTransitionTime"] = found.get("lastTransitionTime") or made["lastTransitionTime"]
            conditions[at] = made
            return
    conditions.append(made)
