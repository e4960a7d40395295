"""Holds two Kubernetes-style API servers against each other: the same conversations to both, their answers compared."""
