"""Stands for pytest-kind: the cluster of kr8s' tests is a server of ours."""
