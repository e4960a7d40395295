"""PodSecurity: labels of a namespace say which Pod Security Standard its pods keep to.

``pod-security.kubernetes.io/enforce`` refuses pods, ``warn`` and ``audit`` tell of them, also of those that a
Deployment or another controller would make; ``-version`` labels name the version of the standard. Who raises the
enforced level is warned of pods that are there already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apimachinery.kinds.hooks import Json
from apimachinery.kinds.pod_standards.pod_standards import (
    LATEST,
    LEVELS,
    Version,
    parse_version,
    violations,
)
from apimachinery.meta.errors import forbidden
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

LABEL = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
MOST_PODS = 3000
"""How many pods of a namespace are looked at when its level is raised."""
TEMPLATES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""Where kinds hold the pods that they will make."""
PODS, NAMESPACES = ("", "pods"), ("", "namespaces")


@dataclass(frozen=True, slots=True)
class Standard:
    """A level at a version, as it is written."""

    level: str = "privileged"
    version: str = "latest"

    @property
    def number(self) -> Version:
        """The version to compare by."""
        return parse_version(self.version) or LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


@dataclass(slots=True)
class PodPolicy:
    """What a namespace's labels say, and which of them mean nothing."""

    enforce: Standard = field(default_factory=Standard)
    audit: Standard = field(default_factory=Standard)
    warn: Standard = field(default_factory=Standard)
    faults: list[FieldError] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether every pod is fine."""
        return self.enforce.level == self.audit.level == self.warn.level == "privileged"


OPEN = PodPolicy()


def policy_of(labels: Mapping[str, str]) -> PodPolicy:
    """The policy of a namespace. A level to enforce that is none counts as the strictest, the others as the weakest."""
    if not any(key.startswith(LABEL) for key in labels):
        return OPEN
    policy = PodPolicy()
    known: set[str] = set()
    for mode in MODES:
        level, version = "privileged", "latest"
        if (given := labels.get(LABEL + mode)) is not None:
            if given in LEVELS:
                level = given
                known.add(mode)
            else:
                level = "restricted" if mode == "enforce" else "privileged"
                detail = f"must be one of {', '.join(LEVELS)}"
                policy.faults.append(invalid_value(f"metadata.labels[{LABEL}{mode}]", given, detail))
        if (given := labels.get(f"{LABEL}{mode}-version")) is not None:
            if parse_version(given) is not None:
                version = given
                known.add(f"{mode}-version")
            else:
                place = f"metadata.labels[{LABEL}{mode}-version]"
                policy.faults.append(invalid_value(place, given, 'must be "latest" or "v1.x"'))
        setattr(policy, mode, Standard(level, version))
    if "warn" not in known and "enforce" in known:
        # Who makes a Deployment hears what its pods will be refused for.
        keeps = "warn-version" in known or "enforce-version" not in known
        if _rank(policy.enforce) > _rank(policy.warn):
            version = policy.warn.version if keeps else policy.enforce.version
            policy.warn = Standard(policy.enforce.level, version)
    return policy


def _rank(standard: Standard) -> int:
    return LEVELS.index(standard.level)


class PodSecurity(Plugin):
    """Holds pods against the standards."""

    resources = frozenset({PODS, NAMESPACES, *TEMPLATES})

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = Objects(cache, "/core/namespaces/")
        self._pods = Objects(cache, "/core/pods/")

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403, 422."""
        served, obj = operation.target.served, operation.obj
        if obj is None or operation.verb not in ("CREATE", "UPDATE"):
            return
        pair = (served.group, served.plural)
        if pair == NAMESPACES:
            self._namespace(operation, obj)
            return
        subresource = operation.target.subresource
        if subresource and (pair != PODS or subresource not in ("ephemeralcontainers", "resize")):
            return
        policy = self._policy(operation.target.namespace)
        if policy.is_open:
            return
        if pair == PODS:
            if operation.old is None or _changes(obj, operation.old):
                self._evaluate(operation, policy, obj, enforced=True)
            return
        template: object = obj
        for key in TEMPLATES[pair]:
            template = template.get(key) if isinstance(template, dict) else None
        if isinstance(template, dict):
            self._evaluate(operation, policy, template, enforced=False)

    def _policy(self, namespace: str) -> PodPolicy:
        found = self._namespaces.get(namespace)
        return OPEN if found is None else policy_of(found["metadata"].get("labels") or {})

    def _evaluate(self, operation: Operation, policy: PodPolicy, pod: Json, *, enforced: bool) -> None:
        served = operation.target.served
        if enforced:
            operation.annotate("pod-security.kubernetes.io/enforce-policy", str(policy.enforce))
            if violations := _violations(pod, policy.enforce):
                why = f"violates PodSecurity {go_quote(str(policy.enforce))}: {violations}"
                raise forbidden(served.plural, served.group, operation.name, why)
        if violations := _violations(pod, policy.audit):
            text = f"would violate PodSecurity {go_quote(str(policy.audit))}: {violations}"
            operation.annotate("pod-security.kubernetes.io/audit-violations", text)
        if violations := _violations(pod, policy.warn):
            operation.warn(f"would violate PodSecurity {go_quote(str(policy.warn))}: {violations}")

    def _namespace(self, operation: Operation, obj: Json) -> None:
        """Refuses labels that mean nothing, and warns of pods that a stricter level would not have let in."""
        if operation.target.subresource:
            return
        policy = policy_of(obj["metadata"].get("labels") or {})
        old = operation.old
        before = OPEN if old is None else policy_of(old["metadata"].get("labels") or {})
        if policy.faults and policy.faults != before.faults:
            # A namespace may keep labels that it has.
            raise invalid("Namespace", "", operation.name, policy.faults)
        enforce, was = policy.enforce, before.enforce
        if old is None or enforce == was or enforce.level == "privileged":
            return
        if enforce.version == was.version and _rank(enforce) < _rank(was):
            return
        for text in self._warnings(operation.name, enforce):
            operation.warn(text)

    def _warnings(self, namespace: str, standard: Standard) -> list[str]:
        pods = self._pods.every(namespace)
        found: dict[str, list[str]] = {}
        for pod in pods[:MOST_PODS]:
            broken = violations(pod["metadata"], pod.get("spec") or {}, standard.level, standard.number)
            if broken:
                reasons = ", ".join(each.reason for each in broken)
                found.setdefault(reasons, []).append(pod["metadata"]["name"])
        told = []
        if len(pods) > MOST_PODS:
            told.append(
                f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {len(pods)} existing pods"
            )
        if found:
            told.append(
                f"existing pods in namespace {go_quote(namespace)} violate the new PodSecurity enforce level "
                f"{go_quote(str(standard))}"
            )
        return told + sorted(f"{_counted(names)}: {reasons}" for reasons, names in found.items())


def _counted(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{names[0]} (and {others} other pod{'s' if others > 1 else ''})"


def _violations(pod: Json, standard: Standard) -> str:
    found = violations(pod.get("metadata") or {}, pod.get("spec") or {}, standard.level, standard.number)
    return ", ".join(map(str, found))


def _changes(pod: Json, old: Json) -> bool:
    """Whether an update touches what the standards are about: which containers there are, and their images."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        now, before = (each.get("spec", {}).get(key) or [] for each in (pod, old))
        if [one.get("image") for one in now] != [one.get("image") for one in before]:
            return True
    return False
