"""What a killed run left behind: CRDs, namespaces and objects of cluster scope, known by a mark in their names."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterator
from typing import Any

from tests.differential.draw.kinds import BUILTIN
from tests.differential.play import CRDS, Side

MARK = "dfr"  # every run's suffix begins with it
_MARKED = re.compile(rf"\b{MARK}\d{{5}}")
_NAMESPACES = "/api/v1/namespaces"


def clear(side: Side, older_than: float = 0) -> int:
    """Deletes what bears a run's mark and is older than that many seconds; how many objects that were."""
    count = 0
    for path, obj in list(_marked(side)):
        if time.time() - _created(obj) < older_than:
            continue
        count += 1
        name = obj["metadata"]["name"]
        if path == CRDS:
            side.remove_definition(name)
        elif path == _NAMESPACES:
            side.end_namespace(name)
        else:
            side.remove(f"{path}/{name}")
    return count


def _created(obj: dict[str, Any]) -> float:
    return timegm(time.strptime(obj["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ"))


def _marked(side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    paths = [each.collection() for each in BUILTIN if each.cluster and each.kind != "Namespace"]
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    for path in [*dict.fromkeys(paths), _NAMESPACES, CRDS]:
        found = side.server.ask({"method": "GET", "path": path, "headers": accept})["body"]
        for obj in (found.get("items") if isinstance(found, dict) else None) or ():
            if _MARKED.search(obj["metadata"]["name"]):
                yield path, obj
