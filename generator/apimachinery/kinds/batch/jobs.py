"""Jobs: completions by index, policies of failure and success, what may change, and a status that adds up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    same,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    invalid_value,
    not_supported,
    too_long,
    too_many,
)
from apimachinery.meta.field_errors import required as required_error

Errors = Iterator[FieldError]

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MAX_INDEXED = 100_000
_MAX_OF_MANY = 10_000
_LABELS = (
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
)
_INDEX = re.compile(r"[+-]?[0-9]+")
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def job(value: Json, path: str) -> Errors:
    """A job: what it is to do, and which pods are its own."""
    del path
    spec = struct(value, "spec") or {}
    yield from job_spec(spec, "spec")
    yield from _selector(spec)


def new_job(value: Json, path: str) -> Errors:
    """A new job has the labels that were made for it, and a name that its pods can bear."""
    del path
    spec = struct(value, "spec") or {}
    yield from _generated_labels(value, spec)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        name = lookup(value, "metadata", "name") or ""
        host = f"{name}-{completions - 1}"
        if names.dns1123_label_faults(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            yield invalid_value("metadata.name", name, detail)


def _generated_labels(value: Json, spec: Json) -> Errors:
    """A selector that is not the client's own is of labels that tell the job."""
    selector = struct(spec, "selector")
    if spec.get("manualSelector") or selector is None:
        return
    metadata = struct(value, "metadata") or {}
    if not metadata.get("uid"):
        yield required_error("metadata.uid")
    place, labels = "spec.template.metadata", lookup(spec, "template", "metadata", "labels") or {}
    for key, of in _LABELS:
        text = metadata.get(of) or ""
        if key not in labels:
            yield required_error(f"{place}.labels[{key}]", f"must be '{text}'")
        elif labels[key] != text:
            yield invalid_value(f"{place}.labels[{key}]", labels, f"must be '{text}'")
    expected = {key: metadata.get(of) or "" for key, of in _LABELS}
    if not any(checks.label_selector(selector, "")) and not checks.selects(selector, expected):
        yield invalid_value("spec.selector", selector, "`selector` not auto-generated")


def _selector(spec: Json) -> Errors:
    selector, labels = spec.get("selector"), lookup(spec, "template", "metadata", "labels")
    if selector is None:
        yield required_error("spec.selector")
    faults = list(checks.label_selector(selector, "spec.selector"))
    yield from faults
    if not faults and not checks.selects(selector, labels):
        yield invalid_value(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )


