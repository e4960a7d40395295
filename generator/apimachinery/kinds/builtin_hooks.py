"""Hooks of the built-in kinds: field labels, and the little that a kind's registry does alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from apimachinery.crd import check_crd, check_crd_status, default_crd, prepare_crd_for_create
from apimachinery.crd.defaults import prepare_crd_for_update
from apimachinery.kinds import builtin_warnings as warn
from apimachinery.kinds.apiregistration.local import mark_local
from apimachinery.kinds.autoscaling.autoscalers import keep_status_annotations, without_status_annotations
from apimachinery.kinds.batch.job_labels import keep_labels_of_template, labels_of_template
from apimachinery.kinds.core.pod_subresources import METADATA_OF_CLIENTS, add_ephemeral, resize
from apimachinery.kinds.core.services import is_external, needs_health_check
from apimachinery.kinds.defaulters import ROLLBACK_TO, TEMPLATE_GENERATION, stamp_phase_transition
from apimachinery.kinds.hooks import (
    BUILTIN,
    FieldValue,
    Hooks,
    Json,
)
from apimachinery.meta.names import path_segment_faults


def _spec(obj: Json) -> Json:
    found = obj.get("spec")
    return found if isinstance(found, dict) else obj.setdefault("spec", {})


def _keep_namespace(obj: Json, old: Json) -> None:
    # Its finalizers change through the finalize subresource only.
    if "spec" in old:
        obj["spec"] = old["spec"]
    else:
        obj.pop("spec", None)
    _label_namespace(obj)


def _label_namespace(obj: Json) -> None:
    # Defaulting cannot: a name from generateName comes after it.
    metadata = obj["metadata"]
    if name := metadata.get("name"):  # validation refuses what has none
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}


def _terminate_namespace(obj: Json, now: str) -> None:
    obj.setdefault("status", {})["phase"] = "Terminating"


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def _terminate_definition(obj: Json, now: str) -> None:
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if CLEANUP not in finalizers:
        metadata["finalizers"] = [*finalizers, CLEANUP]
    status = obj.setdefault("status", {})
    conditions = [c for c in status.get("conditions") or [] if c.get("type") != "Terminating"]
    status["conditions"] = [
        *conditions,
        {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        },
    ]


_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")


_OF_TYPES: tuple[tuple[Callable[[Json], bool], tuple[str, ...]], ...] = (
    (
        lambda spec: spec.get("type") != "ExternalName",
        ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"),
    ),
    (needs_health_check, ("healthCheckNodePort",)),
    (
        lambda spec: spec.get("type") == "LoadBalancer",
        ("allocateLoadBalancerNodePorts", "loadBalancerClass"),
    ),
    (is_external, ("externalTrafficPolicy",)),
)
"""Fields that only services of some types have."""


def _drop_of_other_types(spec: Json, old: Json) -> None:
    """Drops what a service's new type does not have, where its user left it as it was."""
    for has, keys in _OF_TYPES:
        if has(old) and not has(spec):
            for key in keys:
                if spec.get(key) == old.get(key):
                    spec.pop(key, None)
    with_ports = ("LoadBalancer", "NodePort")
    if old.get("type") in with_ports and spec.get("type") not in with_ports:
        stored = {port.get("nodePort") for port in old.get("ports") or () if port.get("nodePort")}
        ports = [port for port in spec.get("ports") or () if isinstance(port, dict)]
        if all(port.get("nodePort") in (None, 0, *stored) for port in ports):
            for port in ports:
                port.pop("nodePort", None)


def _precedence(schema: Json) -> tuple[int, str]:
    """Where a FlowSchema is among the others: as requests are matched with them."""
    return _spec(schema).get("matchingPrecedence") or 0, schema["metadata"]["name"]


def _stamp_phase(volume: Json, old: Json) -> None:
    """Keeps the time of a volume's phase, or stamps a new phase that came without a time of its own."""
    status, before = volume.get("status") or {}, old.get("status") or {}
    since, given = before.get("lastPhaseTransitionTime"), status.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if given is None and since is not None:
            status["lastPhaseTransitionTime"] = since
    elif given is None or given == since:
        stamp_phase_transition(volume)


def _drop_policy_of_external_names(service: Json) -> None:
    """Drops the policy of traffic within the cluster from an external name, where it is valid: kube-apiserver checks
    it, and never shows it."""
    spec = _spec(service)
    if spec.get("type") == "ExternalName" and spec.get("internalTrafficPolicy") in ("Cluster", "Local"):
        del spec["internalTrafficPolicy"]


