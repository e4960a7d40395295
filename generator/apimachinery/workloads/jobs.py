"""Jobs: pods that run to their end, as often as is asked for.

A pod carries a finalizer until it is counted, so none is missed or counted twice: its uid goes into
``uncountedTerminatedPods`` first, then its finalizer, then the uid becomes a number. ``job_pods`` has what is true of
one pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json

from .conditions import find, holds, with_condition
from .interface import ClusterView, Follows, Workload, write_status
from .job_pods import (
    FINALIZER,
    failures_in_a_row,
    failures_of,
    has_failed,
    index_of,
    is_indexed,
    is_tracked,
    new_pod,
    policy_action,
    read_indexes,
    wait_after,
    waits_for_end,
    write_indexes,
)
from .moments import seconds_of, sooner, text_of
from .owners import claim, controller_of, is_controlled_by, is_going, owner_or_selecting, selector
from .pods import first_to_go, has_ended, is_ready, phase
from .replicasets import create_pods

JOBS = "jobs.batch"
ENDS = ("Complete", "Failed")


def has_finished(job: Json) -> bool:
    """Whether a job is Complete or Failed."""
    return any(holds((job.get("status") or {}).get("conditions"), kind) for kind in ENDS)


async def reconcile(cluster: ClusterView, job: Json) -> float | None:
    """Counts what ended, ends or makes pods, and says how far the job is. Raises ApiError."""
    managed = job["spec"].get("managedBy")
    if managed not in (None, "kubernetes.io/job-controller") or has_finished(job):
        return None
    present = cluster.objects("pods", job["metadata"]["namespace"])
    pods = await claim(cluster, "pods", job, present, selector(job))
    if is_going(job):
        return None
    return await _Look(cluster, job, pods).take()


class _Look:
    """One look at a job; ``status`` is what is to be written."""

    def __init__(self, cluster: ClusterView, job: Json, pods: Sequence[Json]) -> None:
        self.cluster, self.job, self.pods = cluster, job, list(pods)
        self.spec = job["spec"]
        self.status: Json = dict(job.get("status") or {})
        self.now = cluster.now()
        self.wait: float | None = None
        self.new_failures: list[Json] = []
        self.recent: list[Json] = []
        """Pods that ended and are not counted yet, at the beginning: what the wait after failures goes by."""

    async def take(self) -> float | None:
        """All of it, in Kubernetes' order."""
        if not self.status.get("startTime") and not self.spec.get("suspend"):
            self.status["startTime"] = text_of(self.now)
        self.recent = [
            pod for pod in self.pods if is_tracked(pod) and (has_ended(pod) or has_failed(self.job, pod))
        ]
        self._find_failures()
        self._judge_deadline()
        self._judge_failures()
        failing = holds(self.status.get("conditions"), "FailureTarget")
        await self._count(failing)
        if not failing:
            self._judge_success()
        failure = await self._scale()
        self._numbers()
        self._finish()
        await write_status(self.cluster, JOBS, self.job, self._shown())
        if failure is not None:
            raise failure
        return self.wait

    @property
    def active(self) -> list[Json]:
        """Pods that run, or are going to."""
        return [pod for pod in self.pods if not has_ended(pod) and not is_going(pod)]

    @property
    def leaving(self) -> list[Json]:
        """Pods that are being deleted and have not ended."""
        return [pod for pod in self.pods if is_going(pod) and not has_ended(pod)]

    def _condition(self, kind: str, reason: str, message: str, value: str = "True") -> None:
        moment = text_of(self.now)
        made = {"type": kind, "status": value, "lastProbeTime": moment, "lastTransitionTime": moment}
        made |= {"reason": reason, "message": message}
        self.status["conditions"] = with_condition(self.status.get("conditions"), made)

    @property
    def _decided(self) -> bool:
        held = self.status.get("conditions")
        return any(holds(held, kind) for kind in ("FailureTarget", "SuccessCriteriaMet"))

    def _fail(self, reason: str, message: str) -> None:
        if not self._decided:
            self._condition("FailureTarget", reason, message)

    # What ended.

    def _find_failures(self) -> None:
        """Collects the failed pods that are still to be counted; a policy may pass some over, or fail the job."""
        counted = self._uncounted("failed")
        for pod in self.pods:
            if is_tracked(pod) and has_failed(self.job, pod) and pod["metadata"]["uid"] not in counted:
                action, why = policy_action(self.job, pod)
                if action == "FailJob":
                    self._fail("PodFailurePolicy", why)
                if action != "Ignore":
                    self.new_failures.append(pod)

    def _judge_deadline(self) -> None:
        deadline = self.spec.get("activeDeadlineSeconds")
        if deadline is None or self.spec.get("suspend") or not self.status.get("startTime"):
            return
        left = seconds_of(self.status["startTime"]) + deadline - self.now
        if left <= 0:
            self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
        else:
            self.wait = sooner(self.wait, left)

    def _judge_failures(self) -> None:
        limit = self.spec.get("backoffLimit", 6)
        if self.spec.get("backoffLimitPerIndex") is not None:
            self._judge_indexes()
        failed = self.status.get("failed", 0) + len(self._uncounted("failed")) + len(self.new_failures)
        restarts = 0
        if self.spec["template"]["spec"].get("restartPolicy") == "OnFailure":
            restarts = sum(
                each.get("restartCount", 0)
                for pod in self.active
                for key in ("initContainerStatuses", "containerStatuses")
                for each in (pod.get("status") or {}).get(key) or ()
            )
        if (self.new_failures and failed > limit) or (restarts and restarts >= limit):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")

    def _judge_indexes(self) -> None:
        limit, failed = self.spec["backoffLimitPerIndex"], read_indexes(self.status.get("failedIndexes"))
        for pod in self.new_failures:
            if failures_of(pod) >= limit or policy_action(self.job, pod)[0] == "FailIndex":
                failed.add(index_of(pod))
        self.status["failedIndexes"] = write_indexes(failed)
        most = self.spec.get("maxFailedIndexes")
        if most is not None and len(failed) > most:
            text = "Job has exceeded the specified maximal number of failed indexes"
            self._fail("MaxFailedIndexesExceeded", text)

    def _uncounted(self, key: str) -> list[str]:
        return list((self.status.get("uncountedTerminatedPods") or {}).get(key) or ())

    async def _count(self, failing: bool) -> None:
        """Makes numbers of pods that ended, and takes their finalizers away."""
        good = self._uncounted("succeeded")
        bad = self._uncounted("failed")
        completed = read_indexes(self.status.get("completedIndexes"))
        known = {*good, *bad}
        passed_over = {pod["metadata"]["uid"] for pod in self.pods} - {
            pod["metadata"]["uid"] for pod in self.new_failures
        }
        freed, added = [], False
        for pod in self.pods:
            uid = pod["metadata"]["uid"]
            failed = has_failed(self.job, pod) or (failing and is_going(pod))
            if not is_tracked(pod) or not (has_ended(pod) or failed):
                continue
            if failed and not has_ended(pod) and not failing and not is_going(pod):
                continue
            freed.append(pod)
            if uid in known:
                continue
            if phase(pod) == "Succeeded":
                if is_indexed(self.job):
                    completed.add(index_of(pod))
                else:
                    good.append(uid)
                    added = True
            elif uid not in passed_over or failing:
                bad.append(uid)
                added = True
        if is_indexed(self.job):
            wanted = self.spec.get("completions") or 0
            completed = {number for number in completed if 0 <= number < wanted}
            self.status["completedIndexes"] = write_indexes(completed)
            self.status["succeeded"] = len(completed)
        if added:
            self.status["uncountedTerminatedPods"] = {"succeeded": good, "failed": bad}
            await write_status(self.cluster, JOBS, self.job, self._shown())
            self.job = {**self.job, "status": self._shown()}
        for pod in freed:
            written = await self.cluster.update("pods", pod, _untracked)
            self.pods[self.pods.index(pod)] = written
        self.status["succeeded"] = self.status.get("succeeded", 0) + len(good)
        self.status["failed"] = self.status.get("failed", 0) + len(bad)
        self.status["uncountedTerminatedPods"] = {}

    # How it goes on.

    def _judge_success(self) -> None:
        done, wanted = self.status.get("succeeded", 0), self.spec.get("completions")
        if self._decided:
            return
        if is_indexed(self.job) and (matched := self._success_rule()) is not None:
            self._condition("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {matched}")
            return
        failed = len(read_indexes(self.status.get("failedIndexes")))
        if failed and wanted is not None and done + failed >= wanted and not self.active:
            self._fail("FailedIndexes", "Job has failed indexes")
            return
        complete = (done > 0 and not self.active) if wanted is None else done >= wanted
        if complete and not self.spec.get("suspend"):
            text = "Reached expected number of succeeded pods"
            self._condition("SuccessCriteriaMet", "CompletionsReached", text)

    def _success_rule(self) -> int | None:
        completed = read_indexes(self.status.get("completedIndexes"))
        for number, rule in enumerate((self.spec.get("successPolicy") or {}).get("rules") or ()):
            named = read_indexes(rule["succeededIndexes"]) if rule.get("succeededIndexes") else None
            held = completed if named is None else completed & named
            least = rule.get("succeededCount")
            if len(held) >= (least if least is not None else len(named or ())):
                return number
        return None

    async def _scale(self) -> ApiError | None:
        active = self.active
        if self._decided or self.spec.get("suspend"):
            for pod in active:
                await self.cluster.delete("pods", pod)
            self._refresh()
            self._note_suspension()
            return None
        self._note_suspension()
        wanted = self._wanted()
        if len(active) > wanted:
            for pod in first_to_go(active, active, self.now)[: len(active) - wanted]:
                await self.cluster.delete("pods", pod)
            self._refresh()
            return None
        room = wanted - len(active) - (len(self.leaving) if waits_for_end(self.job) else 0)
        if room <= 0 or self._waits():
            return None
        made, failure = await create_pods(self.cluster, self._missing(room))
        self.pods += made
        return failure

    def _refresh(self) -> None:
        """Reads the pods again: those without a node are gone at once."""
        uids = {pod["metadata"]["uid"] for pod in self.pods}
        present = self.cluster.objects("pods", self.job["metadata"]["namespace"])
        self.pods = [pod for pod in present if pod["metadata"]["uid"] in uids]

    def _wanted(self) -> int:
        done: int = self.status.get("succeeded", 0)
        parallel: int = self.spec.get("parallelism", 1)
        total = self.spec.get("completions")
        if total is None:
            return len(self.active) if done else parallel
        failed = len(read_indexes(self.status.get("failedIndexes")))
        return max(min(int(total) - done - failed, parallel), 0)

    def _waits(self) -> bool:
        """Whether the last failure was just now; with indexes of their own limits, each waits alone."""
        if self.spec.get("backoffLimitPerIndex") is not None:
            return False
        failures, last = failures_in_a_row(self._ended())
        left = last + wait_after(failures) - self.now
        if failures and left > 0:
            self.wait = sooner(self.wait, left)
            return True
        return False

    def _ended(self) -> list[Json]:
        """The pods that ended, as long as they are there."""
        return [pod for pod in self.pods if has_ended(pod)]

    def _missing(self, room: int) -> list[Json]:
        if not is_indexed(self.job):
            return [new_pod(self.job)] * room
        taken = {index_of(pod) for pod in self.active} | read_indexes(self.status.get("completedIndexes"))
        taken |= read_indexes(self.status.get("failedIndexes"))
        if waits_for_end(self.job):
            taken |= {index_of(pod) for pod in self.leaving}
        free = [number for number in range(self.spec.get("completions") or 0) if number not in taken]
        made: list[Json] = []
        for index in free:
            if len(made) == room:
                break
            former = [pod for pod in self.pods if index_of(pod) == index and has_ended(pod)]
            failures = max((failures_of(pod) + 1 for pod in former), default=0)
            if self.spec.get("backoffLimitPerIndex") is not None:
                last = failures_in_a_row(former)[1]
                left = last + wait_after(failures) - self.now
                if failures and left > 0:
                    self.wait = sooner(self.wait, left)
                    continue
            made.append(new_pod(self.job, index, failures))
        return made

    def _note_suspension(self) -> None:
        held = find(self.status.get("conditions"), "Suspended")
        if self._decided:
            return
        if self.spec.get("suspend") and (held is None or held["status"] != "True"):
            self._condition("Suspended", "JobSuspended", "Job suspended")
            self.status.pop("startTime", None)
        elif not self.spec.get("suspend") and held is not None and held["status"] == "True":
            self._condition("Suspended", "JobResumed", "Job resumed", "False")
            self.status["startTime"] = text_of(self.now)

    # The status.

    def _numbers(self) -> None:
        active = self.active
        self.status["active"] = len(active)
        self.status["ready"] = sum(is_ready(pod) for pod in active)
        self.status["terminating"] = len(self.leaving)

    def _finish(self) -> None:
        """Says that the job is over, once none of its pods is there that has not ended."""
        if self.active or self.leaving or not self._decided:
            return
        met = find(self.status["conditions"], "SuccessCriteriaMet")
        if met is not None:
            self._condition("Complete", met["reason"], met["message"])
            self.status["completionTime"] = text_of(self.now)
        elif (target := find(self.status["conditions"], "FailureTarget")) is not None:
            self._condition("Failed", target["reason"], target["message"])

    def _shown(self) -> Json:
        always = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
        return {key: value for key, value in self.status.items() if value or key in always}


