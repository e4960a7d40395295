"""What owners do with dependents that somebody else has changed since they were seen."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from apimachinery.meta.selectors import selector_of
from apimachinery.workloads.interface import Change, ClusterView
from apimachinery.workloads.owners import claim

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "1"}}
OURS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
OTHERS = {**OURS, "name": "other", "uid": "2"}
NOT_CONTROLLED = {**OTHERS, "controller": False}


class Changed:
    """A cluster that has an object with other references than those that were seen."""

    def __init__(self, references: Any) -> None:
        self.present: dict[str, Any] = {"metadata": {"name": "p"}}
        if references is not ...:
            self.present["metadata"]["ownerReferences"] = references
        self.written: Any = ...

    async def update(self, resource: str, obj: Any, change: Change, subresource: str = "") -> Any:
        made = change(self.present)
        self.written = None if made is None else made["metadata"]["ownerReferences"]
        return made or self.present


@pytest.mark.parametrize(
    ("seen", "labels", "present", "written"),
    [
        ([OURS], {}, [OURS], []),
        ([OURS], {}, [NOT_CONTROLLED, OURS], [NOT_CONTROLLED]),
        ([OURS], {}, [OTHERS], None),
        ([OURS], {}, [], None),
        ([OURS], {}, None, None),
        ([OURS], {}, ..., None),
        ([], {"app": "web"}, ..., [OURS]),
        ([], {"app": "web"}, None, [OURS]),
        ([], {"app": "web"}, [NOT_CONTROLLED], [NOT_CONTROLLED, OURS]),
        ([], {"app": "web"}, [OTHERS], None),
    ],
)
def test_a_dependent_that_changed_since(
    seen: Any, labels: dict[str, str], present: Any, written: Any
) -> None:
    cluster = Changed(present)
    pod = {"metadata": {"name": "p", "labels": labels, "ownerReferences": seen}}
    selects = selector_of({"matchLabels": {"app": "web"}})
    asyncio.run(claim(cast(ClusterView, cluster), "pods", OWNER, [pod], selects))
    told = cluster.written
    if isinstance(told, list):
        told = [{key: value for key, value in each.items() if key != "blockOwnerDeletion"} for each in told]
    assert told == written
