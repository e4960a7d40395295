"""NodeRestriction: a kubelet (``system:node:NAME`` in the group ``system:nodes``) writes only what is its node's.

It creates and deletes its mirror pods, and writes the status of pods that run on its node and evicts them; of Nodes,
Leases, CSINodes, ResourceSlices and certificates it writes its own, without taints, owners and labels that decide what
is scheduled to it; it asks for tokens of its pods alone, for audiences that they use. Source: the documentation of
admission controllers, KEP-279 and KEP-5027, and answers of kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from apimachinery.access.authorization import Attributes, Chain
from apimachinery.access.node import GROUP, PREFIX
from apimachinery.access.node_relations import pod_references
from apimachinery.kinds.fields import items
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden, not_found
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

MIRROR = "kubernetes.io/config.mirror"
LEASES = "kube-node-lease"
RESTRICTED = "node-restriction.kubernetes.io"
SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
AUDIENCE_VERB = "request-serviceaccounts-token-audience"
OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
DOMAINS = ("kubernetes.io", "k8s.io")
CLAIM_STATUS = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
Check = Callable[[str, Operation], str]
"""Takes the node's name; why it may not, "" where it may."""


class NodeRestriction(Plugin):
    """Refuses what is not the node's."""

    def __init__(self, cache: WatchCache, authorizer: Chain) -> None:
        self._pods = Objects(cache, "/core/pods/")
        self._nodes = Objects(cache, "/core/nodes/")
        self._claims = Objects(cache, "/core/persistentvolumeclaims/")
        self._volumes = Objects(cache, "/core/persistentvolumes/")
        self._drivers = Objects(cache, "/storage.k8s.io/csidrivers/")
        self._authorizer = authorizer
        self._checks: dict[tuple[str, str], Check] = {
            ("", "pods"): self._pod,
            ("", "nodes"): _node,
            ("", "persistentvolumeclaims"): _claim,
            ("", "serviceaccounts"): self._account,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): _resource_slice,
            ("certificates.k8s.io", "certificatesigningrequests"): _certificate,
        }
        self.resources = frozenset(self._checks)

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403, 404."""
        user = operation.user
        if user is None or GROUP not in user.groups or operation.verb == "CONNECT":
            return
        # As with kube-apiserver, a member of the group with a name of another form is nobody's node.
        if not user.name.startswith(PREFIX):
            return
        served = operation.target.served
        if (check := self._checks.get((served.group, served.plural))) is None:
            return
        name = user.name.removeprefix(PREFIX)
        why = check(name, operation) if name else f"could not determine node from user {go_quote(user.name)}"
        if why:
            raise forbidden(served.plural, served.group, operation.name, why)

    def _pod(self, node: str, operation: Operation) -> str:
        match operation.target.subresource:
            case "":
                return self._whole_pod(node, operation)
            case "status":
                return _pod_status(node, operation)
            case "eviction":
                pod = self._existing(operation)
                if _spec(pod).get("nodeName") != node:
                    return f"node {node} can only evict pods with spec.nodeName set to itself"
                return ""
            case other:
                return (
                    f"unexpected pod subresource {go_quote(other)}, only 'status' and 'eviction' are allowed"
                )

    def _whole_pod(self, node: str, operation: Operation) -> str:
        shown = go_quote(node)
        if operation.verb == "DELETE":
            pod = operation.old if operation.old is not None else self._existing(operation)
            if _spec(pod).get("nodeName") != node:
                return f"node {shown} can only delete pods with spec.nodeName set to itself"
            return ""
        if operation.verb != "CREATE":
            verb = go_quote(operation.verb)
            return f"unexpected operation {verb}, node {shown} can only create and delete mirror pods"
        pod = operation.obj or {}
        if MIRROR not in (pod["metadata"].get("annotations") or {}):
            return f'pod does not have "{MIRROR}" annotation, node {shown} can only create mirror pods'
        if _spec(pod).get("nodeName") != node:
            return f"node {shown} can only create pods with spec.nodeName set to itself"
        if why := self._owner_fault(node, pod):
            return why
        held = next(_references(pod), "")
        return f"node {shown} can not create pods that reference {held}" if held else ""

    def _owner_fault(self, node: str, pod: Json) -> str:
        shown = go_quote(node)
        owners = pod["metadata"].get("ownerReferences") or []
        if len(owners) > 1:
            return f"node {shown} can only create pods with a single owner reference set to itself"
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            return f"node {shown} can only create pods with an owner reference set to itself"
        if not owner.get("controller"):
            return f"node {shown} can only create pods with a controller owner reference set to itself"
        if owner.get("blockOwnerDeletion"):
            return f"node {shown} must not set blockOwnerDeletion on an owner reference"
        held = self._nodes.get(node)
        if held is None:
            raise not_found("nodes", "", node)
        uid = held["metadata"]["uid"]
        if owner.get("uid") != uid:
            return f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}"
        return ""

    def _existing(self, operation: Operation, name: str = "") -> Json:
        name = name or operation.name
        pod = self._pods.get(name, operation.target.namespace)
        if pod is None:
            raise not_found("pod", "", name)
        return pod

    def _account(self, node: str, operation: Operation) -> str:
        if operation.verb != "CREATE" or operation.target.subresource != "token":
            return ""
        spec = (operation.obj or {}).get("spec") or {}
        ref = spec.get("boundObjectRef") or {}
        if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Pod") or not ref.get("name"):
            return "node requested token not bound to a pod"
        if not ref.get("uid"):
            return "node requested token with a pod binding without a uid"
        pod = self._existing(operation, str(ref["name"]))
        if ref["uid"] != pod["metadata"]["uid"]:
            return (
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        if _spec(pod).get("nodeName") != node:
            return "node requested token bound to a pod scheduled on a different node"
        return self._audience_fault(operation, pod, spec.get("audiences") or [])

    def _audience_fault(self, operation: Operation, pod: Json, audiences: list[str]) -> str:
        """A node asks for audiences that volumes of the pod name, or that it is given by name."""
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        if audience in self._audiences(pod):
            return ""
        user, target = operation.user, operation.target
        assert user is not None, "the server itself is no node"
        asked = Attributes(user, AUDIENCE_VERB, target.namespace, "", "v1", audience, "", operation.name)
        verdict = self._authorizer.settle(asked)
        if verdict is not None and verdict.allowed:
            return ""
        return (
            f"audience {go_quote(audience)} not found in pod spec volume, {user.name} is not authorized to request "
            "tokens for this audience"
        )

    def _audiences(self, pod: Json) -> Iterator[str]:
        namespace = pod["metadata"].get("namespace") or ""
        for volume in items(_spec(pod), "volumes"):
            for source in items(volume.get("projected") or {}, "sources"):
                token = source.get("serviceAccountToken")
                if token is not None:
                    yield token.get("audience") or ""
            driver = self._drivers.get(self._driver_of(pod, namespace, volume))
            for request in items(_spec(driver or {}), "tokenRequests"):
                yield request.get("audience") or ""

    def _driver_of(self, pod: Json, namespace: str, volume: Json) -> str:
        """The name of the CSI driver that a volume is from."""
        if (csi := volume.get("csi")) is not None:
            return str(csi.get("driver") or "")
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate") is not None:
            name = f"{pod['metadata']['name']}-{volume.get('name')}"
        claim = self._claims.get(name, namespace) if name else None
        held = self._volumes.get(_spec(claim).get("volumeName") or "") if claim is not None else None
        return str((_spec(held or {}).get("csi") or {}).get("driver") or "")


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}


_VOLUMES = {
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
}
_SOURCES = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
"""Volumes, and sources of projected ones, that refer to objects, and how these are called."""


def _references(pod: Json) -> Iterator[str]:
    """What a mirror pod may not refer to, which is any object, in the order in which it is refused."""
    held = {resource for resource, _ in pod_references(pod)}
    yield from (each for each in ("serviceaccounts", "secrets", "configmaps") if each in held)
    if _spec(pod).get("resourceClaims"):
        yield "resourceclaims"
    for volume in items(_spec(pod), "volumes"):
        yield from (shown for key, shown in _VOLUMES.items() if volume.get(key) is not None)
        for source in items(volume.get("projected") or {}, "sources"):
            yield from (shown for key, shown in _SOURCES.items() if source.get(key) is not None)


def _pod_status(node: str, operation: Operation) -> str:
    old, new = operation.old, operation.obj
    if operation.verb != "UPDATE" or old is None or new is None:
        return f"unexpected operation {go_quote(operation.verb)}"
    shown = go_quote(node)
    if _spec(old).get("nodeName") != node:
        return f"node {shown} can only update pod status for pods with spec.nodeName set to itself"
    if _labels(old) != _labels(new):
        return f"node {shown} cannot update labels through pod status"
    before, after = old.get("status") or {}, new.get("status") or {}
    if (before.get("resourceClaimStatuses") or []) != (after.get("resourceClaimStatuses") or []):
        return f"node {shown} cannot update resource claim statues"
    if before.get("extendedResourceClaimStatus") != after.get("extendedResourceClaimStatus"):
        return f"node {shown} cannot update extended resource claim status"
    return ""


def _node(node: str, operation: Operation) -> str:
    shown, new, old = go_quote(node), operation.obj or {}, operation.old or {}
    if operation.name != node:
        return f"node {shown} is not allowed to modify node {go_quote(operation.name)}"
    forbidden_labels = ", ".join(sorted(filter(_is_reserved, _changed(_labels(new), _labels(old)))))
    source, before = _spec(new).get("configSource"), _spec(old).get("configSource")
    if operation.verb == "CREATE":
        if source is not None:
            return f"node {shown} is not allowed to create pods with a non-nil configSource"
        if forbidden_labels:
            return f"node {shown} is not allowed to set the following labels: {forbidden_labels}"
    if operation.verb == "UPDATE":
        if source is not None and source != before:
            return f"node {shown} is not allowed to update configSource to a new non-nil configSource"
        if (_spec(new).get("taints") or []) != (_spec(old).get("taints") or []):
            return f"node {shown} is not allowed to modify taints"
        if _owners(new) != _owners(old):
            return f"node {shown} is not allowed to modify ownerReferences"
        if forbidden_labels:
            return f"is not allowed to modify labels: {forbidden_labels}"
    return ""


def _labels(obj: Json) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _owners(obj: Json) -> list[Json]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def _changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {key for key, _ in one.items() ^ other.items()}


def _is_within(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


def _is_reserved(key: str) -> bool:
    """Whether a label of a node is none that its kubelet may set."""
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    if _is_within(domain, (RESTRICTED,)):
        return True
    return _is_within(domain, DOMAINS) and key not in OWN_LABELS and not _is_within(domain, OWN_DOMAINS)


def _claim(node: str, operation: Operation) -> str:
    if operation.target.subresource != "status":
        return "may only update PVC status"
    if operation.verb != "UPDATE":
        return f"unexpected operation {go_quote(operation.verb)}"
    if _fixed(operation.old or {}) == _fixed(operation.obj or {}):
        return ""
    return f"node {go_quote(node)} is not allowed to update fields other than status.quantity and status.conditions"


def _fixed(claim: Json) -> Json:
    """What a node may not change of a claim."""
    metadata = {
        key: value
        for key, value in claim["metadata"].items()
        if key not in ("resourceVersion", "managedFields")
    }
    status = {key: value for key, value in (claim.get("status") or {}).items() if key not in CLAIM_STATUS}
    return {"metadata": metadata, "spec": claim.get("spec"), "status": status}


def _lease(node: str, operation: Operation) -> str:
    if operation.target.namespace != LEASES:
        return f'can only access leases in the "{LEASES}" system namespace'
    if operation.name != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


def _csi_node(node: str, operation: Operation) -> str:
    return (
        "" if operation.name == node else "can only access CSINode with the same name as the requesting node"
    )


def _resource_slice(node: str, operation: Operation) -> str:
    # Others' updates are for the Node authorizer to refuse, which does not see what is created or which of a
    # collection is deleted.
    obj = {"CREATE": operation.obj, "DELETE": operation.old}.get(operation.verb)
    if obj is None or _spec(obj).get("nodeName") == node:
        return ""
    return f"can only {operation.verb.lower()} ResourceSlice with the same NodeName as the requesting node"


def _certificate(node: str, operation: Operation) -> str:
    spec = _spec(operation.obj or {})
    if operation.verb != "CREATE" or spec.get("signerName") not in SIGNERS:
        return ""
    from apimachinery.access.certificates import BadRequestForCertificate, name_of_request

    try:
        name = name_of_request(spec.get("request"))
    except BadRequestForCertificate:
        return "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"
    wanted = f"{PREFIX}{node}"
    return "" if name == wanted else f"can only create a node CSR with CN={wanted}"
