"""The order of built-in group-versions, as the numbers that kube-apiserver writes into their APIServices."""

from __future__ import annotations

CUSTOM_GROUP, CUSTOM_VERSION = 1000, 100
"""Those of CustomResourceDefinitions."""
OWN_GROUP = 20000
"""Discovery lists the group of APIServices itself before all others."""
_GROUPS = {
    "": 18000,
    "apiregistration.k8s.io": OWN_GROUP,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
    "lifecycle.k8s.io": 15700,
}
_VERSIONS = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("autoscaling", "v2beta2"): 1,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("flowcontrol.apiserver.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1beta2"): 18,
    ("resource.k8s.io", "v1beta1"): 15,
    ("coordination.k8s.io", "v1beta1"): 13,
    ("coordination.k8s.io", "v1alpha2"): 12,
    ("certificates.k8s.io", "v1beta1"): 9,
    ("storagemigration.k8s.io", "v1beta1"): 9,
}


def group_priority(name: str, given: int) -> int:
    """A group's number; ``given`` is what its package says, for groups that are not Kubernetes' own."""
    return _GROUPS.get(name, min(max(given, 1), OWN_GROUP))


def version_priority(group: str, version: str) -> int:
    """A version's number in its group: stable 15, beta 12, alpha 9, but for those that differ."""
    by_stage = 9 if "alpha" in version else 12 if "beta" in version else 15
    return _VERSIONS.get((group, version), by_stage)
