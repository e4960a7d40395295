"""The computed cells of built-in kinds' tables, as kubectl's users know them.

A cell is a dotted path with the text for nothing (``at``), or a function of the object. Tables are by kind and column;
a column that is not here is empty, except for Name and the ages.
"""

from __future__ import annotations

from apimachinery.server.answer.autoscaler_cells import AUTOSCALER
from apimachinery.server.answer.cell import Cell, at, count_at
from apimachinery.server.answer.network_cells import NETWORK
from apimachinery.server.answer.node_cells import NODES
from apimachinery.server.answer.pod_cells import POD
from apimachinery.server.answer.policy_cells import POLICY
from apimachinery.server.answer.storage_cells import STORAGE
from apimachinery.server.answer.workload_cells import WORKLOADS

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
