"""Stored roles and bindings that no rule of theirs would have let in, for whoever reads them.

Another program, or a version of this one that did not look, may have written them. They give nobody anything, and must
not keep the server from starting.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from apimachinery.wire.json import DecodeFault, decode

log = logging.getLogger("kubewright.server.rbac")


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Expression(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(msgspec.Struct):
    labels: dict[str, str] | None = msgspec.field(name="matchLabels", default=None)
    expressions: list[_Expression] | None = msgspec.field(name="matchExpressions", default=None)


class _Aggregation(msgspec.Struct):
    selectors: list[_Selector] | None = msgspec.field(name="clusterRoleSelectors", default=None)


class _Shape(msgspec.Struct):
    metadata: _Metadata
    rules: list[dict[str, list[str] | None]] | None = None
    aggregation: _Aggregation | None = msgspec.field(name="aggregationRule", default=None)
    role: dict[str, str] | None = msgspec.field(name="roleRef", default=None)
    subjects: list[dict[str, str]] | None = None


_decode_shape = msgspec.json.Decoder(_Shape).decode


def fault_of(value: bytes) -> str:
    """What is malformed about a stored role or binding; empty for nothing."""
    try:
        _decode_shape(value)
    except (msgspec.MsgspecError, RecursionError) as fault:
        return str(fault)
    return ""


def decoded(value: bytes) -> Any:
    """What is stored; None where it is no JSON."""
    try:
        return decode(value)
    except (DecodeFault, RecursionError):
        return None


def report(kind: str, namespace: str, name: str, fault: str) -> None:
    """Says in the log that a stored object is malformed."""
    log.warning(
        "a stored role or binding is malformed: what cannot be read of it gives nobody anything",
        extra={"kind": kind, "object": f"{namespace}/{name}" if namespace else name, "fault": fault},
    )
