"""The order in which kube-apiserver writes the fields of built-in kinds: that of their Go structs.

It is that of the numbers in the protobuf form, but for fields that were declared among older ones later. Keys of maps
are in order. Only messages that show a whole object need it: JSON has no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from apimachinery.meta.json import Json

_API: Final = "io.k8s.api."
# Structs with fields that stand elsewhere than their numbers say, and behind which field: "" for none.
_MOVED: Final[dict[str, dict[str, str]]] = {
    "admissionregistration.v1.ValidatingWebhook": {
        "matchPolicy": "failurePolicy",
        "objectSelector": "namespaceSelector",
    },
    "admissionregistration.v1.MutatingWebhook": {
        "matchPolicy": "failurePolicy",
        "objectSelector": "namespaceSelector",
    },
    "admissionregistration.v1.WebhookClientConfig": {"url": ""},
    "apps.v1.DeploymentStatus": {
        "readyReplicas": "updatedReplicas",
        "terminatingReplicas": "unavailableReplicas",
    },
    "apps.v1.DeploymentCondition": {"reason": "lastTransitionTime", "message": "reason"},
    "apps.v1.ReplicaSetSpec": {"minReadySeconds": "replicas"},
    "apps.v1.ReplicaSetStatus": {
        "observedGeneration": "terminatingReplicas",
        "conditions": "observedGeneration",
    },
    "authentication.v1.TokenReviewStatus": {"error": "audiences"},
    "authentication.v1.TokenRequestSpec": {"boundObjectRef": "expirationSeconds"},
    "authorization.v1.SubjectAccessReviewStatus": {"denied": "allowed"},
    "autoscaling.v1.MetricSpec": {"external": "containerResource"},
    "autoscaling.v1.MetricStatus": {"external": "containerResource"},
    "autoscaling.v2.MetricSpec": {"external": "containerResource"},
    "autoscaling.v2.HPAScalingRules": {"stabilizationWindowSeconds": ""},
    "autoscaling.v2.MetricStatus": {"external": "containerResource"},
    "batch.v1.JobSpec": {
        "podFailurePolicy": "activeDeadlineSeconds",
        "successPolicy": "podFailurePolicy",
        "backoffLimit": "successPolicy",
        "backoffLimitPerIndex": "backoffLimit",
        "maxFailedIndexes": "backoffLimitPerIndex",
    },
    "batch.v1.JobStatus": {"terminating": "failed", "failedIndexes": "completedIndexes"},
    "batch.v1.CronJobSpec": {"timeZone": "schedule"},
    "certificates.v1.CertificateSigningRequestSpec": {
        "signerName": "request",
        "expirationSeconds": "signerName",
        "usages": "expirationSeconds",
    },
    "certificates.v1.CertificateSigningRequestCondition": {"status": "type"},
    "certificates.v1.PodCertificateRequestSpec": {"unverifiedUserAnnotations": "stubPKCS10Request"},
    "core.v1.Volume": {"projected": "photonPersistentDisk"},
    "core.v1.PersistentVolumeClaimSpec": {"selector": "accessModes"},
    "core.v1.ISCSIVolumeSource": {"secretRef": "chapAuthSession"},
    "core.v1.ISCSIPersistentVolumeSource": {"secretRef": "chapAuthSession"},
    "core.v1.ClusterTrustBundleProjection": {"path": "optional"},
    "core.v1.VolumeMount": {"recursiveReadOnly": "readOnly"},
    "core.v1.Container": {
        "envFrom": "ports",
        "resizePolicy": "resources",
        "restartPolicy": "resizePolicy",
        "restartPolicyRules": "restartPolicy",
        "volumeDevices": "volumeMounts",
        "startupProbe": "readinessProbe",
        "terminationMessagePolicy": "terminationMessagePath",
    },
    "core.v1.PodCondition": {"observedGeneration": "type"},
    "core.v1.PodSpec": {
        "initContainers": "volumes",
        "ephemeralContainers": "containers",
        "automountServiceAccountToken": "serviceAccount",
        "shareProcessNamespace": "hostIPC",
    },
    "core.v1.PodSecurityContext": {
        "windowsOptions": "seLinuxOptions",
        "runAsGroup": "runAsUser",
        "supplementalGroupsPolicy": "supplementalGroups",
    },
    "core.v1.EphemeralContainer": {
        "envFrom": "ports",
        "resizePolicy": "resources",
        "restartPolicy": "resizePolicy",
        "restartPolicyRules": "restartPolicy",
        "volumeDevices": "volumeMounts",
        "startupProbe": "readinessProbe",
        "terminationMessagePolicy": "terminationMessagePath",
    },
    "core.v1.PodStatus": {
        "observedGeneration": "",
        "nominatedNodeName": "reason",
        "hostIPs": "hostIP",
        "podIPs": "podIP",
        "initContainerStatuses": "startTime",
    },
    "core.v1.ReplicationControllerSpec": {"minReadySeconds": "replicas"},
    "core.v1.ReplicationControllerStatus": {"observedGeneration": "availableReplicas"},
    "core.v1.ServiceSpec": {"clusterIPs": "clusterIP", "ipFamilyPolicy": "ipFamilies"},
    "core.v1.ServicePort": {"appProtocol": "protocol"},
    "core.v1.EndpointAddress": {"targetRef": "nodeName"},
    "core.v1.NodeSpec": {"podCIDRs": "podCIDR", "externalID": "configSource"},
    "core.v1.Secret": {"immutable": "metadata", "type": "stringData"},
    "core.v1.ConfigMap": {"immutable": "metadata"},
    "core.v1.SecurityContext": {"windowsOptions": "seLinuxOptions", "runAsGroup": "runAsUser"},
    "discovery.v1.EndpointSlice": {"addressType": "metadata"},
    "networking.v1.IngressSpec": {"ingressClassName": ""},
    "networking.v1.HTTPIngressPath": {"backend": "pathType"},
    "networking.v1.IngressBackend": {"resource": "service"},
    "resource.v1.AllocatedDeviceStatus": {"shareID": "device"},
    "resource.v1beta1.AllocatedDeviceStatus": {"shareID": "device"},
    "resource.v1beta2.AllocatedDeviceStatus": {"shareID": "device"},
}


class StructOrder:
    """Puts objects in order. ``numbers`` are those of the protobuf form, by definition."""

    def __init__(self, definitions: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._numbers = numbers
        self._names = cache(self._names_of)

    def ordered(self, value: Any, definition: str) -> Any:
        """A value of a definition, its fields in order; what it shares with the given one is not changed."""
        if not isinstance(value, dict) or definition not in self._numbers:
            return value
        properties = self._definitions[definition].get("properties") or {}
        found: Json = {}
        # Who says what the object is comes first; the numbers leave that to the envelope.
        first = ("kind", "apiVersion") if "metadata" in value else ()
        for name in (*first, *self._names(definition), *sorted(value)):
            if name in value and name not in found:
                found[name] = self._below(value[name], properties.get(name) or {})
        return found

    def _below(self, value: Any, schema: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            items = schema.get("items")
            return [self._below(item, items) for item in value] if isinstance(items, Mapping) else value
        if not isinstance(value, dict):
            return value
        if reference := _reference(schema):
            return self.ordered(value, reference)
        below = schema.get("additionalProperties")
        if isinstance(below, Mapping):
            return {key: self._below(value[key], below) for key in sorted(value)}
        return value

    def _names_of(self, definition: str) -> tuple[str, ...]:
        numbered: list[tuple[int, int, str]] = []
        for name, entry in self._numbers[definition].items():
            if isinstance(
                entry, tuple
            ):  # a struct within the struct, whose fields JSON shows as the outer one's
                place, inner = entry
                numbered += [
                    (place, number, each) for each, number in inner.items() if isinstance(number, int)
                ]
            else:
                numbered.append((entry, 0, name))
        names = [name for _, _, name in sorted(numbered)]
        for name, before in _MOVED.get(definition.removeprefix(_API), {}).items():
            if name in names and (not before or before in names):
                names.remove(name)
                names.insert(names.index(before) + 1 if before else 0, name)
        return tuple(names)


def _reference(schema: Mapping[str, Any]) -> str:
    for each in (schema, *(schema.get("allOf") or ())):
        if reference := each.get("$ref"):
            return str(reference).rpartition("/")[2]
    return ""
