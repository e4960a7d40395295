"""What kube-apiserver warns of in pods and templates of them: good objects that do less than they seem to.

Old labels, annotations and volumes, definitions that hide each other, selectors of nothing, amounts of bytes with a
fraction. Source: answers of kube-apiserver 1.36, and the deprecations that the API's documentation tells of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apimachinery.meta.json import Json
from apimachinery.meta.names import label_value_faults
from apimachinery.meta.quantity import parse_quantity

Texts = Iterator[str]

_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "seccomp.security.alpha.kubernetes.io/pod": 'non-functional in v1.27+; use the "seccompProfile" field instead',
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_ANNOTATION_STARTS = {
    "container.apparmor.security.beta.kubernetes.io/": 'deprecated since v1.30; use the "appArmorProfile" field '
    "instead",
    "container.seccomp.security.alpha.kubernetes.io/": _SECCOMP,
}
VOLUMES = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
}
"""Kinds of volumes that are gone, of pods and of persistent volumes."""
_POD_VOLUMES = {
    **VOLUMES,
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
}
SHOWN = {"storageos": "storageOS"}
_NO_POD = "a null labelSelector results in matching no pod"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of_pod(spec: Json, metadata: Json, spec_path: str, metadata_path: str) -> list[str]:
    """The warnings of one pod, or of what pods are made from, in kube-apiserver's order."""
    found: list[str] = []
    # Most pods have none of these, and every write of one comes by here.
    if spec.get("nodeSelector") or spec.get("affinity"):
        found.extend(_node_labels(spec, spec_path))
    if spec.get("topologySpreadConstraints"):
        found.extend(_spread(spec, spec_path))
    if spec.get("volumes"):
        found.extend(_volumes(spec, spec_path))
    if spec.get("hostAliases") or spec.get("imagePullSecrets"):
        found.extend(_names(spec, spec_path))
    if metadata.get("annotations"):
        found.extend(_annotations(metadata["annotations"], metadata_path))
    found.extend(_containers(spec, spec_path))
    if spec.get("overhead"):
        found.extend(fractions(spec["overhead"], f"{spec_path}.overhead"))
    found.extend(_ports(spec, spec_path))
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        place = f"{spec_path}.terminationGracePeriodSeconds"
        found.append(f"{place}: must be >= 0; negative values are invalid and will be treated as 1")
    if spec.get("affinity"):
        found.extend(_selectors(spec, spec_path))
    return found


def fractions(amounts: Any, path: str, names: Sequence[str] = ("memory", "ephemeral-storage")) -> Texts:
    """Amounts of bytes that are no whole numbers."""
    for name in names if isinstance(amounts, dict) else ():
        if name in amounts:
            try:
                quantity = parse_quantity(str(amounts[name]))
            except ValueError:
                continue
            if quantity.value.denominator != 1:
                yield f'{path}[{name}]: fractional byte value "{quantity}" is invalid, must be an integer'


def of_claim(spec: Json, path: str) -> Texts:
    """What a claim asks for, the resources at ``path``."""
    resources = spec.get("resources") or {}
    yield from fractions(resources.get("requests"), f"{path}.requests", ("storage",))
    yield from fractions(resources.get("limits"), f"{path}.limits", ("storage",))


def _items(value: Any, *keys: str) -> Iterator[tuple[int, Json]]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield index, item


def _old_label(key: Any) -> str:
    if not isinstance(key, str) or key not in _LABELS:
        return ""
    since, instead = _LABELS[key]
    return f'deprecated since {since}; use "{instead}" instead'


def _node_labels(spec: Json, path: str) -> Texts:
    for key in spec.get("nodeSelector") or ():
        if said := _old_label(key):
            yield f"{path}.nodeSelector[{key}]: {said}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    if affinity:
        place = f"{path}.affinity.nodeAffinity"
        for index, term in _items(affinity, _REQUIRED, "nodeSelectorTerms"):
            yield from _term(term, f"{place}.{_REQUIRED}.nodeSelectorTerms[{index}]")
        for index, weighed in _items(affinity, _PREFERRED):
            where = f"{place}.{_PREFERRED}[{index}].preference"
            yield from _term(weighed.get("preference") or {}, where, values=True)


def _spread(spec: Json, path: str) -> Texts:
    for index, constraint in _items(spec, "topologySpreadConstraints"):
        place, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey")
        if said := _old_label(key):
            yield f"{place}.topologyKey: {key} is {said}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NO_POD}"


def of_node_affinity(affinity: Any, path: str) -> Texts:
    """Says which labels of nodes that a volume needs have newer names."""
    for index, term in _items(affinity, "required", "nodeSelectorTerms"):
        yield from _term(term, f"{path}.required.nodeSelectorTerms[{index}]")


def of_topologies(topologies: Any, path: str) -> Texts:
    """Says the same of the labels of a storage class."""
    for index, term in _items({"terms": topologies}, "terms"):
        for number, expression in _items(term, "matchLabelExpressions"):
            if said := _old_label(expression.get("key")):
                yield f"{path}[{index}].matchLabelExpressions[{number}].key: {said}"


