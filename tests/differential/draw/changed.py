"""Scenarios that somebody wrote, changed a little: steps left out, repeated, exchanged; words and values replaced."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tests.differential.conversation import Conversation, Step, read
from tests.differential.draw import words
from tests.differential.draw.words import Dice, damaged


class Changed:
    """Draws from the scenarios of folders."""

    def __init__(self, folders: list[Path], skip: tuple[str, ...] = ("policy",)) -> None:
        self.found: list[Conversation] = []
        for folder in folders:
            for path in sorted(folder.rglob("*.yaml")):
                conversation = read(path, folder)
                if conversation.area not in skip:
                    self.found.append(conversation)
        # What scenarios say of one thing may be asked in another.
        self._queries = [s["query"] for c in self.found for s in c.steps if s.get("query")]
        self._headers = [s["headers"] for c in self.found for s in c.steps if s.get("headers")]

    def draw(self, dice: Dice, name: str) -> Conversation:
        """One of them, with about one step in six changed."""
        original = dice.one(self.found)
        steps: list[Step] = []
        for raw in original.steps:
            step = copy.deepcopy({key: value for key, value in raw.items() if key != "expect"})
            step.pop("id", None)
            if "until" in step:
                step["seconds"] = 3  # what a change made impossible is not worth waiting for
            if "method" in step and "until" not in step and dice.chance(0.18):
                self._change(dice, step)
            if dice.chance(0.02) and "method" in step:
                steps.append(copy.deepcopy(step))
            if not dice.chance(0.02) or "save" in step or "until" in step:
                steps.append(step)
        if dice.chance(0.3) and len(steps) > 4:
            one, other = dice.randrange(len(steps)), dice.randrange(len(steps))
            if all("method" in steps[n] and "until" not in steps[n] for n in (one, other)):
                steps[one], steps[other] = steps[other], steps[one]
        return Conversation(
            f"{original.area}+",
            f"{original.name.replace('.', '-')}-{name}"[:60],
            steps,
            original.crds,
            original.namespace,
            original.about,
        )

    def _change(self, dice: Dice, step: Step) -> None:
        how = dice.randrange(10)
        if how <= 3 and isinstance(step.get("body"), dict | list):
            step["body"] = damaged(
                dice,
                step["body"],
                dice.randint(1, 2),
                keep=() if dice.chance(0.2) else ("apiVersion", "kind"),
            )
        elif how == 4:
            step.setdefault("headers", {})["Accept"] = dice.one(words.ACCEPTS)
        elif how == 5 and self._queries:
            step["query"] = {**step.get("query", {}), **dice.one(self._queries)}
        elif how == 6 and step.get("query"):
            query: dict[str, Any] = step["query"]
            key = dice.one(sorted(query))
            if dice.chance(0.4):
                del query[key]
            else:
                query[key] = dice.one(
                    ["", "x", "0", "1", "true", "All", "-1", str(query[key]) + "x", str(query[key]).upper()]
                )
        elif how == 7 and self._headers and step["method"] != "GET":
            step["headers"] = {**step.get("headers", {}), **dice.one(self._headers)}
        elif how == 8:
            step["method"] = (
                dice.one(["GET", "PUT", "PATCH", "POST", "DELETE"])
                if "{ns}" in step["path"]
                else step["method"]
            )
        elif how == 9 and "{ns}" in step["path"]:
            step["path"] += dice.one(["/status", "/scale", "x", "/"])
