"""Owners, finalizers, deletion and what is left of it, and a namespace that ends; no controller needs to run."""

from __future__ import annotations

from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BY_KIND, CUSTOM, Kind
from tests.differential.draw.rest import delete_options
from tests.differential.draw.words import Dice

_KINDS = [
    *(BY_KIND[name] for name in ("ConfigMap", "Secret", "Deployment", "Pod", "Job", "ServiceAccount")),
    CUSTOM[0],
]
_FINALIZERS: list[Any] = [["example.com/f"], ["example.com/f", "example.com/g"], ["orphan"], ["foregroundDeletion"], ["orphan", "example.com/f"], [], None, ["orphan", "foregroundDeletion"]]  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """An owner, what it owns, and the end of some of it."""
    kind, owner = dice.one(_KINDS), dice.one(_KINDS)
    first: Step = {"method": "POST", "path": owner.collection(), "body": owner.make(dice, "owner")}
    steps: list[Step] = [{**first, "save": {"owner": "metadata.uid"}}]
    draws = [_create, _delete, _finalizers, _owners, _read, _collection]
    chosen = dice.choices(draws, [26, 26, 18, 12, 12, 6], k=dice.randint(9, 15))
    steps += [make(dice, kind, owner) for make in chosen]
    if dice.chance(0.25):
        steps.insert(dice.randrange(3, len(steps)), {"method": "DELETE", "path": "/api/v1/namespaces/{ns}"})
        steps.append({"method": "GET", "path": "/api/v1/namespaces/{ns}"})
    crds = [each.crd for each in {kind.plural: kind, owner.plural: owner}.values() if each.crd]
    return Conversation("control", name, steps, crds)


def _reference(dice: Dice, owner: Kind) -> dict[str, Any]:
    found = {"apiVersion": owner.api_version, "kind": owner.kind, "name": "owner", "uid": "{owner}"}
    for key in ("controller", "blockOwnerDeletion"):
        if dice.chance(0.4):
            found[key] = dice.chance(0.7)
    if dice.chance(0.1):
        found["uid"] = dice.one(["", "other"])
    return found


def _named(dice: Dice) -> str:
    return dice.one(["a", "a", "b", "owner"])


def _create(dice: Dice, kind: Kind, owner: Kind) -> Step:
    body = kind.make(dice, dice.one(["a", "a", "b"]))
    if dice.chance(0.6):
        body["metadata"]["ownerReferences"] = [_reference(dice, owner) for _ in range(dice.randint(1, 2))]
    if dice.chance(0.4):
        body["metadata"]["finalizers"] = dice.one(_FINALIZERS)
    step: Step = {"method": "POST", "path": kind.collection(), "body": body, "save": {"uid": "metadata.uid", "rv": "metadata.resourceVersion"}}  # fmt: skip
    if dice.chance(0.1):
        step["query"] = {"dryRun": "All"}
        del step["save"]
    return step


def _delete(dice: Dice, kind: Kind, owner: Kind) -> Step:
    name = _named(dice)
    step: Step = {"method": "DELETE", "path": (owner if name == "owner" else kind).item(name)}
    if dice.chance(0.6):
        step["body"] = delete_options(dice)
    if dice.chance(0.3):
        step["query"] = dice.one(
            [{"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background"}, {"dryRun": "All"}, {"gracePeriodSeconds": "0"}, {"gracePeriodSeconds": "7"}, {"orphanDependents": "true"}, {"orphanDependents": "false"}, {"uid": "{uid}"}]
        )  # fmt: skip
    return step


def _finalizers(dice: Dice, kind: Kind, owner: Kind) -> Step:
    name = _named(dice)
    how = dice.one(
        ["merge", "merge", "json", "strategic" if kind.crd is None and owner.crd is None else "merge"]
    )
    body: Any = {"metadata": {"finalizers": dice.one(_FINALIZERS)}}
    if how == "json":
        body = dice.one(
            [
                [{"op": "remove", "path": "/metadata/finalizers/0"}],
                [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/g"]}],
                [{"op": "remove", "path": "/metadata/finalizers"}],
            ]
        )
    path = (owner if name == "owner" else kind).item(name)
    return {
        "method": "PATCH",
        "path": path,
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES[how]},
    }


def _owners(dice: Dice, kind: Kind, owner: Kind) -> Step:
    value = dice.one([None, [], [_reference(dice, owner)], [_reference(dice, owner), _reference(dice, kind)]])
    body = {"metadata": {"ownerReferences": value, "labels": {"n": dice.one(["1", "2"])}}}
    return {
        "method": "PATCH",
        "path": kind.item(dice.one(["a", "b"])),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
    }


def _read(dice: Dice, kind: Kind, owner: Kind) -> Step:
    name = _named(dice)
    step: Step = {"method": "GET", "path": (owner if name == "owner" else kind).item(name)}
    if dice.chance(0.4):
        step = {"method": "GET", "path": kind.collection()}
    return step


def _collection(dice: Dice, kind: Kind, owner: Kind) -> Step:
    step: Step = {"method": "DELETE", "path": kind.collection()}
    if dice.chance(0.5):
        step["body"] = delete_options(dice)
    if dice.chance(0.5):
        step["query"] = dice.one([{"dryRun": "All"}, {"labelSelector": "a=1"}, {"propagationPolicy": "Foreground"}, {"fieldSelector": "metadata.name=a"}])  # fmt: skip
    return step
