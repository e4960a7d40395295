"""Lists, watches, versions, deletion, finalizers, dry runs and conflicts, over objects that a conversation made."""

from __future__ import annotations

from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import COMMON, CUSTOM, Kind
from tests.differential.draw.rest import delete_options, write_options
from tests.differential.draw.words import Dice


def draw(dice: Dice, name: str) -> Conversation:
    """A few objects, then what may be done with them, and watches over all of it."""
    kind = dice.one([CUSTOM[0], CUSTOM[0], CUSTOM[1], *COMMON])
    path = kind.collection()
    steps: list[Step] = [{"method": "GET", "path": path, "save": {"start": "metadata.resourceVersion"}}]
    versions = ["start"]
    names = dice.some(["a", "b", "c", "d"], 1, 4)
    for number, each in enumerate(names):
        body = kind.make(dice, each, 0.0)
        if dice.chance(0.25):
            body["metadata"]["finalizers"] = ["example.com/f"]
        steps.append(
            {
                "method": "POST",
                "path": path,
                "body": body,
                "save": {"uid": "metadata.uid", f"rv{number}": "metadata.resourceVersion"},
            }
        )
        versions.append(f"rv{number}")
    for number in range(dice.randint(4, 12)):
        step = dice.choices(
            [_change, _delete, _list, _page, _watch, _get, _unfinalize], [20, 14, 16, 8, 14, 6, 6]
        )[0](dice, kind, names, versions)
        if step["method"] in ("PUT", "PATCH") and "save" not in step:
            step["save"] = {f"w{number}": "metadata.resourceVersion"}
            versions.append(f"w{number}")
        steps.append(step)
        if step.pop("again", False):
            steps.append(
                {
                    "method": "GET",
                    "path": path,
                    "query": {
                        "limit": dice.one(["1", "2", "50", "0", "x"]),
                        "continue": "{next}",
                        **({"labelSelector": "a=1"} if dice.chance(0.1) else {}),
                        **({"resourceVersion": dice.one(["0", "{start}"])} if dice.chance(0.15) else {}),
                        **({"resourceVersionMatch": "Exact"} if dice.chance(0.1) else {}),
                    },
                }
            )
    if dice.chance(0.6):
        steps.append(
            {
                "method": "GET",
                "path": path,
                "query": {"watch": "true", "resourceVersion": "{start}", "timeoutSeconds": "1"},
            }
        )
    return Conversation("state", name, steps, [kind.crd] if kind.crd else [])


def _which(dice: Dice, names: list[str]) -> str:
    return dice.one(names) if dice.chance(0.92) else "none"


def _version(dice: Dice, versions: list[str]) -> str:
    return (
        "{" + dice.one(versions) + "}"
        if dice.chance(0.6)
        # How far back a server remembers is its own affair, so no version of long ago is drawn.
        else dice.one(["0", "", "x", "999999999999", "-1"])
    )


