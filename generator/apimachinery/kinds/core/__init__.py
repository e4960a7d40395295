"""The core group: Pods, Services, Nodes, volumes, quotas and the like: checks, table cells, warnings."""
