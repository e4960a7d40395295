"""Loops that run in the process: the namespace life cycle and garbage collection."""
