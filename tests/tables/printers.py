"""Table rows of built-in kinds. Ages are counted from when a line was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

from apimachinery.kinds.hooks import Hooks
from apimachinery.server.answer.table import Columns, columns_of
from apimachinery.server.catalog.family import BUILT_IN
from kubernetes_api.registry import GROUP_VERSIONS

from .agreement import VALUE, VERDICT, Answer, Line, Suite

_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z"')
_RECORDED = datetime.fromisoformat("2026-11-22T05:34:34.990+00:00").timestamp()
_TOOK = 10.0


@cache
def _columns(api_version: str, kind: str) -> Columns | None:
    if api_version not in GROUP_VERSIONS:
        return None
    resources = import_module(f"kubernetes_api.{GROUP_VERSIONS[api_version]}.resources").RESOURCES
    for resource in resources:
        if resource.kind == kind:
            return columns_of(SimpleNamespace(family=BUILT_IN, resource=resource, kind=kind, hooks=Hooks()))  # type: ignore[arg-type]
    return None


def _moment(obj: Any) -> float:
    """When a line was recorded: what its test wrote as now."""
    import json

    times = (datetime.fromisoformat(each + "+00:00").timestamp() for each in _TIME.findall(json.dumps(obj)))
    late = [each for each in times if _RECORDED < each < _RECORDED + _TOOK]
    return max(late) + 0.99 if late else _RECORDED


def row(line: Line) -> Iterator[Answer]:
    """The cells; columns shown only on request are compared where the row has them."""
    obj = line["obj"]
    columns = _columns(obj["apiVersion"], obj["kind"])
    if columns is None or line["kind"] == "Status":
        return
    wanted = line["rows"][0]
    with mock.patch("time.time", lambda: _moment(obj)):
        ours = columns.cells(obj)
    if len(wanted) < len(ours):
        kept = [index for index, each in enumerate(columns.definitions) if not each["priority"]]
        ours = [ours[index] for index in kept]
    yield Answer(VERDICT, len(wanted), len(ours))
    yield Answer(VALUE, wanted, ours)


SUITE = Suite("printers", ("printers.jsonl",), {"print": row})