def _untracked(pod: Json) -> Json | None:
    kept = [each for each in pod["metadata"].get("finalizers") or () if each != FINALIZER]
    if len(kept) == len(pod["metadata"].get("finalizers") or ()):
        return None
    pod["metadata"]["finalizers"] = kept
    return pod


async def release(cluster: ClusterView, pod: Json) -> float | None:
    """Lets go of a pod that no job will count any more. Raises ApiError."""
    reference = controller_of(pod)
    if not is_tracked(pod):
        return None
    job = None
    if reference is not None and reference["kind"] == "Job":
        job = cluster.get(JOBS, pod["metadata"]["namespace"], reference["name"])
    if job is None or not is_controlled_by(pod, job) or is_going(job) or has_finished(job):
        await cluster.update("pods", pod, _untracked)
    return None


def _pods_of(cluster: ClusterView, job: Json) -> Iterator[tuple[str, str]]:
    for pod in cluster.objects("pods", job["metadata"]["namespace"]):
        if is_tracked(pod) and is_controlled_by(pod, job):
            yield pod["metadata"]["namespace"], pod["metadata"]["name"]


async def expire(cluster: ClusterView, job: Json) -> float | None:
    """Deletes a job some time after its end. Raises ApiError."""
    after = job["spec"].get("ttlSecondsAfterFinished")
    if after is None or is_going(job) or not has_finished(job):
        return None
    ends = [find(job["status"]["conditions"], kind) for kind in ENDS]
    ended = max(seconds_of(each["lastTransitionTime"]) for each in ends if each is not None)
    left = ended + float(after) - cluster.now()
    if left > 0:
        return left
    await cluster.delete(JOBS, job, foreground=True)
    return None


WORKLOAD = Workload(JOBS, reconcile, (owner_or_selecting(JOBS, "Job", "pods"),))
ORPHANS = Workload("pods", release, (Follows(JOBS, _pods_of),))
EXPIRY = Workload(JOBS, expire)
