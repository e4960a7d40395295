"""What the subresources of pods may change: ephemeral containers, and sizes."""

from __future__ import annotations

from copy import deepcopy

from apimachinery.kinds.hooks import Json

METADATA_OF_CLIENTS = ("labels", "annotations", "finalizers", "ownerReferences")
"""What of metadata a pod's subresources, and the status of some kinds, let nobody change."""


def _keep_of_pod(new: Json, old: Json) -> Json:
    """What a pod's subresources leave as it is: all but what they are for. Returns the spec as it was."""
    metadata, before = new["metadata"], old["metadata"]
    for key in (*METADATA_OF_CLIENTS, "deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    if "status" in old:
        new["status"] = old["status"]
    metadata["generation"] = before.get("generation", 0)
    spec: Json = deepcopy(old.get("spec") or {})
    return spec


def _keep_spec_of_pod(new: Json, old: Json, spec: Json) -> None:
    new["spec"] = spec
    if spec != old.get("spec"):
        new["metadata"]["generation"] += 1


def add_ephemeral(new: Json, old: Json, now: str) -> None:
    """Replaces the ephemeral containers and nothing else."""
    spec, added = _keep_of_pod(new, old), (new.get("spec") or {}).get("ephemeralContainers")
    spec.pop("ephemeralContainers", None)
    if added:
        spec["ephemeralContainers"] = added
    _keep_spec_of_pod(new, old, spec)


def resize(new: Json, old: Json, now: str) -> None:
    """Replaces resources of containers, known by name, and of the pod as a whole."""
    spec, asked = _keep_of_pod(new, old), new.get("spec") or {}
    for key in ("containers", "initContainers"):
        present = {each.get("name"): each for each in spec.get(key) or ()}
        given = [each for each in asked.get(key) or () if isinstance(each, dict)]
        if len(given) != len(present) or any(each.get("name") not in present for each in given):
            spec[key] = given  # refused when the update is checked
            continue
        for each in given:
            for name in ("resources", "resizePolicy"):
                if name in each:
                    present[each.get("name")][name] = each[name]
                else:
                    present[each.get("name")].pop(name, None)
    if "resources" in asked or "resources" in spec:
        spec["resources"] = asked.get("resources")
    for key in ("initContainers", "resources"):
        if not spec.get(key):
            spec.pop(key, None)
    _keep_spec_of_pod(new, old, spec)
