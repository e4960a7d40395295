"""Roles and bindings: checks."""
