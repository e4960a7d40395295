"""The cells of pods: how far a pod has come, how many of its containers run, and how often they were started again.

The status is the most telling of many reasons: what its containers wait for or ended with goes before what the pod says
itself, and a container that prepares the pod before those that do its work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apimachinery.kinds.cell import (
    NONE,
    Cell,
    at,
    get,
)
from apimachinery.kinds.durations import since
from apimachinery.meta.json import Json


@dataclass(slots=True)
class _Restarts:
    """How often, and when last."""

    count: int = 0
    last: str = ""

    def add(self, status: Json) -> None:
        self.count += status.get("restartCount") or 0
        self.last = max(self.last, str(get(status, "lastState.terminated.finishedAt") or ""))


@dataclass(slots=True)
class _Summary:
    ready: int
    total: int
    reason: str
    restarts: _Restarts


def _is_sidecar(container: Json) -> bool:
    return container.get("restartPolicy") == "Always"


def _holds(pod: Json, kind: str) -> bool:
    conditions = get(pod, "status.conditions") or ()
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


def _ending(terminated: Json, prefix: str = "") -> str:
    """Why a container ended."""
    if terminated.get("reason"):
        return f"{prefix}{terminated['reason']}"
    if terminated.get("signal"):
        return f"{prefix}Signal:{terminated['signal']}"
    return f"{prefix}ExitCode:{terminated.get('exitCode') or 0}"


def _summary(pod: Json) -> _Summary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    preparing = spec.get("initContainers") or []
    sidecars = {each.get("name") for each in preparing if _is_sidecar(each)}
    reason = str(status.get("reason") or status.get("phase") or "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    total = len(spec.get("containers") or ()) + sum(1 for each in preparing if _is_sidecar(each))
    summary = _Summary(0, total, reason, _Restarts())
    begun = _prepare(summary, status, len(preparing), sidecars)
    if begun is not None or _holds(pod, "Initialized"):
        if begun is None:
            begun = _Restarts()
            for each in _until_waiting(status, sidecars):
                if each.get("name") in sidecars:
                    begun.add(each)
        summary.restarts = begun
        _run(summary, status, ready=_holds(pod, "Ready"))
    return summary


def _is_done(container: Json, sidecars: set[Any]) -> bool:
    """Whether the next container may start: this one is through, or runs next to the others."""
    terminated = get(container, "state.terminated")
    if terminated is not None and not terminated.get("exitCode"):
        return True
    return container.get("name") in sidecars and container.get("started") is True


def _until_waiting(status: Json, sidecars: set[Any]) -> list[Json]:
    found = []
    for container in status.get("initContainerStatuses") or ():
        found.append(container)
        if not _is_done(container, sidecars):
            break
    return found


def _prepare(summary: _Summary, status: Json, count: int, sidecars: set[Any]) -> _Restarts | None:
    """Looks at containers that prepare the pod. Returns the restarts of those that go on running, None where one is
    not through."""
    running = _Restarts()
    for index, container in enumerate(_until_waiting(status, sidecars)):
        summary.restarts.add(container)
        if container.get("name") in sidecars:
            running.add(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), get(state, "waiting.reason")
        if _is_done(container, sidecars):
            through = terminated is not None and not terminated.get("exitCode")
            summary.ready += bool(container.get("ready")) and not through
        elif terminated is not None:
            summary.reason = _ending(terminated, "Init:")
            return None
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
            return None
        else:
            summary.reason = f"Init:{index}/{count}"
            return None
    return running


def _run(summary: _Summary, status: Json, *, ready: bool) -> None:
    """Looks at containers that do the pod's work; the first of them has the last word."""
    runs, failure = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        summary.restarts.add(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if get(state, "waiting.reason"):
            summary.reason = state["waiting"]["reason"]
        elif terminated is not None:
            summary.reason = _ending(terminated)
            if terminated.get("exitCode"):
                failure = summary.reason
        elif container.get("ready") and state.get("running") is not None:
            runs = True
            summary.ready += 1
    if summary.reason == "Completed":
        if runs and ready:
            summary.reason = "Running"
        elif failure:
            summary.reason = failure
        elif runs:
            summary.reason = "NotReady"


def _ready(pod: Json) -> str:
    summary = _summary(pod)
    return f"{summary.ready}/{summary.total}"


def _status(pod: Json) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        if get(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if get(pod, "status.phase") not in ("Failed", "Succeeded"):
            return "Terminating"
    return _summary(pod).reason


def _restarts(pod: Json) -> str:
    restarts = _summary(pod).restarts
    if restarts.count and restarts.last:
        return f"{restarts.count} ({since(restarts.last)} ago)"
    return str(restarts.count)


def _gates(pod: Json) -> str:
    gates = get(pod, "spec.readinessGates") or []
    if not gates:
        return NONE
    conditions = {c.get("type"): c.get("status") for c in get(pod, "status.conditions") or ()}
    met = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return f"{met}/{len(gates)}"


POD: dict[str, Cell] = {
    "Ready": _ready,
    "Status": _status,
    "Restarts": _restarts,
    "IP": at("status.podIP", NONE),
    "Node": at("spec.nodeName", NONE),
    "Nominated Node": at("status.nominatedNodeName", NONE),
    "Readiness Gates": _gates,
}
