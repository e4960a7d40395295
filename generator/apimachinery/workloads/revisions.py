"""ControllerRevisions: the templates that a StatefulSet or DaemonSet had, by number."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from apimachinery.meta.json import Json

from .interface import ClusterView
from .owners import claim, reference_to, selector
from .pods import template_hash

REVISIONS = "controllerrevisions.apps"
HASH = "controller-revision-hash"


async def revisions_of(cluster: ClusterView, owner: Json) -> list[Json]:
    """The revisions of an owner, oldest first."""
    present = cluster.objects(REVISIONS, owner["metadata"]["namespace"])
    claimed = await claim(cluster, REVISIONS, owner, present, selector(owner))
    return sorted(claimed, key=lambda each: (each["revision"], each["metadata"]["name"]))


async def newest(cluster: ClusterView, owner: Json, present: list[Json], label: str) -> Json:
    """The revision of an owner's template, made where there is none; ``label`` is where its hash goes. One that was
    left and taken again becomes the newest."""
    template = owner["spec"]["template"]
    data = _in_order({"spec": {"template": {**template, "$patch": "replace"}}})
    number = max((each["revision"] for each in present), default=0)
    for each in reversed(present):
        if each.get("data") == data:
            if each["revision"] == number:
                return each
            return await cluster.update(REVISIONS, each, lambda obj: {**obj, "revision": number + 1})
    digest = template_hash(template)
    metadata = {
        "name": f"{owner['metadata']['name']}-{digest}",
        "namespace": owner["metadata"]["namespace"],
        "labels": {**((template.get("metadata") or {}).get("labels") or {}), label: digest},
        "annotations": dict(owner["metadata"].get("annotations") or {}),
        "ownerReferences": [reference_to(owner)],
    }
    made = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
    return await cluster.create(REVISIONS, {**made, "data": deepcopy(data), "revision": number + 1})


def _in_order(value: Any) -> Any:
    """JSON with sorted keys, as Go writes maps: clients compare the bytes."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def template_of(revision: Json) -> Json:
    """The template that a revision keeps."""
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}


async def forget_old(cluster: ClusterView, present: list[Json], used: Collection[str], limit: int) -> None:
    """Deletes the oldest revisions beyond a number; those ``used``, by name, stay and do not count."""
    unused = [each for each in present if each["metadata"]["name"] not in used]
    for each in unused[: max(len(unused) - limit, 0)]:
        await cluster.delete(REVISIONS, each)
