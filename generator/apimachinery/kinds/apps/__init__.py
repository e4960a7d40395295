"""Deployments, ReplicaSets, StatefulSets, DaemonSets: checks and table cells."""
