"""Functions that rule files name, where a rule of the language could not decide.

Each takes an object as a client may have sent it, changes it in place, and never fails: what is not of the
expected shape is left for validation.
"""

from __future__ import annotations

import base64
from typing import Any

from apimachinery.kinds.amounts import aggregate, is_huge_page
from apimachinery.kinds.fields import (
    Json,
    copied,
    created,
    items,
    lookup,
    struct,
)
from apimachinery.meta.clock import utc
from apimachinery.meta.quantity import parse_quantity

_UNREADY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
ROLLBACK_TO = "deprecated.deployment.rollback.to"


def encode_string_data(secret: Json) -> None:
    """``stringData`` goes into ``data``, encoded, and wins over what is there; it is never stored itself."""
    plain = secret.get("stringData")
    if not isinstance(plain, dict) or not all(isinstance(text, str) for text in plain.values()):
        return
    del secret["stringData"]
    if plain and (data := created(secret, "data")) is not None:
        for key, text in plain.items():
            data[key] = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def tolerate_unready_nodes(pod: Json, seconds: tuple[int, int] = (300, 300)) -> None:
    """Tolerates nodes not ready and out of reach for so many seconds."""
    spec = struct(pod, "spec")
    if spec is None or not isinstance(spec.get("tolerations", []), list):
        return
    tolerations = list(items(spec, "tolerations"))
    for taint, wanted in zip(_UNREADY_TAINTS, seconds, strict=True):
        if not any(
            toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in tolerations
        ):
            spec.setdefault("tolerations", []).append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": wanted,
                }
            )


def set_qos_class(pod: Json) -> None:
    """``status.qosClass``: Guaranteed where every container has limits of CPU and memory equal to its requests,
    BestEffort where none has either, else Burstable. Resources of the pod itself count instead where given."""
    spec, status = struct(pod, "spec"), created(pod, "status")
    if spec is None or status is None:
        return
    status["qosClass"] = qos_class(spec)


def qos_class(spec: Json) -> str:
    """The class of service of a pod's spec."""
    holders = (
        [spec] if struct(spec, "resources") else [*items(spec, "containers"), *items(spec, "initContainers")]
    )
    any_set, guaranteed = False, True
    for holder in holders:
        requests, limits = _positive(holder, "requests"), _positive(holder, "limits")
        any_set = any_set or bool(requests or limits)
        guaranteed = guaranteed and limits.keys() == {"cpu", "memory"} and requests == limits
    return "BestEffort" if not any_set else "Guaranteed" if guaranteed else "Burstable"


def _positive(holder: Json, key: str) -> dict[str, Any]:
    found = {}
    for name in ("cpu", "memory"):
        try:
            quantity = parse_quantity(str(lookup(holder, "resources", key, name))).value
        except ValueError:
            continue
        # Its sign alone: comparing a Fraction goes through abstract classes.
        if quantity.numerator > 0:
            found[name] = quantity
    return found


_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def set_app_armor_profiles(pod: Json) -> None:
    """Profiles that annotations name go into the fields that came after them, where these say nothing: of a container,
    and unless the pod as a whole has the same one."""
    spec = struct(pod, "spec")
    annotations = struct(pod, "metadata", "annotations")
    if spec is None or annotations is None or lookup(spec, "os", "name") == "windows":
        return
    of_pod = lookup(spec, "securityContext", "appArmorProfile")
    for key in ("initContainers", "containers"):
        for container in items(spec, key):
            text = annotations.get(f"{_APP_ARMOR}{container.get('name')}")
            if (
                not isinstance(text, str)
                or lookup(container, "securityContext", "appArmorProfile") is not None
            ):
                continue
            profile = _app_armor_profile(text)
            if profile is not None and profile != of_pod:
                context = created(container, "securityContext")
                if context is not None:
                    context["appArmorProfile"] = profile


def _app_armor_profile(text: str) -> Json | None:
    if text.startswith("localhost/") and len(text) > len("localhost/"):
        return {"type": "Localhost", "localhostProfile": text.removeprefix("localhost/")}
    kind = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}.get(text)
    return None if kind is None else {"type": kind}


def set_ip_families(service: Json) -> None:
    """Families and policy of a service's addresses in a cluster of IPv4, and what goes without saying of a
    headless one: its ``clusterIPs``. A headless service without selector gets both families."""
    spec = struct(service, "spec")
    if spec is None or spec.get("type") == "ExternalName":
        return
    address = spec.get("clusterIP")
    if address and "clusterIPs" not in spec:
        spec["clusterIPs"] = [address]
    if address == "None" and not spec.get("selector"):
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def positive_grace(pod: Json) -> None:
    """Raises a pod's grace period to at least a second; templates are only warned of."""
    spec = struct(pod, "spec")
    seconds = spec.get("terminationGracePeriodSeconds") if spec is not None else None
    if spec is not None and isinstance(seconds, int) and seconds < 0:
        spec["terminationGracePeriodSeconds"] = 1


def pair_pod_ips(pod: Json) -> None:
    """``status.podIP`` is the first of ``podIPs``; where the two differ the one address counts, as older nodes set it
    alone."""
    status = struct(pod, "status")
    if status is None:
        return
    address, addresses = status.get("podIP"), list(items(status, "podIPs"))
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


def pair_pod_cidrs(node: Json) -> None:
    """``spec.podCIDR`` is the first of ``podCIDRs``; where the two differ the one range counts."""
    spec = struct(node, "spec")
    if spec is None:
        return
    one, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not isinstance(ranges, list) or not ranges or ranges[0] != one):
        spec["podCIDRs"] = [one]
    elif isinstance(ranges, list) and ranges and ranges[0]:
        spec["podCIDR"] = ranges[0]


