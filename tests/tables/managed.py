"""Managed fields: an update or an apply of a built-in kind, and the entries after it. Times are not compared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.errors import MergeError
from apimachinery.merge.package import package_types
from kubernetes_api.registry import GROUP_VERSIONS

from .agreement import TEXT, VALUE, VERDICT, Answer, Line, Suite


@cache
def _definition(api_version: str, kind: str) -> str:
    module = import_module(f"kubernetes_api.{GROUP_VERSIONS[api_version]}.merge_schema")
    return next(name for name in module.TYPES if name.rpartition(".")[2] == kind)


def _ownership(line: Line) -> FieldOwnership:
    group, version, kind = line["gvk"].split("|")
    api_version = f"{group}/{version}" if group else version
    type_ = package_types("kubernetes_api").named(_definition(api_version, kind))
    return FieldOwnership(api_version=api_version, kind=kind, type=type_, subresource=line["sub"])


def _timeless(obj: Any) -> Any:
    if not isinstance(obj, dict):
        return obj
    metadata = dict(obj.get("metadata") or {})
    entries = [
        {key: item for key, item in entry.items() if key != "time"}
        for entry in metadata.pop("managedFields", ())
    ]
    if entries:
        metadata["managedFields"] = entries
    shown = {key: item for key, item in obj.items() if key != "metadata"}
    return {**shown, "metadata": metadata} if metadata else shown


def _moment(line: Line) -> str:
    """When the line was recorded: entries are in order of their times."""
    entries = ((line.get("out") or {}).get("metadata") or {}).get("managedFields") or ()
    return max((entry["time"] for entry in entries if entry.get("time")), default="2026-01-01T00:00:00Z")


def _changed(line: Line) -> Iterator[Answer]:
    ownership, ours, error = _ownership(line), None, None
    now = _moment(line)
    try:
        if line["op"] == "fmapply":
            ours = ownership.apply(line["live"], line["obj"], line["manager"], force=line["force"], now=now)
        else:
            ours = ownership.update(line["live"], line["obj"], line["manager"], now=now)
    except MergeError as raised:
        error = raised.message
    yield Answer(VERDICT, line["err"] is not None, error is not None)
    yield Answer(TEXT, line["err"], error)
    if line["err"] is None and error is None:
        yield Answer(VALUE, _timeless(line["out"]), _timeless(ours))


SUITE = Suite("managed-fields", ("managedfields*.jsonl",), {"fmupdate": _changed, "fmapply": _changed})
