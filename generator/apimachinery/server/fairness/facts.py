"""The FlowSchemas and priority levels that a cluster starts with, with kube-apiserver's specs (v1.36).

The mandatory ones are kept as they are; the suggested ones follow a new release unless somebody has annotated them
otherwise (``apf.kubernetes.io/autoupdate-spec: "false"``).
"""

from __future__ import annotations

from typing import Any

GROUP = "flowcontrol.apiserver.k8s.io"
VERSION = "v1"  # the version of the specs below
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
MANDATORY = frozenset({"exempt", "catch-all"})
Json = dict[str, Any]


def _limited(shares: int, lendable: int, queues: tuple[int, int, int] | None) -> Json:
    response: Json = {"type": "Reject"}
    if queues is not None:
        number, hand, length = queues
        response = {
            "type": "Queue",
            "queuing": {"queues": number, "handSize": hand, "queueLengthLimit": length},
        }
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


LEVELS: dict[str, Json] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": _limited(5, 0, None),
    "system": _limited(30, 33, (64, 6, 50)),
    "node-high": _limited(40, 25, (64, 6, 50)),
    "leader-election": _limited(10, 0, (16, 4, 50)),
    "workload-high": _limited(40, 50, (128, 6, 50)),
    "workload-low": _limited(100, 90, (128, 6, 50)),
    "global-default": _limited(20, 50, (128, 6, 50)),
}

_ALL_RESOURCES: Json = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_ALL_PATHS: Json = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _group(name: str) -> Json:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Json:
    return {"kind": "User", "user": {"name": name}}


_EVERYBODY = [_group("system:unauthenticated"), _group("system:authenticated")]
_SYSTEM_ACCOUNTS: Json = {
    "kind": "ServiceAccount",
    "serviceAccount": {"namespace": "kube-system", "name": "*"},
}


def _schema(
    level: str,
    precedence: int,
    distinguisher: str,
    subjects: list[Json],
    resources: list[Json] | None = None,
    paths: list[Json] | None = None,
) -> Json:
    rule: Json = {"subjects": subjects}
    if resources:
        rule["resourceRules"] = resources
    if paths:
        rule["nonResourceRules"] = paths
    spec: Json = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    }
    if distinguisher:
        spec["distinguisherMethod"] = {"type": distinguisher}
    return spec


def _all(level: str, precedence: int, distinguisher: str, *subjects: Json) -> Json:
    return _schema(level, precedence, distinguisher, list(subjects), [_ALL_RESOURCES], [_ALL_PATHS])


_LEASES: Json = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
SCHEMAS: dict[str, Json] = {
    "exempt": _all("exempt", 1, "", _group("system:masters")),
    "catch-all": _all("catch-all", 10000, "ByUser", *_EVERYBODY),
    "probes": _schema(
        "exempt", 2, "", _EVERYBODY,
        paths=[{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}],
    ),
    "system-leader-election": _schema(
        "leader-election", 100, "ByUser",
        [_user("system:kube-controller-manager"), _user("system:kube-scheduler"), _SYSTEM_ACCOUNTS],
        [{"verbs": ["get", "create", "update"], **_LEASES}],
    ),
    "system-node-high": _schema(
        "node-high", 400, "ByUser", [_group("system:nodes")],
        [
            {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": True,
             "namespaces": ["*"]},
            {"verbs": ["*"], **_LEASES},
        ],
    ),
    "system-nodes": _all("system", 500, "ByUser", _group("system:nodes")),
    "kube-controller-manager": _all("workload-high", 800, "ByNamespace", _user("system:kube-controller-manager")),
    "kube-scheduler": _all("workload-high", 800, "ByNamespace", _user("system:kube-scheduler")),
    "kube-system-service-accounts": _all("workload-high", 900, "ByNamespace", _SYSTEM_ACCOUNTS),
    "service-accounts": _all("workload-low", 9000, "ByUser", _group("system:serviceaccounts")),
    "global-default": _all("global-default", 9900, "ByUser", *_EVERYBODY),
}  # fmt: skip
