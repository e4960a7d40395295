"""The status of a job: what its controller reports adds up, and what has ended stays so."""

from __future__ import annotations

from apimachinery.kinds import checks
from apimachinery.kinds.batch.job_policies import count_indexes, interval
from apimachinery.kinds.batch.jobs import is_true
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    struct,
)
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    invalid_value,
)
from apimachinery.meta.field_errors import required as required_error


def job_status(value: Json, path: str, old: Json) -> Errors:
    """The status of a job adds up. What did not change is not asked: a spec may have changed beneath it."""
    del path
    status, before = struct(value, "status") or {}, struct(old, "status") or {}
    for key in ("active", "succeeded", "failed", "ready", "terminating"):
        yield from checks.minimum(status.get(key), f"status.{key}")
    yield from _uncounted(struct(status, "uncountedTerminatedPods") or {})
    yield from _JobStatus(value, old, status, before).faults()


def _uncounted(pods: Json) -> Errors:
    seen = set()
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(key) or ()):
            place = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                yield invalid_value(place, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(place, uid)
            seen.add(uid)


class _JobStatus:
    """One write of a job's status, next to the stored one."""

    def __init__(self, job: Json, old: Json, status: Json, before: Json) -> None:
        self.job, self.old, self.status, self.before = job, old, status, before
        self.spec = struct(job, "spec") or {}
        self.now = {kind for kind in self._KINDS if is_true(job, kind)}
        self.was = {kind for kind in self._KINDS if is_true(old, kind)}

    _KINDS = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")

    def changed(self, *keys: str) -> bool:
        """Whether a field of the status, or a condition, is new."""
        return any(
            (key in self.now) != (key in self.was)
            if key in self._KINDS
            else (self.status.get(key) or None) != (self.before.get(key) or None)
            for key in keys
        )

    def faults(self) -> Errors:
        """Everything that does not add up."""
        yield from self._conditions()
        yield from self._times()
        yield from self._finished()
        yield from self._indexes()
        yield from self._counters()

    def _conditions(self) -> Errors:
        complete, failed = "Complete" in self.now, "Failed" in self.now
        met, target = "SuccessCriteriaMet" in self.now, "FailureTarget" in self.now
        changed = self.changed
        for is_wrong, detail in (
            (
                complete and failed and changed("Complete", "Failed"),
                "cannot set Complete=True and Failed=true conditions",
            ),
            (
                complete and target and changed("Complete", "FailureTarget"),
                "cannot set Complete=True and FailureTarget=true conditions",
            ),
            (
                failed and not target and changed("Failed", "failedIndexes"),
                "cannot set Failed=True condition without the FailureTarget=true condition",
            ),
            (
                complete and not met and changed("Complete", "SuccessCriteriaMet"),
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
            (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
            (met and target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
            (
                complete and not met and self.spec.get("successPolicy") is not None,
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            ),
            (
                "SuccessCriteriaMet" in self.was and not met,
                "cannot disable the SuccessCriteriaMet=True condition",
            ),
            (
                "Complete" in self.was and "SuccessCriteriaMet" not in self.was and met,
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            ),
        ):
            if is_wrong:
                yield FieldError(Reason.INVALID, "status.conditions", detail)
        for kind in ("Failed", "Complete", "FailureTarget"):
            if kind in self.was and kind not in self.now:
                detail = f"cannot disable the terminal {kind}=True condition"
                yield FieldError(Reason.INVALID, "status.conditions", detail)

    def _times(self) -> Errors:
        complete, place = "Complete" in self.now, "status.completionTime"
        start, end = self.status.get("startTime"), self.status.get("completionTime")
        if self.changed("Complete", "completionTime"):
            if end is not None and not complete:
                yield invalid_value(
                    place, end, "cannot set completionTime when there is no Complete=True condition"
                )
            if end is None and complete:
                yield required_error(place, "completionTime is required for Complete jobs")
        if self.changed("startTime", "completionTime") and start and end and end < start:
            yield invalid_value(place, end, "must be equal to or after `startTime`")
        stored = self.before.get("completionTime")
        if end is not None and stored is not None and end != stored:
            yield invalid_value(place, end, "field is immutable")
        began = self.before.get("startTime")
        resumes = "Suspended" in self.was and any(
            each.get("type") == "Suspended" and each.get("status") == "False"
            for each in items(self.status, "conditions")
        )
        if began is not None and began != start and not self.spec.get("suspend") and not resumes:
            detail = "field is immutable for unsuspended job once set"
            yield invalid_value("status.startTime", start, detail)

    def _finished(self) -> Errors:
        if not self.now & {"Complete", "Failed"}:
            return
        ended = bool(self.was & {"Complete", "Failed"}) is False
        status = self.status
        if (status.get("active") or 0) > 0 and (ended or self.changed("active")):
            yield invalid_value("status.active", status["active"], "active>0 is invalid for finished job")
        idle = self.spec.get("suspend") is True and self.spec.get("completions") == 0
        if status.get("startTime") is None and (ended or self.changed("startTime")) and not idle:
            yield required_error("status.startTime", "startTime is required for finished job")
        pods = struct(status, "uncountedTerminatedPods") or {}
        if (pods.get("succeeded") or pods.get("failed")) and (
            ended or self.changed("uncountedTerminatedPods")
        ):
            detail = "must be empty for finished job"
            yield invalid_value("status.uncountedTerminatedPods", pods, detail)
        if (status.get("terminating") or 0) > 0 and (ended or self.changed("terminating")):
            detail = "terminating>0 is invalid for finished job"
            yield invalid_value("status.terminating", status["terminating"], detail)

    def _indexes(self) -> Errors:
        done, failed = self.status.get("completedIndexes") or "", self.status.get("failedIndexes")
        completions, per_index = self.spec.get("completions"), self.spec.get("backoffLimitPerIndex")
        new_done, new_failed = self.changed("completedIndexes"), self.changed("failedIndexes")
        place = "status.completedIndexes"
        if new_done and completions is not None:
            yield from self._format(done, place, completions)
        if new_done and done and self.spec.get("completionMode") != "Indexed":
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            yield invalid_value(place, done, detail)
        if failed is None:
            return
        place = "status.failedIndexes"
        if new_failed and completions is not None and per_index is not None:
            yield from self._format(failed, place, completions)
        if new_failed and per_index is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield invalid_value(place, failed, detail)
        if (new_done or new_failed) and completions is not None:
            common = _overlap(done, failed, completions)
            if common is not None:
                detail = f"failedIndexes and completedIndexes overlap at index: {common}"
                yield invalid_value(place, failed, detail)

    def _format(self, text: str, path: str, completions: int) -> Errors:
        try:
            count_indexes(text, completions)
        except ValueError as fault:
            yield invalid_value(path, text, f"error parsing {path.rpartition('.')[2]}: {fault}")

    def _counters(self) -> Errors:
        status, before = self.status, self.before
        if (status.get("failed") or 0) < (before.get("failed") or 0):
            yield invalid_value(
                "status.failed", status.get("failed") or 0, "cannot decrease the failed counter"
            )
        indexed = self.spec.get("completionMode") == "Indexed"
        scaled = indexed and self.spec.get("completions") == self.spec.get("parallelism")
        if (status.get("succeeded") or 0) < (before.get("succeeded") or 0) and not scaled:
            detail = "cannot decrease the succeeded counter"
            yield invalid_value("status.succeeded", status.get("succeeded") or 0, detail)
        ready = status.get("ready")
        if self.changed("ready", "active") and ready is not None and ready > (status.get("active") or 0):
            yield invalid_value("status.ready", ready, "cannot set more ready pods than active")


def _overlap(done: str, failed: str, completions: int) -> int | None:
    """The first index in both texts; intervals that cannot be read are said elsewhere."""
    spans = []
    for text in (done, failed):
        found = []
        for part in text.split(",") if text else ():
            try:
                found.append(interval(part, completions))
            except ValueError:
                continue
        spans.append(found)
    common = [
        max(first, start)
        for first, last in spans[0]
        for start, end in spans[1]
        if first <= end and start <= last
    ]
    return min(common, default=None)
