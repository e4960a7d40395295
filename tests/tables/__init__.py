"""Outcomes of Kubernetes' own unit tests, held against ours: one module a suite. ``make tables`` prints them."""

from __future__ import annotations

from .agreement import Suite


def suites() -> list[Suite]:
    """All suites, in the order of ``make tables``."""
    from . import binary, builtin, cel_library, cel_rules, custom, definitions, managed, merges, printers

    modules = (merges, managed, cel_rules, cel_library, definitions, custom, binary, builtin, printers)
    return [module.SUITE for module in modules]
