"""A pod's status at each stage of its life, as a kubelet writes it. No I/O.

Pending (bound) → Running → Running and ready → Succeeded | Failed
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.server.node.behaviour import FOREVER, Plan
from apimachinery.server.write.identity import now


class Stage(IntEnum):
    """Where a pod is, in order."""

    BOUND = 0
    PULL_FAILED = 1
    RUNNING = 2
    READY = 3
    SUCCEEDED = 4
    FAILED = 5


_PHASES = {
    Stage.BOUND: "Pending",
    Stage.PULL_FAILED: "Pending",
    Stage.RUNNING: "Running",
    Stage.READY: "Running",
    Stage.SUCCEEDED: "Succeeded",
    Stage.FAILED: "Failed",
}


def stage_at(plan: Plan, seconds: float) -> tuple[Stage, float]:
    """The stage that many seconds after a pod was bound, and in how many seconds the next one comes."""
    if plan.image_error:
        return (
            (Stage.PULL_FAILED, FOREVER)
            if seconds >= plan.start_after
            else (Stage.BOUND, plan.start_after - seconds)
        )
    running = seconds - plan.start_after
    if running < 0:
        return Stage.BOUND, -running
    ends = min(plan.succeed_after, plan.fail_after)
    if running >= ends:
        return (Stage.FAILED if plan.fail_after <= plan.succeed_after else Stage.SUCCEEDED), FOREVER
    if running >= plan.ready_after and plan.ready:
        return Stage.READY, ends - running
    return Stage.RUNNING, (min(plan.ready_after, ends) if plan.ready else ends) - running


def write_stage(pod: Json, stage: Stage, plan: Plan, ip: str, restarts: int, host: str = "127.0.0.1") -> Json:
    """Makes the status of a pod that of a stage, in place."""
    status = pod.setdefault("status", {})
    ended = stage >= Stage.SUCCEEDED
    phases = {
        Stage.BOUND: "Pending",
        Stage.PULL_FAILED: "Pending",
        Stage.SUCCEEDED: "Succeeded",
        Stage.FAILED: "Failed",
    }
    status["phase"] = phases.get(stage, "Running")
    status["hostIP"] = host
    status["hostIPs"] = [{"ip": host}]
    if generation := pod.get("metadata", {}).get("generation"):
        status["observedGeneration"] = generation
    status.setdefault("startTime", now())
    if stage >= Stage.RUNNING:
        status["podIP"], status["podIPs"] = ip, [{"ip": ip}]
    ready = stage is Stage.READY
    completed = "PodCompleted" if stage is Stage.SUCCEEDED else "PodFailed" if stage is Stage.FAILED else ""
    waiting = completed or "ContainersNotReady"
    for kind, holds, reason in (
        ("PodReadyToStartContainers", not ended, ""),
        ("Initialized", True, "PodCompleted" if stage is Stage.SUCCEEDED else ""),
        ("Ready", ready, "" if ready else waiting),
        ("ContainersReady", ready, "" if ready else waiting),
        ("PodScheduled", True, ""),
    ):
        set_condition(status, kind, holds, reason)
    for spec_key, status_key in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        containers = (pod.get("spec") or {}).get(spec_key) or []
        if containers:
            old = {entry["name"]: entry for entry in status.get(status_key) or []}
            made_of = Stage.SUCCEEDED if spec_key == "initContainers" and stage >= Stage.RUNNING else stage
            status[status_key] = [
                _container(container, made_of, plan, restarts, old.get(container["name"], {}))
                for container in containers
            ]
    return pod


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


def _container(container: Json, stage: Stage, plan: Plan, restarts: int, old: Json) -> Json:
    started = ((old.get("state") or {}).get("running") or {}).get("startedAt") or now()
    state: dict[str, Any]
    if stage is Stage.BOUND:
        state = {"waiting": {"reason": "ContainerCreating"}}
    elif stage is Stage.PULL_FAILED:
        text = f'Back-off pulling image "{container.get("image", "")}"'
        state = {"waiting": {"reason": "ImagePullBackOff", "message": text}}
    elif stage >= Stage.SUCCEEDED:
        failed = stage is Stage.FAILED
        code = plan.exit_code if plan.exit_code is not None else int(failed)
        reason = "Error" if code else "Completed"
        ended = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}
        state = {"terminated": ended}
    else:
        state = {"running": {"startedAt": started}}
    image = container.get("image", "")
    shown: Json = {
        "name": container["name"],
        "image": image,
        "imageID": f"simulated://{image}" if stage >= Stage.RUNNING else "",
        "ready": stage is Stage.READY,
        "started": stage in (Stage.RUNNING, Stage.READY),
        "restartCount": restarts,
        "state": state,
    }
    if restarts and (
        last := (old.get("state") or {}).get("terminated") or (old.get("lastState") or {}).get("terminated")
    ):
        shown["lastState"] = {"terminated": last}
    if stage >= Stage.RUNNING:
        shown["containerID"] = f"simulated://{container['name']}-{restarts}"
    return shown
