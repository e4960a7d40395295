"""Plugins that are about where pods go: LimitPodHardAntiAffinityTopology, ExtendedResourceToleration, PodNodeSelector
and PodTolerationRestriction. The last two read annotations of the namespace."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds.core.pod_resources import is_extended
from apimachinery.kinds.fields import items
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden, plain_failure
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import DecodeFault, decode

PODS = frozenset({("", "pods")})
HOSTNAME = "kubernetes.io/hostname"
NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


def _spec(operation: Operation) -> Json | None:
    """The spec of a pod that is written, None for what is about something else."""
    if operation.obj is None or operation.target.subresource:
        return None
    spec: Json | None = operation.obj.get("spec")
    return spec


class LimitPodHardAntiAffinityTopology(Plugin):
    """Pods keep others off their node at most."""

    resources = PODS

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        affinity = ((_spec(operation) or {}).get("affinity") or {}).get("podAntiAffinity") or {}
        for term in items(affinity, "requiredDuringSchedulingIgnoredDuringExecution"):
            if term.get("topologyKey") != HOSTNAME:
                why = (
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {term.get('topologyKey')} "
                    f"but only key {HOSTNAME} is allowed"
                )
                raise forbidden("pods", "", operation.said_name, why)


class ExtendedResourceToleration(Plugin):
    """Pods that ask for an extended resource tolerate the taint of its name."""

    resources = PODS

    def admit(self, operation: Operation) -> None:
        spec = _spec(operation)
        if spec is None:
            return
        asked = {
            name
            for kind in ("containers", "initContainers")
            for container in items(spec, kind)
            for name in (container.get("resources") or {}).get("requests") or ()
            if is_extended(name)
        }
        for name in sorted(asked):
            wanted = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            if wanted not in (spec.get("tolerations") or ()):
                spec["tolerations"] = [*(spec.get("tolerations") or ()), wanted]


class PodNodeSelector(Plugin):
    """Pods go to the nodes of their namespace."""

    resources = PODS

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = Objects(cache, "/core/namespaces/")

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403, 500."""
        spec = _spec(operation)
        if spec is None or operation.verb != "CREATE":
            return
        wanted = _labels(_annotation(self._namespaces, operation, NODE_SELECTOR))
        self._check(operation, spec, wanted)
        if wanted:
            spec["nodeSelector"] = {**wanted, **(spec.get("nodeSelector") or {})}

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403, 500."""
        spec = _spec(operation)
        if spec is not None and operation.verb == "CREATE":
            self._check(operation, spec, _labels(_annotation(self._namespaces, operation, NODE_SELECTOR)))

    def _check(self, operation: Operation, spec: Json, wanted: dict[str, str]) -> None:
        chosen = spec.get("nodeSelector") or {}
        if any(chosen.get(key, value) != value for key, value in wanted.items()):
            why = "pod node label selector conflicts with its namespace node label selector"
            raise forbidden("pods", "", operation.said_name, why)


class PodTolerationRestriction(Plugin):
    """Pods tolerate what their namespace says, and nothing that it does not allow."""

    resources = PODS

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = Objects(cache, "/core/namespaces/")

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 500."""
        spec = _spec(operation)
        if spec is None:
            return
        if operation.verb == "CREATE":
            more = self._stated(operation, DEFAULT_TOLERATIONS)
            if not _is_best_effort(spec):
                more = [*more, PRESSURE]
            if more:
                spec["tolerations"] = _merged([*(spec.get("tolerations") or ()), *more])
        self.validate(operation)

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 500."""
        spec = _spec(operation)
        if spec is None or not spec.get("tolerations"):
            return
        allowed = self._stated(operation, ALLOWED_TOLERATIONS)
        if allowed and not all(
            any(_covers(each, toleration) for each in allowed) for toleration in spec["tolerations"]
        ):
            raise plain_failure(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
                "namespace whitelist"
            )

    def _stated(self, operation: Operation, key: str) -> list[Json]:
        text = _annotation(self._namespaces, operation, key)
        if not text:
            return []
        try:
            stated = decode(text.encode())
        except DecodeFault as fault:
            raise plain_failure(str(fault)) from None
        if not isinstance(stated, list) or not all(isinstance(each, dict) for each in stated):
            raise plain_failure(f"{key}: no list of tolerations")
        return stated


def _is_best_effort(spec: Json) -> bool:
    """Whether a pod asks for no CPU and memory at all."""
    holders = [spec, *items(spec, "containers"), *items(spec, "initContainers")]
    return not any(
        (holder.get("resources") or {}).get(kind, {}).get(name)
        for holder in holders
        for kind in ("requests", "limits")
        for name in ("cpu", "memory")
    )


def _annotation(namespaces: Objects, operation: Operation, key: str) -> str:
    namespace = namespaces.get(operation.target.namespace)
    annotations = {} if namespace is None else namespace["metadata"].get("annotations") or {}
    return str(annotations.get(key) or "")


def _labels(text: str) -> dict[str, str]:
    """Labels as an annotation has them: ``key=value,key=value``."""
    found = {}
    for pair in text.split(",") if text else ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise plain_failure(f"invalid selector: [{pair}]")
        found[key.strip()] = value.strip()
    return found


def _covers(one: Json, other: Json) -> bool:
    """Whether a toleration tolerates all that another one does."""
    if one == other:
        return True
    exists = (one.get("operator") or "Equal") == "Exists"
    if one.get("key") != other.get("key") and not (not one.get("key") and exists):
        return False
    if one.get("effect") and one.get("effect") != other.get("effect"):
        return False
    most: Any = one.get("tolerationSeconds")
    if one.get("effect") == "NoExecute" and most is not None:
        seconds: Any = other.get("tolerationSeconds")
        if seconds is None or seconds > most:
            return False
    if exists:
        return True
    is_equal = (other.get("operator") or "Equal") == "Equal"
    return is_equal and (one.get("value") or "") == (other.get("value") or "")


def _merged(tolerations: list[Json]) -> list[Json]:
    """Without those that others cover; of equal ones the first stays."""
    merged: list[Json] = []
    for number, each in enumerate(tolerations):
        if any(_covers(kept, each) for kept in merged):
            continue
        if any(later != each and _covers(later, each) for later in tolerations[number + 1 :]):
            continue
        merged.append(dict(each))
    return merged