def _drop_config(node: Json, old: Json) -> None:
    """Drops the configuration of a kubelet from a status, which the release has switched off, unless it is stored."""
    status = node.get("status") or {}
    if "config" in status and "config" not in (old.get("status") or {}):
        del status["config"]


def _name_limits(limits: Json) -> None:
    """Names a LimitRange that nobody named."""
    if not limits["metadata"].get("name"):
        limits["metadata"]["name"] = str(uuid4())


def _keep_allocated(service: Json, old: Json) -> None:
    spec, old_spec = _spec(service), old.get("spec") or {}
    _drop_of_other_types(spec, old_spec)
    _drop_policy_of_external_names(service)
    if spec.get("type") == "ExternalName":
        return
    named = spec.get("clusterIP")
    if named and named != old_spec.get("clusterIP") and spec.get("clusterIPs") == old_spec.get("clusterIPs"):
        spec.pop("clusterIPs", None)
    for key in _ALLOCATED:
        if key in old_spec and not spec.get(key) and not (key == "clusterIPs" and named):
            if key != "healthCheckNodePort" or needs_health_check(spec):
                spec[key] = old_spec[key]
    if named and named == old_spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = old_spec.get("clusterIPs") or [named]
    old_ports = {
        (port.get("port"), port.get("protocol")): port.get("nodePort") for port in old_spec.get("ports") or []
    }
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or []:
            known = old_ports.get((port.get("port"), port.get("protocol")))
            if known and not port.get("nodePort"):
                port["nodePort"] = known


def _field(name: str, *fields: str) -> dict[str, str | FieldValue]:
    return {f"{name}.{field}": f"{name}.{field}" for field in fields}


def _flag(*path: str) -> FieldValue:
    def read(obj: Json) -> str:
        value: object = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return "true" if value else "false"

    return read


def _event_source(obj: Json) -> str:
    return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "")


def _keep_status(request: Json, old: Json, now: str) -> None:
    """Leaves the status alone."""
    del now
    request.pop("status", None)
    if "status" in old:
        request["status"] = old["status"]


def _approve(request: Json, old: Json, now: str) -> None:
    """Limits an approval to conditions, and stamps those without times."""
    if "spec" in old:
        request["spec"] = old["spec"]
    before = old.get("status") or {}
    status = {**before, "conditions": (request.get("status") or {}).get("conditions") or []}
    known = {condition.get("type"): condition for condition in before.get("conditions") or []}
    for condition in status["conditions"]:
        same = known.get(condition.get("type"), {})
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            kept = same.get("lastTransitionTime") if same.get("status") == condition.get("status") else None
            condition["lastTransitionTime"] = kept or now
    request["status"] = status if status["conditions"] or before else {}
    if not request["status"]:
        del request["status"]


_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT = {"reason": "reason", "type": "type"}


def _grace_of_pod(pod: Json) -> int | None:
    """A pod that runs somewhere stays until its node has ended it."""
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return None
    seconds = spec.get("terminationGracePeriodSeconds")
    return 30 if seconds is None else int(seconds)


def _count_changes(new: Json, old: Json) -> None:
    """Counts changes of the spec in the generation, which a new object of these kinds does not have."""
    new["metadata"]["generation"] += new.get("spec") != old.get("spec")


def _names_of_secrets(obj: Json) -> None:
    """Keeps only the names of references to secrets."""
    for secret in obj.get("secrets") or ():
        if isinstance(secret, dict):
            for key in [key for key in secret if key != "name"]:
                del secret[key]


def _names_of_changed_secrets(new: Json, old: Json) -> None:
    del old
    _names_of_secrets(new)


def _keep_spec(new: Json, old: Json) -> None:
    new["spec"] = old["spec"]


def _hold_back(pod: Json) -> None:
    """Adds the condition that a new pod waits for its scheduling gates."""
    if _spec(pod).get("schedulingGates"):
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        if all(each.get("type") != "PodScheduled" for each in conditions):
            conditions.append(
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            )


def _keep_qos_class(new: Json, old: Json) -> None:
    """Keeps a pod's class of service where a status does not name one."""
    status, known = new.get("status"), (old.get("status") or {}).get("qosClass")
    if known and (status is None or (isinstance(status, dict) and not status.get("qosClass"))):
        new["status"] = {**(status or {}), "qosClass": known}


