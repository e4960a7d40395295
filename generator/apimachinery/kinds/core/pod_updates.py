"""What may change in a stored pod, and how its resources may be resized."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.defaulters import qos_class
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    same,
    struct,
)
from apimachinery.meta.field_errors import FieldError, Reason, forbidden, invalid_value
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder
from apimachinery.meta.quantity import parse_quantity

_MIRROR = "kubernetes.io/config.mirror"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ONLY_CPU_AND_MEMORY = "only cpu and memory resources are mutable"
_RESIZABLE = ("cpu", "memory")


def annotation_changes(value: Any, path: str, old: Any) -> Errors:
    """Annotations that say what runs already stay as they are."""
    new, old = value or {}, old or {}
    if new == old:
        return
    for key in sorted({*old, *new}):
        if new.get(key) == old.get(key) and (key in new) == (key in old):
            continue
        added = key not in old
        if key.startswith(_APP_ARMOR):
            what = (
                "may not add AppArmor annotations"
                if added
                else "may not remove or update AppArmor annotations"
            )
            yield forbidden(f"{path}[{key}]", what)
        if key == _MIRROR:
            what = (
                "may not add mirror pod annotation"
                if added
                else "may not remove or update mirror pod annotation"
            )
            yield forbidden(f"{path}[{key}]", what)


def spec(value: Any, path: str, old: Any) -> Errors:
    """What of a pod's spec may change: images, a deadline that comes nearer, tolerations that are added, gates
    that go, and where a pod may run while gates hold it back."""
    if not isinstance(value, dict) or not isinstance(old, dict) or value == old:
        return
    for kind in ("containers", "initContainers"):
        if len(value.get(kind) or ()) != len(old.get(kind) or ()):
            yield forbidden(f"{path}.{kind}", "pod updates may not add or remove containers")
            return
        for index, container in numbered(value, kind):
            if not container.get("image"):
                yield required_error(f"{path}.{kind}[{index}].image")
    late = _deadline(value, path, old)
    if late is not None:
        yield late
        if value.get("activeDeadlineSeconds") is not None:
            return
    yield from _tolerations(value, path, old)
    known = {each.get("name") for each in items(old, "schedulingGates")}
    for index, gate in numbered(value, "schedulingGates"):
        if gate.get("name") not in known:
            yield forbidden(
                f"{path}.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            )
    masked = _masked(value, old)
    if old.get("schedulingGates"):
        yield from _narrowed(masked, path, old)
    if not same(masked, _masked(old, old)):
        kept = {**masked, **_fixed(value, old)}
        for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
            if key in old:
                kept[key] = old[key]
        yield FieldError(Reason.FORBIDDEN, path, _FIXED, compared=("core.PodSpec", old, kept))


def _deadline(value: Json, path: str, old: Json) -> FieldError | None:
    now, before = value.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    place = f"{path}.activeDeadlineSeconds"
    if now is None:
        if before is None:
            return None
        return invalid_value(place, None, "must not update from a positive integer to nil value")
    if not 0 <= now <= 2**31 - 1:
        return invalid_value(place, now, "must be between 0 and 2147483647, inclusive")
    if before is not None and before < now:
        return invalid_value(place, now, "must be less than or equal to previous value")
    return None


def _tolerations(value: Json, path: str, old: Json) -> Errors:
    def lasting(toleration: Json) -> Json:
        return {key: item for key, item in toleration.items() if key != "tolerationSeconds"}

    now = [lasting(each) for each in items(value, "tolerations")]
    if any(lasting(each) not in now for each in items(old, "tolerations")):
        yield forbidden(
            f"{path}.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _masked(value: Json, old: Json) -> Json:
    """A spec with the stored values in everything that an update may change."""
    masked = {
        key: item
        for key, item in value.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    for kind in ("containers", "initContainers"):
        if kind in masked:
            masked[kind] = [
                {key: item for key, item in container.items() if key != "image"}
                for container in items(value, kind)
            ]
    before = old.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and value.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = before
    return masked


def _fixed(value: Json, old: Json) -> Json:
    """The containers of a spec with the stored images."""
    return {
        kind: [
            {**container, "image": stored.get("image", "")}
            for container, stored in zip(items(value, kind), items(old, kind), strict=False)
        ]
        for kind in ("containers", "initContainers")
        if kind in value
    }


def _narrowed(masked: Json, path: str, old: Json) -> Errors:
    """Where a gated pod may run can be narrowed. What may change is put back in ``masked``."""
    chosen, before = masked.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(chosen.get(key) != text for key, text in before.items()):
        yield invalid_value(
            f"{path}.nodeSelector",
            chosen or None,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        )
    if "nodeSelector" in old:
        masked["nodeSelector"] = old["nodeSelector"]
    else:
        masked.pop("nodeSelector", None)
    new_affinity, old_affinity = struct(masked, "affinity") or {}, struct(old, "affinity") or {}
    if new_affinity.get("nodeAffinity") != old_affinity.get("nodeAffinity"):
        yield from _affinity_mutation(
            new_affinity.get("nodeAffinity"),
            f"{path}.affinity.nodeAffinity",
            old_affinity.get("nodeAffinity"),
        )
    others = {key: item for key, item in new_affinity.items() if key != "nodeAffinity"}
    if old_affinity.get("nodeAffinity") is not None:
        others["nodeAffinity"] = old_affinity["nodeAffinity"]
    if others or old.get("affinity") is not None:
        masked["affinity"] = others
    else:
        masked.pop("affinity", None)


def _affinity_mutation(new: Any, path: str, old: Any) -> Errors:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    place = f"{path}.{required}.nodeSelectorTerms"
    before = list(items(struct(old or {}, required) or {}, "nodeSelectorTerms"))
    now = list(items(struct(new or {}, required) or {}, "nodeSelectorTerms"))
    if before and len(before) != len(now):
        yield invalid_value(
            place,
            InOrder([_go_term(term) for term in now]) if now else None,
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        )
        return
    for index, term in enumerate(before):
        if not _only_added(now[index], term):
            shown = InOrder(_go_term(now[index]))
            yield invalid_value(
                f"{place}[{index}]", shown, "only additions are allowed (no mutations or deletions)"
            )


def _only_added(new: Json, old: Json) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(old.get(key) for key in keys):
        return not any(new.get(key) for key in keys)
    return all((new.get(key) or [])[: len(old.get(key) or [])] == (old.get(key) or []) for key in keys)


def _go_term(term: Json) -> Json:
    def requirements(key: str) -> list[Json] | None:
        found = [
            {
                "Key": each.get("key") or "",
                "Operator": each.get("operator") or "",
                "Values": each.get("values"),
            }
            for each in items(term, key)
        ]
        return found or None

    return {"MatchExpressions": requirements("matchExpressions"), "MatchFields": requirements("matchFields")}


def ephemeral_containers(value: Json, path: str, old: Json) -> Errors:
    """Ephemeral containers are added; those that are there stay."""
    del path
    if _MIRROR in (lookup(old, "metadata", "annotations") or {}):
        yield forbidden("[]", "static pods do not support ephemeral containers")
        return
    place = "spec.ephemeralContainers"
    now = {each.get("name"): each for each in items(struct(value, "spec") or {}, "ephemeralContainers")}
    for container in items(struct(old, "spec") or {}, "ephemeralContainers"):
        name = container.get("name")
        if name not in now:
            yield forbidden(place, f'existing ephemeral containers "{name}" may not be removed\n')
        elif not same(now[name], container):
            detail = f'existing ephemeral containers "{name}" may not be changed'
            compared = ("core.EphemeralContainer", container, now[name])
            yield FieldError(Reason.FORBIDDEN, place, detail, compared=compared)


def resize(value: Json, path: str, old: Json) -> Errors:
    """A resize changes CPU and memory of containers that are there, and never the pod's class of service."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    if _MIRROR in (lookup(old, "metadata", "annotations") or {}):
        yield forbidden("[]", "static pods cannot be resized")
        return
    if lookup(before, "os", "name") == "windows":
        yield forbidden("[]", "windows pods cannot be resized")
        return
    found = list(_resized(value, old, spec, before))
    yield from found
    if found and found[-1].detail.startswith(("containers may not", "initContainers may not")):
        return
    masked = {
        **spec,
        **{kind: _without_sizes(spec, before, kind) for kind in ("containers", "initContainers")},
    }
    if "resources" in spec or "resources" in before:
        masked["resources"] = _kept_sizes(spec.get("resources"), before.get("resources"))
    if not found and _sized(masked) != _sized(before):
        yield forbidden("spec", _ONLY_CPU_AND_MEMORY)


