"""How often a kind looks at metadata by itself. kube-apiserver's generic registry checks the metadata of every update
twice, as that of a new object and as a changed one; then the kind's own validation checks it again, as both, as one of
them or not at all, so a refusal has the same cause two to five times. Counted on kube-apiserver 1.36.
"""

from __future__ import annotations

from typing import NamedTuple


class MetadataChecks(NamedTuple):
    """What the validation of a kind does with the metadata of an update: how often it checks it as that of a new object
    and as changed, and whether finalizers without a domain have to be ones that Kubernetes knows."""

    created: int = 1
    updated: int = 1
    plain_finalizers: bool = True

    @property
    def any(self) -> bool:
        """Whether the kind looks at metadata at all."""
        return bool(self.created or self.updated)


CUSTOM = MetadataChecks(0, 1, False)
_CHANGED = MetadataChecks(0, 1)
_NEW = MetadataChecks(1, 0)
_NOTHING = MetadataChecks(0, 0, False)
_POLICY = MetadataChecks(1, 0, False)

_ADMISSION, _FLOW = "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"
_OBJECTS: dict[tuple[str, str], MetadataChecks] = {
    ("", "Event"): _NOTHING,
    ("", "LimitRange"): _NEW,
    ("", "PersistentVolume"): MetadataChecks(2, 0),
    ("", "PodTemplate"): _CHANGED,
    ("", "ReplicationController"): _CHANGED,
    ("", "ResourceQuota"): _CHANGED,
    ("", "Service"): _CHANGED,
    (_ADMISSION, "MutatingAdmissionPolicy"): _POLICY,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _POLICY,
    (_ADMISSION, "MutatingWebhookConfiguration"): _POLICY,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _POLICY,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _POLICY,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _POLICY,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _NOTHING,  # its hooks look at all of it
    ("apiregistration.k8s.io", "APIService"): MetadataChecks(1, 1, False),
    ("apps", "DaemonSet"): _CHANGED,
    ("apps", "Deployment"): _CHANGED,
    ("apps", "ReplicaSet"): _CHANGED,
    ("apps", "StatefulSet"): _CHANGED,
    ("autoscaling", "HorizontalPodAutoscaler"): _CHANGED,
    ("batch", "CronJob"): _CHANGED,
    ("coordination.k8s.io", "Lease"): CUSTOM,
    ("discovery.k8s.io", "EndpointSlice"): _NEW,
    ("events.k8s.io", "Event"): _CHANGED,
    (_FLOW, "FlowSchema"): _NEW,
    (_FLOW, "PriorityLevelConfiguration"): _NEW,
    ("networking.k8s.io", "NetworkPolicy"): _CHANGED,
    ("networking.k8s.io", "ServiceCIDR"): _CHANGED,
    ("node.k8s.io", "RuntimeClass"): MetadataChecks(1, 1, False),
    ("policy", "PodDisruptionBudget"): _NOTHING,
    ("resource.k8s.io", "ResourceSlice"): _CHANGED,
    ("scheduling.k8s.io", "PriorityClass"): _CHANGED,
    ("storage.k8s.io", "CSIDriver"): _CHANGED,
    ("storage.k8s.io", "CSINode"): _NEW,
    ("storage.k8s.io", "VolumeAttachment"): _NEW,
}
_STATUS: dict[tuple[str, str], MetadataChecks] = {
    (_ADMISSION, "ValidatingAdmissionPolicy"): _NOTHING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _NOTHING,
    ("batch", "CronJob"): _NOTHING,
    ("certificates.k8s.io", "CertificateSigningRequest"): MetadataChecks(),
    ("policy", "PodDisruptionBudget"): _NOTHING,
    ("storage.k8s.io", "VolumeAttachment"): _NOTHING,
}


def checks_of(group: str, kind: str, *, builtin: bool) -> tuple[MetadataChecks, MetadataChecks]:
    """Those of writes of an object, and those of writes of its status."""
    if not builtin:
        return CUSTOM, CUSTOM
    named = group, kind
    return _OBJECTS.get(named, MetadataChecks()), _STATUS.get(named, _CHANGED)
