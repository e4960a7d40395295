"""CronJobs: a Job at each time of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json

from .conditions import holds
from .interface import ClusterView, Workload, write_status
from .jobs import JOBS, has_finished
from .moments import seconds_of, text_of
from .owners import is_controlled_by, is_going, owner_or_selecting, reference_to
from .schedules import ScheduleError, parse

CRON_JOBS = "cronjobs.batch"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
SKEW = 0.1
"""A timer may come a moment early."""


async def reconcile(cluster: ClusterView, owner: Json) -> float | None:
    """Makes the job that is due, forgets old ones, and says when the next is due. Raises ApiError."""
    present = cluster.objects(JOBS, owner["metadata"]["namespace"])
    jobs = [job for job in present if is_controlled_by(job, owner)]
    status = _with_jobs(owner, jobs)
    wait, failure = None, None
    if not is_going(owner):
        await _forget_old(cluster, owner, jobs)
        try:
            wait = await _run(cluster, owner, jobs, status)
        except ApiError as error:
            failure = error
    shown = {key: value for key, value in status.items() if value}
    await write_status(cluster, CRON_JOBS, owner, shown)
    if failure is not None:
        raise failure
    return wait


def _with_jobs(owner: Json, jobs: Sequence[Json]) -> Json:
    """The status with the jobs that run, and when one succeeded last."""
    status = dict(owner.get("status") or {})
    running = {job["metadata"]["uid"]: job for job in jobs if not has_finished(job)}
    known = [each for each in status.get("active") or () if each["uid"] in running]
    listed = {each["uid"] for each in known}
    status["active"] = [*known, *(_reference(job) for uid, job in running.items() if uid not in listed)]
    ends = [
        job["status"]["completionTime"]
        for job in jobs
        if holds((job.get("status") or {}).get("conditions"), "Complete")
        and job["status"].get("completionTime")
    ]
    last = max([*ends, status.get("lastSuccessfulTime") or ""])
    if last:
        status["lastSuccessfulTime"] = last
    return status


def _reference(job: Json) -> Json:
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": metadata["resourceVersion"],
    }


async def _run(cluster: ClusterView, owner: Json, jobs: Sequence[Json], status: Json) -> float | None:
    spec, now = owner["spec"], cluster.now()
    if spec.get("suspend"):
        return None
    try:
        schedule = parse(spec["schedule"])
        zone = _zone(spec.get("timeZone"))
    except (ScheduleError, OSError, ValueError, KeyError):
        return None  # nobody can say when
    since = max(
        seconds_of(owner["metadata"]["creationTimestamp"]), seconds_of(status.get("lastScheduleTime"))
    )
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, now - deadline)
    due = schedule.last(since, now + SKEW, zone)
    if due is not None and seconds_of(status.get("lastScheduleTime")) < due:
        await _start(cluster, owner, due, jobs, status)
    following = schedule.after(now + SKEW, zone)
    return None if following is None else following - now


async def _start(cluster: ClusterView, owner: Json, due: float, jobs: Sequence[Json], status: Json) -> None:
    """Makes the job of a time, as its concurrency policy says: another that still runs may forbid it, or give way."""
    spec = owner["spec"]
    running = [job for job in jobs if not has_finished(job) and not is_going(job)]
    if spec.get("concurrencyPolicy") == "Forbid" and running:
        return
    if spec.get("concurrencyPolicy") == "Replace":
        for job in running:
            await cluster.delete(JOBS, job)
        gone = {job["metadata"]["uid"] for job in running}
        status["active"] = [each for each in status["active"] if each["uid"] not in gone]
    try:
        made = await cluster.create(JOBS, _job(owner, due))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    else:
        status["active"] = [*status["active"], _reference(made)]
    status["lastScheduleTime"] = text_of(due)


def _job(owner: Json, due: float) -> Json:
    template = deepcopy(owner["spec"]["jobTemplate"])
    given = template.get("metadata") or {}
    metadata = {
        "name": f"{owner['metadata']['name']}-{int(due) // 60}",
        "namespace": owner["metadata"]["namespace"],
        "labels": given.get("labels") or {},
        "annotations": {**(given.get("annotations") or {}), SCHEDULED: text_of(due)},
        "ownerReferences": [reference_to(owner)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}


def _zone(name: str | None) -> tzinfo:
    return ZoneInfo(name) if name else UTC


async def _forget_old(cluster: ClusterView, owner: Json, jobs: Sequence[Json]) -> None:
    """Deletes the oldest jobs that are over, beyond the limits."""
    for kind, key in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        limit = owner["spec"].get(key)
        if limit is None:
            continue
        over = [job for job in jobs if holds((job.get("status") or {}).get("conditions"), kind)]
        over.sort(key=lambda job: (job["status"].get("startTime") or "", job["metadata"]["name"]))
        for job in over[: max(len(over) - limit, 0)]:
            await cluster.delete(JOBS, job)


WORKLOAD = Workload(CRON_JOBS, reconcile, (owner_or_selecting(CRON_JOBS, "CronJob", JOBS),))
