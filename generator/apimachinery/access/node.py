"""The ``Node`` authorizer: what a kubelet (user ``system:node:NAME`` in group ``system:nodes``) may do.

Of objects that other workloads own a node may only read those that its pods need (``node_relations``); of its own Node,
Lease and CSINode it may do what its work asks for; anything else is decided by the rules of the role ``system:node``.
Whatever else it writes (labels of its Node, status of pods) is the admission plugin NodeRestriction's to limit.

It allows or has no opinion; texts are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Callable

from apimachinery.access.authorization import (
    ALLOWED,
    NO_OPINION,
    Attributes,
    Rules,
    Verdict,
)
from apimachinery.access.bootstrap import read_rule
from apimachinery.access.bootstrap_roles import CLUSTER_ROLES
from apimachinery.access.node_relations import NodeRelations
from apimachinery.access.rbac_rules import read_rules
from apimachinery.http.messages import User
from apimachinery.storage.watch_cache import WatchCache

GROUP, PREFIX = "system:nodes", "system:node:"
LEASES = "kube-node-lease"
_WRITES_OWN = frozenset({"get", "create", "update", "patch", "delete"})
_Decide = Callable[["NodeAuthorizer", str, Attributes], Verdict]


def node_of(user: User) -> str | None:
    """The name of a node, empty for one without, None for another user."""
    # The name alone does not make a node: anybody could be given a user of that name.
    if not user.name.startswith(PREFIX) or GROUP not in user.groups:
        return None
    return user.name.removeprefix(PREFIX)


def _no(reason: str) -> Verdict:
    return Verdict(reason=reason)


class NodeAuthorizer:
    """Decides for kubelets."""

    def __init__(self, cache: WatchCache) -> None:
        self._relations = NodeRelations(cache)
        self._rules = read_rules([read_rule(text) for text in CLUSTER_ROLES["system:node"]])

    def decide(self, attributes: Attributes) -> Verdict:
        node = node_of(attributes.user)
        if node is None:
            return NO_OPINION
        # A kubelet without a name would match every object without a node.
        if not node:
            return _no(f'unknown node for user "{attributes.user.name}"')
        if attributes.is_resource:
            decide = _BY_RESOURCE.get((attributes.group, attributes.resource))
            if decide is not None:
                return decide(self, node, attributes)
        return ALLOWED if any(rule.allows(attributes) for rule in self._rules) else NO_OPINION

    async def ask(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)

    def rules_for(self, user: User, namespace: str) -> Rules:
        """See ListsRules: what a node may do depends on its pods."""
        del namespace
        if node_of(user) is None:
            return Rules([], [])
        return Rules([], [], True, "node authorizer does not support user rule resolution")

    def _related(self, node: str, attributes: Attributes) -> Verdict:
        if not attributes.name:
            return _no("No Object name found")
        known = self._relations.related(node, attributes.resource, attributes.namespace, attributes.name)
        return ALLOWED if known else _no(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._related(node, attributes)

    def _read(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.verb not in ("get", "list", "watch"):
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, attributes)

    def _token(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.verb not in _WRITES_OWN:
            return _no("can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != LEASES:
            return _no(f'can only access leases in the "{LEASES}" system namespace')
        # On create there is no name in the path; NodeRestriction checks the one in the body.
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return ALLOWED

    def _csi_node(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.verb not in _WRITES_OWN:
            return _no("can only get, create, update, patch, or delete a CSINode")
        if attributes.subresource:
            return _no("cannot authorize CSINode subresources")
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return ALLOWED

    def _slice(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return ALLOWED
            case "get" | "update" | "patch" | "delete":
                return self._related(node, attributes)
            # Without the selector it would see the slices of all nodes.
            case "list" | "watch" | "deletecollection":
                if _selects(attributes, "spec.nodeName", node):
                    return ALLOWED
                return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
            "delete, deletecollection"
        )

    def _node(self, node: str, attributes: Attributes) -> Verdict:
        verb, name = attributes.verb, attributes.name
        if attributes.subresource == "status":
            return ALLOWED if verb in ("update", "patch") else NO_OPINION
        if attributes.subresource:
            return NO_OPINION
        if verb in ("create", "update", "patch"):
            return ALLOWED
        if verb not in ("get", "list", "watch"):
            return NO_OPINION
        if name == node:
            return ALLOWED
        if not name:
            return _no(f"node '{node}' cannot read all nodes, only its own Node object")
        return _no(f"node '{node}' cannot read '{name}', only its own Node object")

    def _pod(self, node: str, attributes: Attributes) -> Verdict:
        verb = attributes.verb
        match attributes.subresource:
            case "":
                if verb == "get":
                    return self._get(node, attributes)
                if verb in ("list", "watch"):
                    if _selects(attributes, "spec.nodeName", node):
                        return ALLOWED
                    if attributes.name:
                        return self._related(node, attributes)
                    return _no("can only list/watch pods with spec.nodeName field selector")
                return ALLOWED if verb in ("create", "delete") else NO_OPINION
            case "status":
                return ALLOWED if verb in ("update", "patch") else NO_OPINION
            case "eviction":
                return ALLOWED if verb == "create" else NO_OPINION
        return NO_OPINION


def _selects(attributes: Attributes, field: str, value: str) -> bool:
    """Whether a request asks only for objects with this value of a field."""
    return any(
        key == field and operator == "In" and values == (value,)
        for key, operator, values in attributes.field_selector or ()
    )


_BY_RESOURCE: dict[tuple[str, str], _Decide] = {
    ("", "secrets"): NodeAuthorizer._read,
    ("", "configmaps"): NodeAuthorizer._read,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claim,
    ("", "persistentvolumes"): NodeAuthorizer._get,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._get,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._get,
    ("", "serviceaccounts"): NodeAuthorizer._token,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csi_node,
    ("resource.k8s.io", "resourceslices"): NodeAuthorizer._slice,
    ("", "nodes"): NodeAuthorizer._node,
    ("", "pods"): NodeAuthorizer._pod,
}
