"""Jobs: completions by index, policies of failure and success, what may change, and a status that adds up."""

from __future__ import annotations

import re
from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    of_missing,
    same,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_LABELS = (
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
)
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


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


@of_missing
def selector(value: Any, path: str, template: Any) -> Errors:
    """The selector of a job can be read, and selects the pods of its template; one that is missing selects nothing."""
    faults = list(checks.label_selector(value, path))
    yield from faults
    labels = lookup(template, "metadata", "labels")
    if not faults and not checks.selects(value, labels):
        place = f"{path.removesuffix('selector')}template.metadata.labels"
        yield invalid_value(place, labels, "`selector` does not match template `labels`")


def restart_policy(spec: Json, path: str) -> Errors:
    """Pods of a job end; those whose failures a policy looks at end with their containers."""
    policy = lookup(spec, "template", "spec", "restartPolicy") or ""
    path = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        yield required_error(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid_value(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def domain_path(value: Any, path: str) -> Errors:
    """A domain and a path below it: ``example.com/foo``."""
    if not isinstance(value, str):
        return
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


def completions_update(value: Any, path: str, old: Any, spec: Any) -> Errors:
    """How many completions a job needs stays; with indexes it may change along with how many pods run at once."""
    if lookup(spec, "completionMode") != "Indexed":
        yield from checks.immutable(value, path, old)
    elif value is not None and value != old and value != lookup(spec, "parallelism"):
        yield invalid_value(path, value, "can only be modified in tandem with spec.parallelism")


def template_update(value: Json, path: str, old: Json) -> Errors:
    """Where its pods may run and what they ask for may change while a job is suspended and has none."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    now, last = spec.get("template") or {}, before.get("template") or {}
    if same(now, last):
        return
    suspended = before.get("suspend") is True
    started = lookup(old, "status", "startTime") is not None
    active = lookup(old, "status", "active") or 0
    idle = suspended and not active and (not started or is_true(old, "Suspended"))
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


def is_true(job: Json, kind: str) -> bool:
    """Whether a job has a condition of a type that is true."""
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
