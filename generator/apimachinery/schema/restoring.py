"""Faults of decoding as the converter from untyped values says them, which reads strategic patches.

Source: the converter of unstructured content in k8s.io/apimachinery. It names what it was given by the kind
of its Go value and says neither where that is nor, mostly, which type it was for.
"""

from __future__ import annotations

from typing import Any

from apimachinery.schema.decoding import Mismatch

_RESTORED = {"struct": "struct from:", "map": "map from", "slice": "slice from"}


def restored(fault: str) -> str:
    """A decoder's fault as the converter from untyped values says it, which reads strategic patches."""
    if fault.startswith("illegal base64"):
        return f"error decoding from json: {fault}"
    if not isinstance(fault, Mismatch):
        return fault
    given = _go_kind(fault.value)
    if fault.form in _RESTORED:
        return f"cannot restore {_RESTORED[fault.form]} {given}"
    # Go can make a text of an integer and an integer of a fraction, which JSON then may not.
    if (given == "int64" and fault.form == "string") or (given == "float64" and "int" in fault.form):
        return f"cannot convert {given} to {fault.wanted}"
    return f"unrecognized type: {fault.form}"


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "float64"
    if isinstance(value, float):
        return "float64"
    return "map" if isinstance(value, dict) else "slice" if isinstance(value, list) else "string"