def add_kubernetes_finalizer(namespace: Json) -> None:
    """Adds ``kubernetes`` to ``spec.finalizers``: a namespace goes only after its content."""
    spec = created(namespace, "spec")
    if spec is None:
        return
    finalizers = spec.setdefault("finalizers", [])
    if isinstance(finalizers, list) and "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def taint_unready_node(node: Json) -> None:
    """Taints a new node, which takes no pods until it is ready."""
    spec = created(node, "spec")
    if spec is None or not isinstance(spec.get("taints", []), list):
        return
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    if not any(
        item.get("key") == taint["key"] and item.get("effect") == "NoSchedule"
        for item in items(spec, "taints")
    ):
        spec.setdefault("taints", []).append(taint)


def stamp_phase_transition(volume: Json) -> None:
    """Notes that the volume came into its phase now."""
    status = created(volume, "status")
    if status is not None:
        status["lastPhaseTransitionTime"] = utc().strftime("%Y-%m-%dT%H:%M:%SZ")


def normalize_data_sources(claim: Json) -> None:
    """``dataSource`` and ``dataSourceRef`` say the same; a source of a kind that ``dataSource`` was not made for is
    forgotten, as it was before there were references."""
    spec = struct(claim, "spec")
    if spec is None:
        return
    source, reference = struct(spec, "dataSource"), struct(spec, "dataSourceRef")
    if reference is not None and reference.get("namespace") is not None:
        # Without its gate a source in another namespace is none.
        del spec["dataSourceRef"]
        reference = None
    if source is not None and reference is None and _kind_of(source) not in _DATA_SOURCES:
        del spec["dataSource"]
        source = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = copied(source)
    elif reference is not None and source is None:
        spec["dataSource"] = copied(reference)


def keep_data_sources(claim: Json, old: Json) -> None:
    """Does the same for a claim that replaces the stored one."""
    del old
    normalize_data_sources(claim)


def _kind_of(source: Json) -> tuple[str, str]:
    return str(source.get("apiGroup") or ""), str(source.get("kind") or "")


_DATA_SOURCES = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}


def default_pod_resources(pod: Json) -> None:
    """Fills in the resources of a pod as a whole from those of its containers, if it has any (KEP-2837)."""
    spec = struct(pod, "spec") or {}
    whole = struct(spec, "resources")
    if whole is None or not (whole.get("limits") or whole.get("requests")):
        return
    limits = struct(whole, "limits") or {}
    for name, amount in aggregate(spec, "limits").items():
        if is_huge_page(name) and name not in limits:
            limits[name] = str(amount)
            whole["limits"] = limits
    if not limits:
        return
    requests = struct(whole, "requests") or {}
    for name, amount in aggregate(spec, "requests").items():
        if name not in requests and name in ("cpu", "memory"):
            requests[name] = str(amount)
    for name, text in limits.items():
        if name in ("cpu", "memory") or is_huge_page(name):
            requests.setdefault(name, text)
    if requests:
        whole["requests"] = requests


def int_or_zero(text: Any) -> int:
    """The number that an annotation is, 0 where it is none."""
    try:
        return int(text or 0)
    except (TypeError, ValueError):
        return 0


def note_template_generation(daemon_set: Json) -> None:
    """Adds the annotation that every daemon set of apps/v1 has: so its writers own it."""
    metadata = created(daemon_set, "metadata")
    if metadata is not None and (annotations := created(metadata, "annotations")) is not None:
        annotations.setdefault(TEMPLATE_GENERATION, "0")


def set_template_generation(daemon_set: Json) -> None:
    """Sets the template generation of a new daemon set, kept in an annotation, to at least one."""
    metadata = created(daemon_set, "metadata")
    if metadata is not None and (annotations := created(metadata, "annotations")) is not None:
        annotations[TEMPLATE_GENERATION] = str(max(int_or_zero(annotations.get(TEMPLATE_GENERATION)), 1))


def raise_template_generation(new: Json, old: Json) -> None:
    """Raises the generation where the template changed."""
    before = lookup(old, "metadata", "annotations", TEMPLATE_GENERATION)
    metadata = created(new, "metadata")
    if metadata is None or (annotations := created(metadata, "annotations")) is None:
        return
    number = int(before) if isinstance(before, str) and before.isdigit() and len(before) < 19 else 0
    if lookup(new, "spec", "template") != lookup(old, "spec", "template"):
        number += 1
    annotations[TEMPLATE_GENERATION] = str(number)


def share_labels_of_template(job: Json) -> None:
    """Gives a job without labels those of its pods: one map in Go, so what its selector adds is in both."""
    metadata, labels = struct(job, "metadata"), lookup(job, "spec", "template", "metadata", "labels")
    if metadata is not None and labels is not None and not metadata.get("labels"):
        metadata["labels"] = labels


def generate_job_selector(job: Json) -> None:
    """Labels and selector by which a job finds its pods, from its uid, unless ``manualSelector`` is true."""
    spec, metadata = struct(job, "spec"), struct(job, "metadata")
    if spec is None or metadata is None or spec.get("manualSelector") is True:
        return
    uid, name = str(metadata.get("uid", "")), str(metadata.get("name", ""))
    template = created(spec, "template", "metadata")
    labels = created(template, "labels") if template is not None else None
    if labels is None:
        return
    given = {
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
    }
    for key, value in given.items():
        labels.setdefault(key, value)
    selector = created(spec, "selector", "matchLabels")
    if selector is not None:
        selector.setdefault("batch.kubernetes.io/controller-uid", uid)
    if not metadata.get("labels"):
        metadata["labels"] = copied(labels)