_POD_GATED = (
    "schedulingGroup",
    "volumes[*].projected.sources[*].clusterTrustBundle",
    "volumes[*].projected.sources[*].podCertificate",
    *(f"{kind}[*].lifecycle?.stopSignal" for kind in ("containers", "initContainers", "ephemeralContainers")),
)


def _gated_in(prefix: str) -> tuple[str, ...]:
    """The gated fields of the pods that a kind's template describes."""
    return tuple(prefix + name for name in _POD_GATED)


_TEMPLATE_GATED = _gated_in("template.spec.")

_BLANK_SCALED: Json = {"spec": {"replicas": 0, "selector": None}}
HOOKS: dict[tuple[str, str], Hooks] = {
    ("", "Namespace"): Hooks(
        selectable={"status.phase": "status.phase"},
        prepare_create=_label_namespace,
        prepare_update=_keep_namespace,
        prepare_subresource={"finalize": _keep_status},
        terminate=_terminate_namespace,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): replace(
        BUILTIN,
        default=default_crd,
        status_tables=False,
        validates_metadata=True,
        prepare_create=prepare_crd_for_create,
        prepare_update=prepare_crd_for_update,
        terminate=_terminate_definition,
        validate=check_crd,
        warnings=warn.definition_formats,
        validate_status=check_crd_status,
    ),
    ("apiregistration.k8s.io", "APIService"): replace(
        BUILTIN, prepare_create=mark_local, status_tables=False
    ),
    ("", "Pod"): Hooks(
        grace=_grace_of_pod,
        warnings=warn.pod,
        answers_deleted=True,
        prepare_subresource={"ephemeralcontainers": add_ephemeral, "resize": resize},
        prepare_create=_hold_back,
        prepare_status=_keep_qos_class,
        selectable={
            **_field("spec", "nodeName", "restartPolicy", "schedulerName", "serviceAccountName"),
            **_field("status", "phase", "podIP", "nominatedNodeName"),
            "spec.hostNetwork": _flag("spec", "hostNetwork"),
            "spec.host": "spec.nodeName",
            "status.podIPs": lambda pod: "",  # may be asked for, and no pod has it
        },
        gated=_POD_GATED,
    ),
    ("apps", "StatefulSet"): replace(
        BUILTIN,
        gated=("updateStrategy.rollingUpdate.maxUnavailable", *_gated_in("template.spec.")),
        warnings=warn.stateful_set,
        blank=_BLANK_SCALED,
    ),
    ("discovery.k8s.io", "EndpointSlice"): replace(
        BUILTIN,
        warnings=warn.endpoint_slice,
        gated=("$.endpoints[*].deprecatedTopology",),
        blank={"endpoints": None},
    ),
    ("apps", "DaemonSet"): replace(
        BUILTIN,
        warnings=warn.daemon_set,
        gated=_TEMPLATE_GATED,
        internal_annotations=(TEMPLATE_GENERATION,),
        blank={"spec": {"selector": None}, "metadata": {"annotations": {TEMPLATE_GENERATION: "0"}}},
    ),
    # Events of the first API may have any name.
    ("", "Event"): Hooks(
        never_waits=True,
        name_rule=path_segment_faults,
        selectable={
            **_field("involvedObject", *_OBJECT),
            **_EVENT,
            "source": _event_source,
            "reportingComponent": "reportingComponent",
        },
    ),
    ("events.k8s.io", "Event"): Hooks(
        never_waits=True,
        selectable={
            **_field("regarding", *_OBJECT),
            **_EVENT,
            "reportingController": "reportingController",
        },
    ),
    ("", "Node"): Hooks(
        selectable={"spec.unschedulable": _flag("spec", "unschedulable")},
        gated=("configSource", "$.status.config"),
        prepare_status=_drop_config,
        asks_twice=True,
        warnings=warn.node_fields,
    ),
    ("", "Secret"): Hooks(selectable={"type": "type"}, warnings=warn.secret),
    ("", "PersistentVolume"): replace(
        BUILTIN, answers_deleted=True, warnings=warn.volume, asks_twice=True, prepare_status=_stamp_phase
    ),
    ("", "PersistentVolumeClaim"): replace(
        BUILTIN, answers_deleted=True, warnings=warn.claim, fills_in_when_read=lambda claim: True
    ),
    ("", "PodTemplate"): replace(
        BUILTIN, answers_deleted=True, warnings=warn.pod_template, gated=_gated_in("$.template.spec.")
    ),
    ("", "ResourceQuota"): replace(BUILTIN, answers_deleted=True),
    ("", "ServiceAccount"): replace(
        BUILTIN,
        answers_deleted=True,
        warnings=warn.service_account,
        prepare_create=_names_of_secrets,
        prepare_update=_names_of_changed_secrets,
    ),
    ("", "Service"): Hooks(
        warnings=warn.service,
        answers_deleted=True,
        selectable=_field("spec", "clusterIP", "type"),
        prepare_create=_drop_policy_of_external_names,
        prepare_update=_keep_allocated,
    ),
    ("", "LimitRange"): replace(BUILTIN, prepare_create=_name_limits),
    ("", "ComponentStatus"): replace(BUILTIN, called="componentstatus"),
    ("", "ReplicationController"): Hooks(
        orphans=True,
        warnings=warn.replication_controller,
        selectable=_field("status", "replicas"),
        gated=_TEMPLATE_GATED,
    ),
    ("apps", "ReplicaSet"): replace(
        BUILTIN,
        warnings=warn.workload,
        gated=_TEMPLATE_GATED,
        blank=_BLANK_SCALED,
    ),
    ("apps", "Deployment"): replace(
        BUILTIN,
        warnings=warn.workload,
        status_keeps=("labels",),
        gated=_TEMPLATE_GATED,
        internal_annotations=(ROLLBACK_TO,),
        blank=_BLANK_SCALED,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): replace(
        BUILTIN,
        annotated=("autoscaling/v2", "autoscaling.alpha.kubernetes.io/"),
        prepare_create=without_status_annotations,
        prepare_update=keep_status_annotations,
    ),
    ("batch", "CronJob"): replace(
        BUILTIN, warnings=warn.cron_job, gated=_gated_in("jobTemplate.spec.template.spec.")
    ),
    ("batch", "Job"): Hooks(
        orphans=True,
        orphan_warning=warn.ORPHANED_PODS,
        prepare_status=keep_labels_of_template,
        selectable={"status.successful": lambda job: str((job.get("status") or {}).get("succeeded") or 0)},
        unknown_label='field label "{label}" not supported for Job',
        warnings=warn.workload,
        gated=("scheduling", *_TEMPLATE_GATED),
        asks_twice=True,
        fills_in_when_read=labels_of_template,
        gives_labels=labels_of_template,
    ),
    ("networking.k8s.io", "NetworkPolicy"): replace(BUILTIN, counts_empties=True),
    ("coordination.k8s.io", "Lease"): replace(BUILTIN, gated=("strategy", "preferredHolder")),
    ("certificates.k8s.io", "CertificateSigningRequest"): Hooks(
        selectable=_field("spec", "signerName"),
        prepare_subresource={"approval": _approve},
        of_status=("approval",),
        prepare_update=_keep_spec,
        unowned=("spec",),
    ),
    ("resource.k8s.io", "ResourceSlice"): Hooks(
        answers_deleted=True,
        selectable=_field("spec", "nodeName", "driver"),
        unknown_label="field label not supported for {version}, Kind=ResourceSlice: {label}",
        gated=tuple(
            f"devices[*].attributes{{*}}.{name}" for name in ("bools", "ints", "strings", "versions")
        ),
    ),
    ("resource.k8s.io", "DeviceClass"): replace(BUILTIN, answers_deleted=True),
    ("resource.k8s.io", "ResourceClaim"): replace(
        BUILTIN, status_tables=False, answers_deleted=True, status_keeps=METADATA_OF_CLIENTS
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): replace(BUILTIN, answers_deleted=True),
    ("storage.k8s.io", "StorageClass"): replace(BUILTIN, answers_deleted=True, warnings=warn.storage_class),
    ("storage.k8s.io", "CSIDriver"): replace(
        BUILTIN,
        answers_deleted=True,
        prepare_update=_count_changes,
        gated=("preventPodSchedulingIfMissing",),
        warnings=warn.csi_driver,
    ),
    ("storage.k8s.io", "CSINode"): replace(BUILTIN, answers_deleted=True),
    ("storage.k8s.io", "VolumeAttributesClass"): replace(BUILTIN, answers_deleted=True),
    ("storage.k8s.io", "VolumeAttachment"): replace(
        BUILTIN, answers_deleted=True, status_keeps=METADATA_OF_CLIENTS
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): replace(
        BUILTIN, status_keeps=METADATA_OF_CLIENTS, order=_precedence
    ),
}
