"""A frozen record of the IR as the call that makes the runtime's record of the same name."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from kubewright.emit.code.render import CallText
from kubewright.ir.api import PrinterColumn, Subresource

UNSAID = frozenset({"location", "manifest", "stored", "implied"})
"""Fields that no server asks for: the runtime's record has none of them."""
_CALLS: dict[type, str] = {Subresource: "Subresource", PrinterColumn: "PrinterColumn"}


def call(name: str, node: Any, documentation: bool) -> CallText:
    """The constructor call of ``node``; what equals the default is left out, and what no server asks: places, prose,
    the rest of the manifest."""
    arguments: list[tuple[str, Any]] = []
    for item in fields(node):
        value = getattr(node, item.name)
        if item.name in UNSAID or (item.default is not MISSING and value == item.default):
            continue
        if item.name == "description" and not documentation:
            continue
        if isinstance(value, tuple):
            value = tuple(
                call(_CALLS[type(part)], part, documentation) if type(part) in _CALLS else part
                for part in value
            )
        arguments.append((item.name, value))
    return CallText(name, tuple(arguments))
