"""Where objects are kept: the one place that makes keys of resources and reads them back.

    /core/pods/NS/NAME                       a kind of a package: Kubernetes' own, or one that was generated
    /custom:example.com/widgets/NS/NAME      a kind of a CustomResourceDefinition

Anybody who may write a definition chooses its group and its plural. So custom objects have keys of their own, which no
group makes equal to a package's: no group has a colon. In storage itself (the key, or the place in etcd) the two are
apart; what encrypted values are bound to and chosen by is the group and the resource, the same for both.
"""

from __future__ import annotations

from typing import NamedTuple

CUSTOM = "custom:"
_CORE = "core"
_KIND_FIRST, _API_VERSION_FIRST = b'{"kind":', b'{"apiVersion":'

_NAMES = {
    "admissionregistration.k8s.io": (
        "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations "
        "validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations"
    ),
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "certificates.k8s.io": "certificatesigningrequests clustertrustbundles podcertificaterequests",
    "coordination.k8s.io": "leasecandidates leases",
    "core": (
        "configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods "
        "podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services"
    ),
    "discovery.k8s.io": "endpointslices",
    "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
    "internal.apiserver.k8s.io": "storageversions",
    "networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "resource.k8s.io": (
        "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourcepoolstatusrequests resourceslices"
    ),
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": (
        "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses"
    ),
    "storagemigration.k8s.io": "storageversionmigrations",
}
WITHOUT_GROUP = {group: tuple(names.split()) for group, names in _NAMES.items()}
"""Kubernetes' own resources by group, but for those..."""
WITH_GROUP = (
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
)
"""...whose key in etcd has their group."""


class KeyParts(NamedTuple):
    """What a key says of its object: the resource, and whether a definition made it."""

    group: str
    plural: str
    custom: bool


def package_prefix(group: str, plural: str) -> str:
    """How the keys of a package's resource begin."""
    return f"/{group or _CORE}/{plural}/"


def custom_prefix(group: str, plural: str) -> str:
    """How the keys of a CustomResourceDefinition's resource begin."""
    return f"/{CUSTOM}{group}/{plural}/"


def place_of(key: str) -> KeyParts:
    """The resource of a key. Raises ValueError for what is none."""
    _, group, plural, _ = key.split("/", 3)
    if group.startswith(CUSTOM):
        return KeyParts(group.removeprefix(CUSTOM), plural, True)
    return KeyParts("" if group == _CORE else group, plural, False)


def is_reserved(group: str) -> bool:
    """Whether a package cannot have a group of that name, as its keys would be those of others."""
    return group == _CORE or ":" in group or "/" in group


def is_kubernetes(group: str, plural: str) -> bool:
    """Whether a resource is Kubernetes' own."""
    return (group, plural) in WITH_GROUP or plural in WITHOUT_GROUP.get(group or _CORE, ())


def bound_place(key: str) -> str:
    """What the encrypted value of a key is bound to: the object's group, resource and names."""
    return f"/{key[1 + len(CUSTOM) :]}" if key.startswith(f"/{CUSTOM}") else key


def written_as_custom(stored: bytes) -> bool | None:
    """Whether the JSON of an object was written as a custom one, by the order of its first fields; None where they do
    not say."""
    if stored.startswith(_API_VERSION_FIRST):
        return True
    return False if stored.startswith(_KIND_FIRST) else None