def _resized(pod: Json, old_pod: Json, spec: Json, before: Json) -> Errors:
    stored = lookup(old_pod, "status", "qosClass") or qos_class(before)
    if stored != qos_class(spec):
        shown = lookup(pod, "status", "qosClass") or ""
        yield invalid_value("spec", shown, "Pod QOS Class may not change as a result of resizing")
    for status in items(struct(old_pod, "status") or {}, "containerStatuses"):
        if lookup(status, "state", "running") is not None:
            if status.get("resources") is None:
                yield forbidden("spec", "Pod running on node without support for resize")
            break
    if _has_amounts(spec) or _has_amounts(before):
        yield from _pod_resized(spec, before)
    if lookup(old_pod, "status", "nodeAllocatableResourceClaimStatuses"):
        yield forbidden("spec", "pods with node allocatable resource claims cannot be resized")
    moved = list(_order(spec, before))
    yield from moved
    if moved:
        return
    for kind in ("initContainers", "containers"):
        resized = zip(items(spec, kind), items(before, kind), strict=False)
        for index, (container, last) in enumerate(resized):
            yield from _removed(container, last, f"spec.{kind}[{index}].resources", "resource ")
    yield from _immutable_parts(spec, before)


def _has_amounts(spec: Json) -> bool:
    resources = struct(spec, "resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _pod_resized(spec: Json, before: Json) -> Errors:
    if not gates.enabled("InPlacePodLevelResourcesVerticalScaling"):
        yield forbidden(
            "[]",
            "resize of pods with pod-level resources is forbidden when "
            "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled",
        )
        return
    if before.get("resources") is not None and spec.get("resources") is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    if before.get("resources") is not None:
        yield from _removed(spec, before, "spec.resources", "pod-level resource ")
    kept = _kept_sizes(spec.get("resources"), before.get("resources"))
    if (_sized(kept) or None) != (_sized(before.get("resources")) or None):
        yield forbidden("spec", f"{_ONLY_CPU_AND_MEMORY} at pod-level")


def _order(spec: Json, before: Json) -> Errors:
    for kind in ("containers", "initContainers"):
        now, last = list(items(spec, kind)), list(items(before, kind))
        if len(now) != len(last):
            yield forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, (container, other) in enumerate(zip(now, last, strict=True)):
            if container.get("name") != other.get("name"):
                yield forbidden(
                    f"spec.{kind}[{index}].name", f"{kind} may not be renamed or reordered on resize"
                )


def _removed(holder: Json, before: Json, path: str, what: str) -> Errors:
    for key in ("requests", "limits"):
        now, last = (lookup(each, "resources", key) or {} for each in (holder, before))
        if any(name not in now for name in last):
            yield forbidden(f"{path}.{key}", f"{what}{key} cannot be removed")


def _immutable_parts(spec: Json, before: Json) -> Errors:
    for container, last in zip(
        _without_sizes(spec, before, "containers"), items(before, "containers"), strict=True
    ):
        if _sized(container) != _sized(last):
            yield forbidden("spec", _ONLY_CPU_AND_MEMORY)
    masked = _without_sizes(spec, before, "initContainers")
    both = zip(items(spec, "initContainers"), masked, items(before, "initContainers"), strict=True)
    for index, (container, without, last) in enumerate(both):
        place = f"spec.initContainers[{index}]"
        if _sized(without) != _sized(last):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            yield forbidden(place, detail)
        changed = _sized(container) != _sized(last)
        if not changed or container.get("restartPolicy") == "Always":
            continue
        for policy in items(container, "resizePolicy"):
            if policy.get("restartPolicy") == "RestartContainer":
                yield forbidden(
                    place,
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
                )


def _without_sizes(spec: Json, before: Json, kind: str) -> list[Json]:
    both = zip(items(spec, kind), items(before, kind), strict=False)
    return [
        {
            **container,
            "resources": _kept_sizes(container.get("resources") or {}, last.get("resources"), claims=False),
        }
        for container, last in both
    ]


def _kept_sizes(resources: Any, before: Any, *, claims: bool = True) -> Any:
    """Resources with the stored CPU and memory."""
    if not isinstance(resources, dict):
        return resources
    kept: Json = {key: item for key, item in resources.items() if claims and key == "claims"}
    for key in ("requests", "limits"):
        amounts = {name: item for name, item in (resources.get(key) or {}).items() if name not in _RESIZABLE}
        last = lookup(before, key) or {}
        kept[key] = {**amounts, **{name: last[name] for name in _RESIZABLE if name in last}}
    return kept


def _sized(value: Any) -> Any:
    """A value for comparison: quantities by what they say, nothing that is empty."""
    if isinstance(value, dict):
        shown = {}
        for key, item in value.items():
            if key in ("requests", "limits") and isinstance(item, dict):
                item = {name: parse_quantity(str(amount)).value for name, amount in item.items()}
                if item:
                    shown[key] = item
            elif (inner := _sized(item)) not in (None, [], {}, "", False):
                shown[key] = inner
        return shown
    return [_sized(item) for item in value] if isinstance(value, list) else value