def job_spec(spec: Json, path: str) -> Errors:
    """What a job is to do; its template is gone into elsewhere."""
    for key in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        yield from checks.minimum(spec.get(key), f"{path}.{key}")
    mode = spec.get("completionMode")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required_error(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from domain_path(spec["managedBy"], f"{path}.managedBy")
        if len(spec["managedBy"].encode()) > 63:
            yield too_long(f"{path}.managedBy", 63)
    if mode is not None and mode not in ("Indexed", "NonIndexed"):
        yield not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                yield invalid_value(f"{path}.{key}", spec[key], "requires indexed completion mode")
    if struct(spec, "podFailurePolicy") is not None:
        yield from _failure_policy(spec, f"{path}.podFailurePolicy.rules")
    success = struct(spec, "successPolicy")
    if success is not None:
        if mode != "Indexed":
            yield invalid_value(f"{path}.successPolicy", success, "requires indexed completion mode")
        else:
            yield from _success_policy(success, spec.get("completions") or 0, f"{path}.successPolicy.rules")
    replacement = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if replacement is not None and replacement not in allowed:
        yield not_supported(f"{path}.podReplacementPolicy", replacement, allowed)
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Json, path: str) -> Errors:
    policy = lookup(spec, "template", "spec", "restartPolicy") or ""
    if policy in ("", "Always"):
        yield required_error(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid_value(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def domain_path(value: str, path: str) -> Errors:
    """A domain and a path below it: ``example.com/foo``."""
    if not value:
        yield required_error(path)
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        yield invalid_value(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from checks.each_fault(host, path, "dns-subdomain")
    if not _PATH.fullmatch(rest):
        detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
        yield invalid_value(path, rest, detail)


def _indexed(spec: Json, path: str) -> Errors:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required_error(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MAX_INDEXED:
        detail = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
        yield invalid_value(f"{path}.parallelism", parallelism, detail)
    if failed is not None and completions is not None and failed > completions:
        yield invalid_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MAX_INDEXED:
        yield invalid_value(
            f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MAX_INDEXED}"
        )
    if completions is None or completions <= _MAX_INDEXED or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        yield required_error(
            f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MAX_INDEXED}"
        )
    detail = (
        f"must be less than or equal to {_MAX_OF_MANY} when completions are above {_MAX_INDEXED} and used with "
        "backoff limit per index"
    )
    for key, count in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if count is not None and count > _MAX_OF_MANY:
            yield invalid_value(f"{path}.{key}", count, detail)


def _quoted(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(chr(34) + each + chr(34) for each in values)}]"


def _one_of(value: Any, path: str, allowed: tuple[str, ...]) -> Errors:
    if not value:
        yield required_error(path, _quoted(allowed))
    elif value not in allowed:
        yield not_supported(path, value, allowed)


def _failure_policy(spec: Json, path: str) -> Errors:
    rules = list(items(spec["podFailurePolicy"], "rules"))
    if len(rules) > 20:
        yield too_many(path, len(rules), 20)
    pod = struct(spec, "template", "spec") or {}
    containers = {each.get("name") for kind in ("containers", "initContainers") for each in items(pod, kind)}
    for index, rule in enumerate(rules):
        place, action = f"{path}[{index}]", rule.get("action")
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                detail = "requires the backoffLimitPerIndex to be set"
                yield invalid_value(f"{place}.action", action, detail)
        else:
            yield from _one_of(action, f"{place}.action", _ACTIONS)
        codes, conditions = struct(rule, "onExitCodes"), list(items(rule, "onPodConditions"))
        if codes is not None:
            yield from _exit_codes(codes, f"{place}.onExitCodes", containers)
        if len(conditions) > 20:
            yield too_many(f"{place}.onPodConditions", len(conditions), 20)
        for number, pattern in enumerate(conditions):
            at = f"{place}.onPodConditions[{number}]"
            yield from checks.each_fault(pattern.get("type") or "", f"{at}.type", "qualified-name")
            yield from _one_of(pattern.get("status"), f"{at}.status", ("False", "True", "Unknown"))
        if codes is not None and conditions:
            detail = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield FieldError(Reason.INVALID, place, detail)
        if codes is None and not conditions:
            detail = "specifying one of OnExitCodes and OnPodConditions is required"
            yield FieldError(Reason.INVALID, place, detail)


def _exit_codes(codes: Json, path: str, containers: set[Any]) -> Errors:
    operator, values, name = codes.get("operator"), codes.get("values") or [], codes.get("containerName")
    yield from _one_of(operator, f"{path}.operator", ("In", "NotIn"))
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", name, detail)
    if not values:
        yield invalid_value(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > 255:
        yield too_many(f"{path}.values", len(values), 255)
    for index, code in enumerate(values):
        if operator == "In" and code == 0:
            yield invalid_value(f"{path}.values[{index}]", code, "must not be 0 for the In operator")
        if code in values[:index]:
            yield duplicate(f"{path}.values[{index}]", code)
    if values != sorted(values):
        yield invalid_value(f"{path}.values", values, "must be ordered")


def _success_policy(policy: Json, completions: int, path: str) -> Errors:
    rules = list(items(policy, "rules"))
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required_error(path, detail)
    if len(rules) > 20:
        yield too_many(path, len(rules), 20)
    for index, rule in enumerate(rules):
        place, count, indexes = f"{path}[{index}]", rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            yield required_error(place, detail)
        total = 0
        if indexes is not None:
            if len(indexes) > 64 * 1024:
                yield too_long(f"{place}.succeededIndexes", 64 * 1024)
            try:
                total = count_indexes(indexes, completions)
            except ValueError as fault:
                detail = f"error parsing succeededIndexes: {fault}"
                yield invalid_value(f"{place}.succeededIndexes", indexes, detail)
        if count is None:
            continue
        at = f"{place}.succeededCount"
        yield from checks.minimum(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid_value(at, count, detail)
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes "
                "field)"
            )
            yield invalid_value(at, count, detail)


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise ValueError(
            f'the fragment "{text}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    bounds: list[int] = []
    for part in parts:
        if not _INDEX.fullmatch(part) or not -(2**63) <= int(part[:32]) < 2**63:
            raise ValueError(f'cannot convert string to integer for index: "{part}"')
        if int(part) >= completions:
            raise ValueError(f'too large index: "{part}"')
        bounds.append(int(part))
    if len(bounds) == 2 and bounds[0] >= bounds[1]:
        raise ValueError(f"non-increasing order, previous: {bounds[0]}, current: {bounds[1]}")
    return bounds[0], bounds[-1]


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text such as ``0-3,7`` names. Raises ``ValueError`` in Kubernetes' words."""
    total, last = 0, None
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def job_update(value: Json, path: str, old: Json) -> Errors:
    """What of a job's spec stays: how much is to be done, and by which pods."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    yield from _completions(spec, before)
    yield from checks.immutable(spec.get("selector"), "spec.selector", before.get("selector"))
    yield from _template(spec, before, old)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from checks.immutable(spec.get(name), f"spec.{name}", before.get(name))


def _completions(spec: Json, before: Json) -> Errors:
    now = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        yield from checks.immutable(now, "spec.completions", before.get("completions"))
    elif now is not None and now != before.get("completions") and now != spec.get("parallelism"):
        yield invalid_value("spec.completions", now, "can only be modified in tandem with spec.parallelism")


def _template(spec: Json, before: Json, old: Json) -> Errors:
    """Where its pods may run and what they ask for may change while a job is suspended and has none."""
    now, last = spec.get("template") or {}, before.get("template") or {}
    if same(now, last):
        return
    suspended = before.get("suspend") is True
    started = lookup(old, "status", "startTime") is not None
    active = lookup(old, "status", "active") or 0
    idle = suspended and not active and (not started or _is_true(old, "Suspended"))
    newer = gates.enabled("MutableSchedulingDirectivesForSuspendedJobs")
    if idle if newer else suspended and not started:
        last = _directed(now, last)
    if suspended and idle and gates.enabled("MutablePodResourcesForSuspendedJobs"):
        pod, stored = (struct(each, "spec") or {} for each in (now, last))
        if not same(_without_sizes(pod), _without_sizes(stored)):
            yield invalid_value("spec.template.spec", pod, "field is immutable")
    elif not same(now, last):
        yield invalid_value("spec.template", now, "field is immutable")


def _directed(now: Json, last: Json) -> Json:
    """The stored template with the new one's directives of where to run."""
    metadata = {**(last.get("metadata") or {})}
    for key in ("annotations", "labels"):
        _take(metadata, key, now.get("metadata") or {})
    pod, stored = now.get("spec") or {}, {**(last.get("spec") or {})}
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        _take(stored, key, pod)
    affinity = {key: each for key, each in (stored.get("affinity") or {}).items() if key != "nodeAffinity"}
    if lookup(pod, "affinity", "nodeAffinity") is not None:
        affinity["nodeAffinity"] = pod["affinity"]["nodeAffinity"]
    if affinity or "affinity" in pod:
        stored["affinity"] = affinity
    else:
        stored.pop("affinity", None)
    whole = {**last, "spec": stored}
    if metadata or "metadata" in now:
        whole["metadata"] = metadata
    return whole


def _take(target: Json, key: str, source: Json) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _without_sizes(pod: Json) -> Json:
    masked = dict(pod)
    for kind in ("containers", "initContainers"):
        if kind in masked:
            masked[kind] = [
                {key: each for key, each in container.items() if key != "resources"}
                for container in items(pod, kind)
            ]
    return masked


def _is_true(job: Json, kind: str) -> bool:
    return any(
        each.get("type") == kind and each.get("status") == "True"
        for each in items(struct(job, "status") or {}, "conditions")
    )


def new_cron_job(value: Json, path: str) -> Errors:
    """A cron job leaves room in its name for what its jobs' names add."""
    del path
    name = lookup(value, "metadata", "name") or ""
    if len(name.encode()) > 52:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")
    yield from cron_job_changes(value, "", {})


def cron_job_changes(value: Json, path: str, old: Json) -> Errors:
    """Schedules and time zones: what is stored stays good."""
    del path
    from apimachinery.kinds.apps.workloads import schedule, time_zone

    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    yield from schedule(
        spec.get("schedule"),
        "spec.schedule",
        allows_zone="TZ" in (before.get("schedule") or ""),
        zone=spec.get("timeZone"),
    )
    if not before or spec.get("timeZone") != before.get("timeZone"):
        yield from time_zone(spec.get("timeZone"), "spec.timeZone")


def job_template(value: Any, path: str) -> Errors:
    """The template of jobs: their selector is made for each."""
    if not isinstance(value, dict):
        return
    yield from job_spec(value, path)
    if value.get("selector") is not None:
        yield invalid_value(f"{path}.selector", value["selector"], "`selector` will be auto-generated")
    if value.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))


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
        self.now = {kind for kind in self._KINDS if _is_true(job, kind)}
        self.was = {kind for kind in self._KINDS if _is_true(old, kind)}

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
                found.append(_interval(part, completions))
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
