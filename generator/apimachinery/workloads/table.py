"""The workload controllers, by their names of kube-controller-manager."""

from __future__ import annotations

from . import deployments, replicasets
from .interface import Workload

WORKLOADS: dict[str, Workload] = {
    "deployment": deployments.WORKLOAD,
    "replicaset": replicasets.REPLICA_SETS,
    "replicationcontroller": replicasets.REPLICATION_CONTROLLERS,
}
