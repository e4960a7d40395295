"""Checks of workloads that compare several places, and of cron schedules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.claims import claim_spec
from apimachinery.kinds.core.pods import template_metadata
from apimachinery.kinds.defaulters import TEMPLATE_GENERATION, int_or_zero
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    of_missing,
    same,
    struct,
)
from apimachinery.meta.field_errors import forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_STATEFUL_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_ZONE_PART = re.compile(r"(?!\.{1,2}$)(?!-)[A-Za-z.\-_0-9+]{1,14}")
_CRON_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def selection(spec: Json, path: str, kind: str, unreadable: str | None, optional: bool = False) -> Errors:
    """The selector of a workload is there, is not empty, and selects the pods of its template.

    What cannot be read as a selector is said once more in the words of ``unreadable``, unless there are none; a
    selector that is not there selects nothing.
    """
    selector, labels = spec.get("selector"), lookup(spec, "template", "metadata", "labels")
    place = f"{path}.selector"
    if selector is None and not optional:
        yield required_error(place)
    if (
        isinstance(selector, dict)
        and not selector.get("matchLabels")
        and not selector.get("matchExpressions")
    ):
        yield invalid_value(place, selector, f"empty selector is invalid for {kind}")
        return
    faults = list(checks.label_selector(selector, place))
    yield from faults
    if faults:
        if unreadable is not None:
            yield invalid_value(place, selector, unreadable)
    elif not checks.selects(selector, labels):
        yield invalid_value(
            f"{path}.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )


def _is_readable(spec: Json) -> bool:
    return not any(checks.label_selector(spec.get("selector"), ""))


def template_of_selector(spec: Json) -> Json:
    """The template of a workload, empty where its selector cannot be read: then kube-apiserver looks no further."""
    return (struct(spec, "template") or {}) if _is_readable(spec) else {}


def pods_that_stay(spec: Json, path: str) -> Errors:
    """What pods may not be that a deployment or a replica set replaces; not asked after where the selector cannot be
    read."""
    pod = struct(spec, "template", "spec")
    if pod is None:
        return
    policy, deadline = pod.get("restartPolicy"), pod.get("activeDeadlineSeconds")
    if (policy == "Always" and deadline is None) or not _is_readable(spec):
        return
    if policy != "Always":
        yield not_supported(f"{path}.template.spec.restartPolicy", policy or "", ("Always",))
    if deadline is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield forbidden(f"{path}.template.spec.activeDeadlineSeconds", detail)


def template_metadata_again(spec: Json, path: str) -> Errors:
    """The labels and annotations of a stateful set's template are looked at twice."""
    metadata = struct(spec, "template", "metadata")
    if metadata is not None and _is_readable(spec):
        yield from template_metadata(metadata, f"{path}.template.metadata")


def template_with_claims(spec: Json) -> Json:
    """The template of a stateful set as its pods will be: with the volumes of its claims, and names of their own."""
    template = template_of_selector(spec)
    if not template:
        return template
    pod = struct(template, "spec") or {}
    claims = list(items(spec, "volumeClaimTemplates"))
    made = dict.fromkeys(lookup(claim, "metadata", "name") or "" for claim in claims)
    # As the controller makes the pods: a claim takes the place of a volume of its name.
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in made]
    others = [volume for volume in items(pod, "volumes") if volume.get("name") not in made]
    kept = {key: value for key, value in pod.items() if key not in ("hostname", "subdomain")}
    return {**template, "spec": {**kept, "volumes": [*volumes, *others]}}


def claim_templates(value: Any, path: str) -> Errors:
    """The claims that a stateful set makes for its pods; ``value`` is its spec."""
    for index, claim in numbered(value or {}, "volumeClaimTemplates"):
        yield from claim_spec(struct(claim, "spec") or {}, f"{path}.volumeClaimTemplates[{index}].spec")


@of_missing
def one_type(value: Any, path: str, holder: Any, values: Sequence[str]) -> Errors:
    """A type must be one of ``values``; the fault is at the object that has it."""
    if value not in values:
        yield not_supported(path.rpartition(".")[0], holder or {}, values)


def _is_zero(value: Any) -> bool:
    """Whether a number or percentage comes to nothing, as what is neither does."""
    return (checks.percent_of(value) or 0) == 0 if isinstance(value, str) else not value


def some_progress(value: Any, path: str) -> Errors:
    """A rolling update must be allowed to move."""
    if isinstance(value, dict) and _is_zero(value.get("maxUnavailable")) and _is_zero(value.get("maxSurge")):
        yield invalid_value(
            f"{path}.maxUnavailable", value["maxUnavailable"], "may not be 0 when `maxSurge` is 0"
        )