def _term(term: Json, path: str, *, values: bool = False) -> Texts:
    for index, expression in _items(term, "matchExpressions"):
        place, key = f"{path}.matchExpressions[{index}]", expression.get("key")
        if said := _old_label(key):
            yield f"{place}.key: {key} is {said}"
        for number, value in enumerate((expression.get("values") or ()) if values else ()):
            for fault in label_value_faults(value) if isinstance(value, str) else ():
                yield f"{place}.values[{number}]: {value} is invalid, {fault}"


def _annotations(annotations: Any, path: str) -> Texts:
    for key in annotations or ():
        said = _ANNOTATIONS.get(key) or next(
            (text for start, text in _ANNOTATION_STARTS.items() if key.startswith(start)), ""
        )
        if said:
            yield f"{path}.annotations[{key}]: {said}"


def _volumes(spec: Json, path: str) -> Texts:
    for index, volume in _items(spec, "volumes"):
        for kind in volume:
            if kind in _POD_VOLUMES and volume[kind] is not None:
                yield f"{path}.volumes[{index}].{SHOWN.get(kind, kind)}: {_POD_VOLUMES[kind]}"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if isinstance(claim, dict):
            place = f"{path}.volumes[{index}].ephemeral.volumeClaimTemplate.spec.resources"
            yield from of_claim(claim.get("spec") or {}, place)
        yield from _files(volume)


def _names(spec: Json, path: str) -> Texts:
    seen: set[Any] = set()
    for index, alias in _items(spec, "hostAliases"):
        if alias.get("ip") in seen:
            yield f'{path}.hostAliases[{index}].ip: duplicate ip "{alias["ip"]}"'
        seen.add(alias.get("ip"))
    secrets = [(index, each.get("name") or "") for index, each in _items(spec, "imagePullSecrets")]
    seen = set()
    for index, name in secrets:
        if name in seen:
            yield f'{path}.imagePullSecrets[{index}].name: duplicate name "{name}"'
        seen.add(name)
    for index, name in secrets:
        if not name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _containers(spec: Json, path: str) -> Texts:
    for kind in ("initContainers", "containers"):
        for index, container in _items(spec, kind):
            place = f"{path}.{kind}[{index}]"
            resources = container.get("resources") or {}
            for name in ("memory", "ephemeral-storage") if resources else ():
                for key in ("limits", "requests"):
                    text = str((resources.get(key) or {}).get(name, ""))
                    # Only milli and below, and what has a point or an exponent, can be a fraction.
                    if text and not text[-1].isdigit() and text[-1] not in "mun" and "." not in text:
                        continue
                    if text:
                        yield from fractions({name: text}, f"{place}.resources.{key}")
            seen: set[Any] = set()
            for number, variable in _items(container, "env"):
                variable_name = variable.get("name")
                if variable_name in seen:
                    said = f'hides previous definition of "{variable_name}", which may be dropped when using apply'
                    yield f"{place}.env[{number}]: {said}"
                seen.add(variable_name)


def _ports(spec: Json, path: str) -> Texts:
    """Ports that are said twice, of containers that run at the same time."""
    given = sum(
        len(each.get("ports") or ())
        for kind in ("initContainers", "containers")
        for _, each in _items(spec, kind)
    )
    if given < 2:
        return
    numbers: dict[tuple[Any, ...], str] = {}
    names: dict[str, str] = {}
    for kind in ("initContainers", "containers"):
        for index, container in _items(spec, kind):
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            for number, port in _items(container, "ports"):
                place, name = f"{path}.{kind}[{index}].ports[{number}]", port.get("name")
                known = names.get(name) if name else None
                if known is not None:
                    yield (
                        f'{place}: duplicate port name "{name}" with {known}, services and probes that select '
                        f"ports by name will use {known}"
                    )
                elif name:
                    names[name] = place
                same = tuple(port.get(key) for key in ("containerPort", "protocol", "hostPort", "hostIP"))
                if same in numbers:
                    yield f"{place}: duplicate port definition with {numbers[same]}"
                else:
                    numbers[same] = place


def _selectors(spec: Json, path: str) -> Texts:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity, place = (spec.get("affinity") or {}).get(kind), f"{path}.affinity.{kind}"
        for index, term in _items(affinity, _REQUIRED):
            if term.get("labelSelector") is None:
                yield f"{place}.{_REQUIRED}[{index}].labelSelector: {_NO_POD}"
        for index, weighed in _items(affinity, _PREFERRED):
            if (weighed.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{place}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_POD}"


def _files(volume: Json) -> Texts:
    """Files of one volume in each other's way."""
    name = volume.get("name")
    for kind, shown, key in (
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
        ("downwardAPI", "DownwardAPI", ""),
    ):
        source = volume.get(kind)
        if isinstance(source, dict):
            of = f'{shown} "{source.get(key) or ""}"' if key else shown
            yield from _overlapping(source, f'volume "{name}" ({of})')
    for _, source in _items(volume.get("projected"), "sources"):
        if not any(item is not None for item in source.values()):
            yield f'volume "{name}" (Projected) has no sources provided'


def _overlapping(source: Json, of: str) -> Texts:
    known: list[str] = []
    for _, item in _items(source, "items"):
        path = str(item.get("path") or "").rstrip("/")
        for other in known:
            if path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/"):
                yield f'{of}: overlapping paths: "{path}" with "{other}"'
        known.append(path)
