"""The workload controllers, by their names of kube-controller-manager."""

from __future__ import annotations

from . import (
    cronjobs,
    daemonsets,
    deployments,
    disruption,
    endpointslices,
    jobs,
    mirroring,
    nodes,
    replicasets,
    scaling,
    statefulsets,
)
from .interface import Workload


def workloads() -> dict[str, tuple[Workload, ...]]:
    """Those of one server."""
    return {
        "deployment": (deployments.WORKLOAD,),
        "replicaset": (replicasets.REPLICA_SETS,),
        "replicationcontroller": (replicasets.REPLICATION_CONTROLLERS,),
        "statefulset": (statefulsets.WORKLOAD,),
        "daemonset": (daemonsets.WORKLOAD,),
        "job": (jobs.WORKLOAD, jobs.ORPHANS),
        "ttl-after-finished": (jobs.EXPIRY,),
        "cronjob": (cronjobs.WORKLOAD,),
        "endpointslice": (endpointslices.SLICES_WORKLOAD,),
        "endpoint": (endpointslices.ENDPOINTS_WORKLOAD, endpointslices.ENDPOINTS_COLLECTION),
        "endpointslicemirroring": (mirroring.WORKLOAD,),
        "horizontalpodautoscaling": (scaling.workload(),),
        "disruption": (disruption.WORKLOAD,),
        "nodelifecycle": (nodes.lifecycle(),),
        "taint-eviction": (nodes.EVICTION,),
        "podgc": (nodes.COLLECTION,),
    }