def daemon_progress(value: Any, path: str) -> Errors:
    """A daemon set either surges or has some pods unavailable, not both and not neither."""
    if not isinstance(value, dict):
        return
    unavailable, surge = value.get("maxUnavailable"), value.get("maxSurge")
    if _is_zero(unavailable) and _is_zero(surge):
        yield required_error(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not _is_zero(unavailable) and not _is_zero(surge):
        yield invalid_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    yield from checks.at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    yield from checks.at_most_100_percent(surge, f"{path}.maxSurge")


def progress_deadline(value: Json, path: str) -> Errors:
    """A rollout may not be late before its pods can be ready."""
    deadline, ready = value.get("progressDeadlineSeconds"), value.get("minReadySeconds", 0)
    if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
        yield invalid_value(
            f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )


@of_missing
def pod_management(value: Any, path: str) -> Errors:
    """How a stateful set makes its pods."""
    if not value:
        yield required_error(path)
    elif value not in ("OrderedReady", "Parallel"):
        yield invalid_value(path, value, "must be 'OrderedReady' or 'Parallel'")


@of_missing
def stateful_strategy(value: Any, path: str) -> Errors:
    """How a stateful set replaces its pods."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not kind:
        yield required_error(path)
    elif kind == "OnDelete":
        if value.get("rollingUpdate") is not None:
            yield invalid_value(
                f"{path}.rollingUpdate",
                value["rollingUpdate"],
                "only allowed for updateStrategy 'RollingUpdate'",
            )
    elif kind == "RollingUpdate":
        yield from checks.minimum(
            lookup(value, "rollingUpdate", "partition"), f"{path}.rollingUpdate.partition"
        )
        unavailable, place = (
            lookup(value, "rollingUpdate", "maxUnavailable"),
            f"{path}.rollingUpdate.maxUnavailable",
        )
        if unavailable is not None:
            yield from checks.int_or_percent(unavailable, place)
            if _is_zero(unavailable):
                yield invalid_value(place, unavailable, "cannot be 0")
            yield from checks.at_most_100_percent(unavailable, place)
    else:
        yield invalid_value(path, value, "must be 'RollingUpdate' or 'OnDelete'")


def stateful_set_update(value: Any, path: str, old: Any) -> Errors:
    """Most of a stateful set's spec stays."""
    if not isinstance(value, dict) or not isinstance(old, dict):
        return
    kept = [key for key in {*value, *old} if key not in _STATEFUL_MUTABLE]
    if not all(same(value.get(key), old.get(key)) for key in kept):
        allowed = ", ".join(f"'{name}'" for name in _STATEFUL_MUTABLE[:-1])
        yield forbidden(
            path,
            f"updates to statefulset spec for fields other than {allowed} and '{_STATEFUL_MUTABLE[-1]}' are forbidden",
        )


def template_generation(value: Json, path: str, old: Json) -> Errors:
    """The generation of a daemon set's template, kept in an annotation, goes up when the template changes."""
    del path
    now, before = (
        int_or_zero(lookup(each, "metadata", "annotations", TEMPLATE_GENERATION)) for each in (value, old)
    )
    place = "spec.templateGeneration"
    yield from checks.minimum(now, place)
    changed = not same(lookup(value, "spec", "template"), lookup(old, "spec", "template"))
    if now < before:
        yield invalid_value(place, now, "must not be decremented")
    elif now == before and changed:
        yield invalid_value(place, now, "must be incremented upon template update")
    elif now > before and not changed:
        yield invalid_value(place, now, "must not be incremented without template update")


def time_zone(value: Any, path: str) -> Errors:
    """A time zone of the IANA database."""
    if value is None:
        return
    if not value:
        yield invalid_value(path, value, "timeZone must be nil or non-empty string")
        return
    if not all(_ZONE_PART.fullmatch(part) for part in value.split("/")):
        yield invalid_value(path, value, f"unknown time zone {value}")
        return
    if value.lower() == "local":
        yield invalid_value(
            path,
            value,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        )
        if value == "Local":  # the name of a zone to Go, and only in this spelling
            return
    try:
        ZoneInfo(value)
    except (ValueError, OSError, KeyError):
        yield invalid_value(path, value, f"unknown time zone {value}")


def schedule(value: Any, path: str, allows_zone: bool = False, zone: Any = None) -> Errors:
    """A cron schedule: five fields, or a descriptor such as ``@daily``. One that is stored may name its zone."""
    if not isinstance(value, str) or not value:
        return
    text = value
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if fault := schedule_fault(text):
        yield invalid_value(path, value, fault)
    if "TZ" in value:
        if not allows_zone:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield invalid_value(path, value, detail)
        elif zone is not None:
            yield invalid_value(path, value, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def schedule_fault(text: str) -> str:
    """What is wrong with a cron schedule; empty for a good one."""
    if text.startswith("@"):
        return _descriptor_fault(text)
    fields = text.split()
    if len(fields) != len(_CRON_FIELDS):
        return f"expected exactly {len(_CRON_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (_, low, high) in zip(fields, _CRON_FIELDS, strict=True):
        words = _MONTHS if high == 12 else _DAYS if high == 6 else []
        for part in field.split(","):
            if part and (fault := _range_fault(part, low, high, words)):
                return fault
    return ""


def _descriptor_fault(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if text.startswith("@every "):
        return "" if any(char.isdigit() for char in text) else f"failed to parse duration {text}"
    return f"unrecognized descriptor: {text}"


def _range_fault(part: str, low: int, high: int, words: list[str]) -> str:
    span, slash, step = part.partition("/")
    if "/" in step:
        return f"too many slashes: {part}"
    first, dash, last = span.partition("-")
    if "-" in last:
        return f"too many hyphens: {part}"
    if first in ("*", "?"):
        begin, end = low, high
    else:
        numbers = []
        for word in (first, last) if dash else (first,):
            if word.lower() in words:
                numbers.append(words.index(word.lower()) + (1 if high == 12 else 0))
            elif word.isascii() and word.isdigit():
                numbers.append(int(word[:9]))
            else:
                return f'failed to parse int from {word}: strconv.Atoi: parsing "{word}": invalid syntax'
        begin, end = numbers[0], numbers[-1] if dash or not slash else high
    if slash:
        if not (step.isascii() and step.isdigit()):
            return f'failed to parse int from {step}: strconv.Atoi: parsing "{step}": invalid syntax'
        if int(step[:9]) == 0:
            return f"step of range should be a positive number: {part}"
    if begin < low:
        return f"beginning of range ({begin}) below minimum ({low}): {part}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {part}"
    if begin > end:
        return f"beginning of range ({begin}) beyond end of range ({end}): {part}"
    return ""
