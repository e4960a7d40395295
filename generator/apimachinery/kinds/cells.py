"""The computed cells of built-in kinds' tables, as kubectl's users know them.

A cell is a dotted path with the text for nothing (``at``), or a function of the object. Tables are by kind and column;
a column that is not here is empty, except for Name and the ages.
"""

from __future__ import annotations

from apimachinery.kinds.admissionregistration.policy_cells import POLICY
from apimachinery.kinds.apps.workload_cells import WORKLOADS
from apimachinery.kinds.autoscaling.autoscaler_cells import AUTOSCALER
from apimachinery.kinds.cell import Cell, at, count_at
from apimachinery.kinds.core.node_cells import NODES
from apimachinery.kinds.core.pod_cells import POD
from apimachinery.kinds.networking.network_cells import NETWORK
from apimachinery.kinds.storage.storage_cells import STORAGE

_KINDS: dict[str, dict[str, Cell]] = {
    "ConfigMap": {"Data": count_at("data", "binaryData")},
    "HorizontalPodAutoscaler": AUTOSCALER,
    "Namespace": {"Status": at("status.phase")},
    "Pod": POD,
    "Secret": {"Type": at("type"), "Data": count_at("data")},
    **WORKLOADS,
    **NETWORK,
    **STORAGE,
    **NODES,
    **POLICY,
}
_KINDS["ClusterRoleBinding"] = _KINDS["RoleBinding"]
CELLS: dict[tuple[str, str], Cell] = {
    (kind, column): cell for kind, cells in _KINDS.items() for column, cell in cells.items()
}
