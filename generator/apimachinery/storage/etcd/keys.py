"""Where keys lie in etcd: as kube-apiserver lays them out, so that either can read what the other wrote.

    /core/pods/NS/NAME                    PREFIX/pods/NS/NAME
    /apps/deployments/NS/NAME             PREFIX/deployments/NS/NAME
    /core/services/NS/NAME                PREFIX/services/specs/NS/NAME
    /example.com/widgets/NS/NAME          PREFIX/example.com/widgets/NS/NAME

    /sales/orders/NS/NAME                 PREFIX/.sales/orders/NS/NAME

Kubernetes' own resources are kept without their group, a few under an older name, two with it. A group without a dot,
which no CRD can have, is told from a resource by a dot before it. Within a resource the
order of keys is the same on both sides; across resources it is not.
"""

from __future__ import annotations

_WITHOUT_GROUP = {
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
_OLDER_NAMES = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_PLACES = {
    f"/{group}/{resource}/": f"/{_OLDER_NAMES.get(resource, resource)}/"
    for group, resources in _WITHOUT_GROUP.items()
    for resource in resources.split()
}
_PREFIXES = {place: prefix for prefix, place in _PLACES.items()}


class Keys:
    """The keys below a prefix of etcd, which has no last slash."""

    def __init__(self, prefix: str) -> None:
        self._root = prefix
        self.start = f"{prefix}/".encode()
        self.end = f"{prefix}0".encode()  # "0" follows "/"
        self.barrier = f"{prefix}/.kubewright/barrier".encode()

    def to_etcd(self, key: str) -> bytes:
        """Where a key, or the prefix of a whole resource or namespace, lies."""
        resource = key[: key.index("/", key.index("/", 1) + 1) + 1]
        place = _PLACES.get(resource)
        if place is None:
            place = resource if "." in resource else f"/.{resource[1:]}"
        return f"{self._root}{place}{key[len(resource) :]}".encode()

    def from_etcd(self, key: bytes) -> str | None:
        """The key that lies somewhere; None for what is no object of a resource: counters, barriers, what others
        keep below the same prefix."""
        try:
            path = key[len(self._root) :].decode()
        except UnicodeDecodeError:
            return None
        first = path.find("/", 1)
        second = path.find("/", first + 1)
        if first < 0:
            return None
        if "." in path[1:first]:
            if second <= first + 1 or len(path) == second + 1:
                return None
            return f"/{path[2:]}" if path[1] == "." else path
        found = _PREFIXES.get(path[: first + 1])
        rest = path[first + 1 :]
        if found is None:
            found = _PREFIXES.get(path[: second + 1])
            rest = path[second + 1 :]
        return found + rest if found is not None and rest else None


def key_range(start: bytes) -> tuple[bytes, bytes]:
    """The range of all keys that begin with ``start``."""
    return start, start[:-1] + bytes([start[-1] + 1])