def _change(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    name = _which(dice, names)
    path = kind.item(name)
    query = write_options(dice, 0.25)
    if dice.chance(0.35):
        body: Any = kind.make(dice, name, 0.03)
        if dice.chance(0.35):
            body["metadata"]["resourceVersion"] = _version(dice, versions)
        if dice.chance(0.15):
            body["metadata"]["uid"] = dice.one(["{uid}", "wrong", ""])
        step: Step = {"method": "PUT", "path": path, "body": body}
    else:
        body = {"metadata": words.metadata(dice, name, 0.03)}
        body["metadata"].pop("name")
        if dice.chance(0.2):
            body["metadata"]["resourceVersion"] = _version(dice, versions)
        if dice.chance(0.1):
            body["metadata"]["uid"] = dice.one(["{uid}", "wrong", None])
        for more in dice.some(kind.more, 0, 1):
            body = words.merged(body, more)
        step = {
            "method": "PATCH",
            "path": path,
            "body": body,
            "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
        }
    if "status" in kind.sub and dice.chance(0.15):
        step["path"] += "/status"
    if query:
        step["query"] = query
    return step


def _unfinalize(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    value = dice.one([None, [], ["example.com/g"], ["example.com/f", "example.com/g"]])
    return {
        "method": "PATCH",
        "path": kind.item(_which(dice, names)),
        "body": {"metadata": {"finalizers": value}},
        "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
    }


def _delete(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    step: Step = {"method": "DELETE", "path": kind.item(_which(dice, names))}
    roll = dice.random()
    if roll < 0.4:
        step["body"] = delete_options(dice)
        conditions = step["body"].get("preconditions") or {}
        if conditions.get("resourceVersion") == "{rv}":
            conditions["resourceVersion"] = _version(dice, versions)
    elif roll < 0.6:
        step["query"] = dice.one(
            [
                {"propagationPolicy": "Foreground"},
                {"propagationPolicy": "Orphan"},
                {"propagationPolicy": "Background"},
                {"dryRun": "All"},
                {"gracePeriodSeconds": "0"},
                {"gracePeriodSeconds": "5"},
            ]
        )
    if dice.chance(0.15):
        step["path"] = kind.collection()
        step.setdefault("query", {}).update(
            dice.one(
                [
                    {},
                    {"labelSelector": "a=1"},
                    {"fieldSelector": "metadata.name=a"},
                    {"limit": "1"},
                    {"dryRun": "All"},
                ]
            )
        )
    return step


def _get(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    step: Step = {"method": "GET", "path": kind.item(_which(dice, names))}
    if dice.chance(0.5):
        step["query"] = {"resourceVersion": _version(dice, versions)}
    return step


def _list(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    query: dict[str, Any] = {}
    if dice.chance(0.65):
        query["resourceVersion"] = _version(dice, versions)
    if dice.chance(0.4):
        query["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan", "", "x"])
    if dice.chance(0.4):
        query["limit"] = dice.one(["1", "2", "0", "100", "-1"])
    if dice.chance(0.2):
        query["labelSelector"] = dice.one(words.LABEL_SELECTORS)
    if dice.chance(0.15):
        query["fieldSelector"] = dice.one(words.FIELD_SELECTORS)
    if dice.chance(0.06):
        query["sendInitialEvents"] = dice.one(["true", "false"])
    step: Step = {"method": "GET", "path": kind.collection(), "query": query}
    if dice.chance(0.15):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS[:20])}
    return step


def _page(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    return {
        "method": "GET",
        "path": kind.collection(),
        "query": {"limit": dice.one(["1", "1", "2", "3"])},
        "save": {"next": "metadata.continue"},
        "again": True,
    }


def _watch(dice: Dice, kind: Kind, names: list[str], versions: list[str]) -> Step:
    query: dict[str, Any] = {"watch": dice.one(["true", "1", "true", "x"]), "timeoutSeconds": "1"}
    if dice.chance(0.75):
        query["resourceVersion"] = _version(dice, versions)
    if dice.chance(0.25):
        query["resourceVersionMatch"] = dice.one(["NotOlderThan", "Exact", "", "x"])
    if dice.chance(0.3):
        query["sendInitialEvents"] = dice.one(["true", "true", "false", "x"])
        if dice.chance(0.7):
            query["resourceVersionMatch"] = "NotOlderThan"
    if dice.chance(0.35):
        query["allowWatchBookmarks"] = dice.one(["true", "false"])
    if dice.chance(0.2):
        query["labelSelector"] = dice.one(words.LABEL_SELECTORS + words.BAD_LABEL_SELECTORS[:4])
    if dice.chance(0.2):
        query["fieldSelector"] = dice.one(words.FIELD_SELECTORS + words.BAD_FIELD_SELECTORS[:4])
    if dice.chance(0.05):
        query["limit"] = "1"
    if dice.chance(0.04):
        query["continue"] = "x"
    path = kind.collection() if dice.chance(0.85) else kind.item(_which(dice, names))
    if dice.chance(0.08):
        path = kind.collection().replace(kind.path, f"{kind.path}/watch")
    step: Step = {"method": "GET", "path": path, "query": query}
    if dice.chance(0.25):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS[:26])}
    return step
