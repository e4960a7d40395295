"""Where an object names kinds of other objects: references that follow a kind to its new version, and rules that
grant or match resources by group and version.

A reference holds no object, so its version can change without anything else. A rule is a decision of a person: what
may be done to ingresses of ``extensions`` need not be what may be done to those of ``networking.k8s.io``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.json import Json

Way = tuple[str | int, ...]

_REFERENCES: tuple[Way, ...] = (
    ("spec", "scaleTargetRef"),
    ("spec", "targetRef"),
    ("metadata", "ownerReferences", "*"),
    ("spec", "metrics", "*", "object", "describedObject"),
)
_KUSTOMIZE: tuple[Way, ...] = (
    ("patches", "*", "target"),
    ("patchesJson6902", "*", "target"),
    ("replacements", "*", "source"),
    ("replacements", "*", "targets", "*", "select"),
    ("vars", "*", "objref"),
)
_ROLES = {"Role": "rbac.authorization.k8s.io", "ClusterRole": "rbac.authorization.k8s.io"}
_ADMISSION = "admissionregistration.k8s.io"
_MATCHING: dict[str, tuple[Way, ...]] = {
    "ValidatingWebhookConfiguration": (("webhooks", "*", "rules", "*"),),
    "MutatingWebhookConfiguration": (("webhooks", "*", "rules", "*"),),
    "ValidatingAdmissionPolicy": (("spec", "matchConstraints", "resourceRules", "*"),),
    "MutatingAdmissionPolicy": (("spec", "matchConstraints", "resourceRules", "*"),),
    "ValidatingAdmissionPolicyBinding": (("spec", "matchResources", "resourceRules", "*"),),
    "MutatingAdmissionPolicyBinding": (("spec", "matchResources", "resourceRules", "*"),),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a kind: its place, and the apiVersion and kind it names."""

    way: Way
    api_version: str
    kind: str

    @property
    def shown(self) -> str:
        """Its place as messages name it."""
        return shown(self.way)


@dataclass(frozen=True, slots=True)
class ReferenceRule:
    """What a rule speaks of, where it says so in words: groups, versions (none in a role), resources."""

    way: Way
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Its place as messages name it."""
        return shown(self.way)


def shown(way: Way) -> str:
    """``spec.rules[0].http``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
    return text.removeprefix(".")


def is_kustomization(obj: Json, file: str) -> bool:
    """Whether a document is a kustomization: by what it calls itself, or by the name of its file."""
    named = file.replace("\\", "/").rpartition("/")[2] in (
        "kustomization.yaml",
        "kustomization.yml",
        "Kustomization",
    )
    said = str(obj.get("apiVersion", "")).startswith("kustomize.config.k8s.io/")
    return said or (named and "apiVersion" not in obj)


def references(obj: Json, *, kustomization: bool = False) -> Iterator[Reference]:
    """All references to kinds at the known places."""
    for pattern in _KUSTOMIZE if kustomization else _REFERENCES:
        for way, value in _at(obj, pattern):
            if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
                continue
            api_version = value.get("apiVersion")
            if api_version is None and isinstance(value.get("version"), str):
                group = value.get("group")
                api_version = (
                    f"{group}/{value['version']}" if isinstance(group, str) and group else value["version"]
                )
            if isinstance(api_version, str):
                yield Reference(way, api_version, value["kind"])


def redirected(obj: Json, reference: Reference, api_version: str) -> Json:
    """``obj`` with a reference to another version; everything else is shared with it."""
    changed: Json = _changed(obj, reference.way, api_version)
    return changed


def _changed(value: Any, way: Way, api_version: str) -> Any:
    if way:
        step, *rest = way
        copied: Any = dict(value) if isinstance(value, dict) else list(value)
        copied[step] = _changed(value[step], tuple(rest), api_version)
        return copied
    if "apiVersion" in value:
        return {**value, "apiVersion": api_version}
    group, _, version = api_version.rpartition("/")
    return {**value, **({"group": group} if group or "group" in value else {}), "version": version}


def rules(obj: Json) -> Iterator[ReferenceRule]:
    """All rules of a role, a webhook configuration or an admission policy."""
    kind, group = str(obj.get("kind")), str(obj.get("apiVersion")).rpartition("/")[0]
    if _ROLES.get(kind) == group:
        patterns: Iterable[Way] = (("rules", "*"),)
    else:
        patterns = _MATCHING.get(kind, ()) if group == _ADMISSION else ()
    for pattern in patterns:
        for way, value in _at(obj, pattern):
            if isinstance(value, dict):
                yield ReferenceRule(
                    way, *(_texts(value.get(name)) for name in ("apiGroups", "apiVersions", "resources"))
                )


def patch_files(obj: Json) -> Iterator[str]:
    """The files that a kustomization names as strategic merge patches: they look like objects and are none."""
    for way in (("patches", "*", "path"), ("patchesStrategicMerge", "*")):
        for _, value in _at(obj, way):
            if isinstance(value, str) and "\n" not in value:
                yield value


def pod_fields(obj: Json, names: frozenset[str]) -> Iterator[tuple[Way, str]]:
    """Those fields of pods and of their resource claims that have one of these names, with the way to their owner."""
    for way, spec in pod_specs(obj):
        owners = [(way, spec), *((place, claim) for place, claim in _at(spec, ("resourceClaims", "*"), way))]
        for place, owner in owners:
            for name in sorted(names & owner.keys()) if isinstance(owner, dict) else ():
                yield place, name


def pod_specs(obj: Json) -> Iterator[tuple[Way, Json]]:
    """The specs of pods in an object, with the way to each."""
    yield from _pod_specs(obj, (), 8)


def _pod_specs(value: Any, way: Way, depth: int) -> Iterator[tuple[Way, Json]]:
    """The specs of pods in an object: what has a list of containers, however deep its kind puts it."""
    if isinstance(value, dict) and depth:
        if isinstance(value.get("containers"), list):
            yield way, value
        for name in ("spec", "template", "jobTemplate"):
            yield from _pod_specs(value.get(name), (*way, name), depth - 1)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _at(value: Any, pattern: Way, way: Way = ()) -> Iterator[tuple[Way, Any]]:
    if not pattern:
        yield way, value
        return
    step, rest = pattern[0], pattern[1:]
    if step == "*":
        for index, item in enumerate(value) if isinstance(value, list) else ():
            yield from _at(item, rest, (*way, index))
    elif isinstance(value, dict) and step in value:
        yield from _at(value[step], rest, (*way, step))
