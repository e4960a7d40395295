"""Tables of what runs: workloads and jobs."""

from __future__ import annotations

from apimachinery.kinds.cell import (
    NONE,
    UNSET,
    Cell,
    at,
    count_at,
    get,
    joined,
    labels_text,
    of,
    selector_text,
    text_at,
)
from apimachinery.kinds.durations import between, since
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.json import Json


def _containers(path: str, key: str) -> Cell:
    return lambda obj: joined(c.get(key, "") for c in get(obj, path) or () if isinstance(c, dict))


def _workload(template: str = "spec.template.spec.containers", selector: bool = True) -> dict[str, Cell]:
    found = {"Containers": _containers(template, "name"), "Images": _containers(template, "image")}
    return {**found, "Selector": of("spec.selector", selector_text)} if selector else found


def _ready(ready: str, wanted: str) -> Cell:
    return lambda obj: f"{get(obj, ready) or 0}/{get(obj, wanted) or 0}"


def _job_status(job: Json) -> str:
    conditions = {c.get("type"): c.get("status") for c in get(job, "status.conditions") or ()}
    for kind, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if conditions.get(kind) == "True":
            return shown
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for kind, shown in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if conditions.get(kind) == "True":
            return shown
    return "Running"


def _completions(job: Json) -> str:
    done, wanted = get(job, "status.succeeded") or 0, get(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = get(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Json) -> str:
    start = get(job, "status.startTime")
    if not start:
        return ""
    end = get(job, "status.completionTime")
    return between(start, end) if end else since(start)


def _last_schedule(cron_job: Json) -> str:
    last = get(cron_job, "status.lastScheduleTime")
    return since(last) if last else NONE


def _controller(revision: Json) -> str:
    for owner in revision["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = GroupVersion.parse(str(owner.get("apiVersion", ""))).group
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}{'.' + group if group else ''}/{owner.get('name', '')}"
    return NONE


WORKLOADS: dict[str, dict[str, Cell]] = {
    "ControllerRevision": {"Controller": _controller, "Revision": at("revision", 0)},
    "CronJob": {
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", NONE),
        "Suspend": of("spec.suspend", lambda value: UNSET if value is None else str(bool(value))),
        "Active": count_at("status.active"),
        "Last Schedule": _last_schedule,
        **_workload("spec.jobTemplate.spec.template.spec.containers", selector=False),
        "Selector": of("spec.jobTemplate.spec.selector", selector_text),
    },
    "DaemonSet": {
        "Desired": at("status.desiredNumberScheduled", 0),
        "Current": at("status.currentNumberScheduled", 0),
        "Ready": at("status.numberReady", 0),
        "Up-to-date": at("status.updatedNumberScheduled", 0),
        "Available": at("status.numberAvailable", 0),
        "Node Selector": of("spec.template.spec.nodeSelector", labels_text),
        **_workload(),
    },
    "Deployment": {
        "Ready": _ready("status.readyReplicas", "spec.replicas"),
        "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0),
        **_workload(),
    },
    "Job": {
        "Status": _job_status,
        "Completions": _completions,
        "Duration": _job_duration,
        **_workload(),
    },
    "PodDisruptionBudget": {
        "Min Available": text_at("spec.minAvailable", "N/A"),
        "Max Unavailable": text_at("spec.maxUnavailable", "N/A"),
        "Allowed Disruptions": at("status.disruptionsAllowed", 0),
    },
    "PodTemplate": {
        **_workload("template.spec.containers", selector=False),
        "Pod Labels": of("template.metadata.labels", labels_text),
    },
    "ReplicaSet": {
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        **_workload(),
    },
    "ReplicationController": {
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        **_workload(),
        "Selector": of("spec.selector", labels_text),
    },
    "StatefulSet": {"Ready": _ready("status.readyReplicas", "spec.replicas"), **_workload(selector=False)},
}
