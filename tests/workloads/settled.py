"""What a namespace holds once its controllers have settled, without what no two runs have in common."""

from __future__ import annotations

import json
import re
from typing import Any

from .objects import PATHS, Objects

PLURALS = [name for name in PATHS if name != "events"]
_GENERATED = re.compile(r"\bweb-(?:\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}\b")
UNORDERED = {"addresses", "ip", "port"}
"""Keys of what is in a list in no order."""
_POD_ADDRESS = re.compile(r"10\.244\.\d+\.\d+")
HASHES = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
VOLATILE = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "completionTime",
    "lastScaleTime",
    "lastSuccessfulTime",
    "clusterIP",
    "clusterIPs",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
}


def state(objects: Objects) -> dict[str, list[Any]]:
    """The objects of a namespace by resource, with hashes written as the images that they stand for."""
    found = {plural: objects.all(plural) for plural in PLURALS}
    names = _hashes(found)
    if found["horizontalpodautoscalers"]:
        for each in found["replicasets"]:
            if not each["spec"][
                "replicas"
            ]:  # how large it was remembered depends on when the autoscaler looked
                each["metadata"].pop("annotations", None)
    return {
        plural: sorted(
            (_plain(each, names) for each in items), key=lambda each: json.dumps(each, sort_keys=True)
        )
        for plural, items in found.items()
    }


def _hashes(found: dict[str, list[Any]]) -> dict[str, str]:
    names = {}
    for each in found["replicasets"]:
        if digest := (each["metadata"].get("labels") or {}).get(HASHES[0]):
            names[digest] = _image(each["spec"]["template"])
    for each in found["controllerrevisions"]:
        for key in HASHES[1:]:
            if digest := (each["metadata"].get("labels") or {}).get(key):
                names[digest] = _image(each["data"]["spec"]["template"])
    return names


def _image(template: Any) -> str:
    shown = template["spec"]["containers"][0]["image"]
    return f"<{shown} {json.dumps(template['spec'].get('nodeSelector'))}>"


def _plain(obj: Any, names: dict[str, str]) -> Any:
    metadata = obj["metadata"]
    status = obj.get("status")
    if isinstance(status, dict) and "observedGeneration" in status and "generation" in metadata:
        status["observedGeneration"] = status["observedGeneration"] == metadata["generation"]
    generated = metadata.pop("generateName", "")
    if generated and "statefulset.kubernetes.io/pod-name" not in (metadata.get("labels") or {}):
        metadata["name"] = generated + "?"
    text = _GENERATED.sub("web-?", json.dumps(_stripped(obj), sort_keys=True))
    for digest, shown in names.items():
        text = text.replace(digest, json.dumps(shown)[1:-1])
    return json.loads(text)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _stripped(each) for key, each in value.items() if key not in VOLATILE}
        if kept.get("annotations") == {}:
            del kept["annotations"]
        if kept.get("kind") == "Pod" and "name" in kept and len(kept) == 3:
            del kept["name"]  # a target by its generated name
        return kept
    if isinstance(value, list):
        items = [_stripped(each) for each in value]
        if all(isinstance(each, dict) and "type" in each for each in items):
            items.sort(key=lambda each: str(each["type"]))
        elif all(isinstance(each, dict) and not UNORDERED.isdisjoint(each) for each in items):
            items.sort(key=lambda each: json.dumps(each, sort_keys=True))
        return items
    return _POD_ADDRESS.sub("ADDRESS", value) if isinstance(value, str) else value


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two states are not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            line
            for key in sorted({*one, *other})
            for line in differences(one.get(key), other.get(key), f"{path}.{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            line
            for n, pair in enumerate(zip(one, other, strict=True))
            for line in differences(*pair, f"{path}[{n}]")
        ]
    return [] if one == other else [f"{path}: {_short(one)} | {_short(other)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 300 else f"{text[:300]} …"
