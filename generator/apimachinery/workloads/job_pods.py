"""Pods of Jobs: their indexes, failures, and what a pod failure policy says of them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy

from apimachinery.meta.json import Json

from .conditions import find
from .moments import seconds_of
from .owners import is_going
from .pods import phase, pod_of

PREFIX = "batch.kubernetes.io/"
FINALIZER, INDEX = PREFIX + "job-tracking", PREFIX + "job-completion-index"
FAILURES = PREFIX + "job-index-failure-count"
FIRST_WAIT, LONGEST_WAIT = 10.0, 600.0


def is_indexed(job: Json) -> bool:
    """Whether each completion has a number."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_tracked(pod: Json) -> bool:
    """Whether a pod is still to be counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def index_of(pod: Json) -> int:
    """The number of the completion that a pod works on; -1 for none."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def has_failed(job: Json, pod: Json) -> bool:
    """Whether a pod counts as failed: one that is being deleted does, unless only failed ones are replaced."""
    if phase(pod) == "Failed":
        return True
    return is_going(pod) and phase(pod) != "Succeeded" and not waits_for_end(job)


def waits_for_end(job: Json) -> bool:
    """Whether a pod is replaced only once it has ended."""
    policy = job["spec"].get("podReplacementPolicy")
    return policy == "Failed" or (policy is None and "podFailurePolicy" in job["spec"])


def failures_of(pod: Json) -> int:
    """How often the index of a pod failed before it."""
    text = (pod["metadata"].get("annotations") or {}).get(FAILURES, "")
    return int(text) if text.isdigit() else 0


def ended_at(pod: Json) -> float:
    """When the last container of a pod ended."""
    status = pod.get("status") or {}
    ends = [
        seconds_of(((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for each in status.get("containerStatuses") or ()
    ]
    ready = find(status.get("conditions"), "Ready")
    return max(ends, default=0.0) or seconds_of((ready or {}).get("lastTransitionTime"))


def wait_after(failures: int) -> float:
    """How long no pod is made after so many failures in a row."""
    return min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT) if failures > 0 else 0.0


def failures_in_a_row(pods: Iterable[Json]) -> tuple[int, float]:
    """The failures since the last success among pods that are not counted yet, and when the last was."""
    count, last = 0, 0.0
    for pod in sorted(pods, key=ended_at):
        if phase(pod) == "Succeeded":
            count, last = 0, 0.0
        else:
            count, last = count + 1, ended_at(pod)
    return count, last


def new_pod(job: Json, index: int | None = None, failures: int = 0) -> Json:
    """A pod of a job, for an index where it has any."""
    pod = pod_of(job, job["spec"]["template"])
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
    if index is None:
        return pod
    name = job["metadata"]["name"]
    metadata["generateName"] = f"{name}-{index}-"
    for key in ("annotations", "labels"):
        metadata[key] = {**(metadata.get(key) or {}), INDEX: str(index)}
    if job["spec"].get("backoffLimitPerIndex") is not None:
        metadata["annotations"][FAILURES] = str(failures)
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            names = {each["name"] for each in container.get("env") or ()}
            if "JOB_COMPLETION_INDEX" not in names:
                added = {"name": "JOB_COMPLETION_INDEX", "valueFrom": deepcopy(source)}
                container["env"] = [*(container.get("env") or ()), added]
    return pod


def read_indexes(text: str | None) -> set[int]:
    """``0,2-4`` as numbers."""
    numbers: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def write_indexes(numbers: Iterable[int]) -> str:
    """Numbers as ``0,2-4``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(
        str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
        for first, last in parts
    )


def policy_action(job: Json, pod: Json) -> tuple[str, str]:
    """What the pod failure policy says of a pod that failed (``Count`` where nothing), and why in a sentence."""
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        why = next(_matches(rule, pod), None)
        if why is not None:
            return rule["action"], f"{why} matching {rule['action']} rule at index {number}"
    return "Count", ""


def _matches(rule: Json, pod: Json) -> Iterator[str]:
    status, name = pod.get("status") or {}, f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    codes = rule.get("onExitCodes")
    if codes is not None:
        for container in [
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ]:
            ended = (container.get("state") or {}).get("terminated")
            if (
                ended is None
                or not ended.get("exitCode")
                or codes.get("containerName") not in (None, container["name"])
            ):
                continue
            if (ended["exitCode"] in codes["values"]) == (codes["operator"] == "In"):
                yield f"Container {container['name']} for pod {name} failed with exit code {ended['exitCode']}"
    for wanted in rule.get("onPodConditions") or ():
        held = find(status.get("conditions"), wanted["type"])
        if held is not None and held["status"] == wanted.get("status", "True"):
            yield f"Pod {name} has condition {wanted['type']}"
