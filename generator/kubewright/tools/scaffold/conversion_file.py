"""The file in ``conversions/`` that says how the versions of a kind become each other, and its edits.

The hub is the newest version: where a version is copied from the hub, the copy takes its place, and the rules of all
others lead there as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.emit.code.render import render
from kubewright.location import escape_pointer
from kubewright.tools.migrate.anchors import flow
from kubewright.tools.scaffold import conversion_rules
from kubewright.tools.scaffold.conversion_rules import Rule, Side, UnchangeableError
from kubewright.tools.scaffold.editing import place_of, read, replaced
from kubewright.tools.scaffold.writing import FilePlan, RefusedError, says

FOLDER = "conversions"


@dataclass(slots=True)
class ConversionFile:
    """One file: its text, what it said and what it is to say."""

    path: Path
    text: str
    before: Any
    kind: str
    hub: str
    spokes: dict[str, Any]

    def rules_of(self, api_version: str) -> list[Rule]:
        """The rules of a spoke."""
        body = self.spokes[api_version]
        return list((body.get("rules") if isinstance(body, dict) else body) or [])

    def add_version(self, api_version: str, copied: str, *, leads: bool) -> None:
        """Adds a version that is a copy of another. Where that one is the hub and the new one ``leads`` (is at least
        as stable), it becomes the hub."""
        if api_version in (self.hub, *self.spokes):
            raise RefusedError(f"{self.place('/hub')}: {api_version} is there already", "take it out first")
        if copied == self.hub and leads:
            self.spokes[copied], self.hub = [], api_version
        elif copied in self.spokes:
            self.spokes[api_version] = _body(self.spokes[copied], self.rules_of(copied))
        else:
            self.spokes[api_version] = []

    def make_hub(self, api_version: str) -> None:
        """Makes a spoke the hub. Raises ``RefusedError`` where rules cannot be brought along."""
        if api_version == self.hub:
            raise RefusedError(f"{self.place('/hub')}: {api_version} is the hub already", code=1)
        if api_version not in self.spokes or self._is_removed(api_version):
            raise RefusedError(f"{self.place('/spokes')}: {api_version} is no spoke that is still there")
        way, old = self.rules_of(api_version), self.hub
        del self.spokes[api_version]
        self._each(lambda side, rules: conversion_rules.over(rules, way), "hub")
        try:
            self.spokes[old] = conversion_rules.inverse(way)
        except UnchangeableError as fault:
            raise self._refusal(old, fault) from None
        self.hub = api_version

    def rename(self, api_version: str, old: str, new: str) -> None:
        """Brings the rules along where a version calls a field otherwise."""
        self._at(api_version, lambda side, rules: conversion_rules.renamed(rules, side, old, new))

    def split(self, api_version: str, path: str, parts: list[str], separator: str) -> None:
        """Brings the rules along where a version has several fields for one. Raises ``RefusedError``."""
        self._at(api_version, lambda side, rules: conversion_rules.split(rules, side, path, parts, separator))

    def name_kinds(self, hub: str, kind: str) -> None:
        """Says what the spokes call the kind where the hub, which was just added, has another name for it."""
        if self.hub != hub:
            self.spokes[hub] = {"kind": kind, "rules": self.rules_of(hub)}
            return
        for spoke, body in self.spokes.items():
            told = body if isinstance(body, dict) else {}
            self.spokes[spoke] = {"kind": self.kind, **told, "rules": self.rules_of(spoke)}
        self.kind = kind

    def remove(self, api_version: str, release: str) -> None:
        """Says that a version is gone: its rules stay for old manifests. Raises ``RefusedError`` for the hub."""
        if api_version == self.hub:
            others = [each for each in self.spokes if not self._is_removed(each)]
            version = (others or [""])[-1].rpartition("/")[2]
            raise RefusedError(
                f"{self.place('/hub')}: {api_version} is the hub: all other versions are converted through it",
                f"make another version the hub first: kubewright scaffold version {version or 'VERSION'} "
                f"--kind {self.kind} --hub",
            )
        if api_version in self.spokes:
            body = self.spokes[api_version]
            told = body if isinstance(body, dict) else {}
            self.spokes[api_version] = {"removed": release, **told, "rules": self.rules_of(api_version)}

    def write_to(self, plan: FilePlan) -> None:
        """Adds the edit. Raises ``RefusedError`` where the text cannot be edited."""
        wanted = self.before | {"kind": self.kind, "hub": self.hub, "spokes": self.spokes}
        replaced(plan, self.path, self.before, self.text, wanted)
        for spoke, body in self.spokes.items():
            if isinstance(body, list) and len(body) > 1 and self.path in plan.edits:
                text = plan.edits[self.path][1]
                lines = "".join(f"\n  - {flow(rule)}" for rule in body)
                spread = text.replace(f"\n  {spoke}: {flow(body)}\n", f"\n  {spoke}:{lines}\n")
                if says(spread, wanted):
                    plan.edit(self.path, self.text, spread)

    def place(self, pointer: str) -> str:
        """Where something is in the file, for messages."""
        return place_of(self.path, pointer)

    def _spoke(self, api_version: str) -> str:
        return self.place(f"/spokes/{escape_pointer(api_version)}")

    def _is_removed(self, api_version: str) -> bool:
        body = self.spokes[api_version]
        return isinstance(body, dict) and bool(body.get("removed"))

    def _at(self, api_version: str, change: Callable[[Side, list[Rule]], list[Rule]]) -> None:
        if api_version == self.hub:
            self._each(change, "hub")
        elif api_version in self.spokes:
            self._change(api_version, change, "spoke")
        else:
            raise RefusedError(
                f"{self.place('/spokes')}: {api_version} is neither the hub nor a spoke", "add it as a spoke"
            )

    def _each(self, change: Callable[[Side, list[Rule]], list[Rule]], side: Side) -> None:
        for spoke in [*self.spokes]:
            self._change(spoke, change, side)

    def _change(self, spoke: str, change: Callable[[Side, list[Rule]], list[Rule]], side: Side) -> None:
        try:
            rules = change(side, self.rules_of(spoke))
        except UnchangeableError as fault:
            raise self._refusal(spoke, fault) from None
        self.spokes[spoke] = _body(self.spokes[spoke], rules, keeps_all=True)

    def _refusal(self, spoke: str, fault: UnchangeableError) -> RefusedError:
        return RefusedError(
            f"{self._spoke(spoke)}: {fault}", "change this rule by hand first (docs/rules.md)"
        )


def _body(body: Any, rules: list[Rule], *, keeps_all: bool = False) -> Any:
    """The body of a spoke with other rules; a version that is copied from another is not removed."""
    if not isinstance(body, dict):
        return rules
    told = {word: value for word, value in body.items() if keeps_all or word not in ("removed", "notes")}
    return told | {"rules": rules}


def find_conversions(folder: Path, kind: str, group: str) -> ConversionFile | None:
    """The file with the conversions of a kind. Raises ``RefusedError`` where it has a form that is not edited."""
    for path in sorted((folder / FOLDER).glob("*.y*ml")):
        value, text = read(path)
        entries = value.get("kinds", [value]) if isinstance(value, dict) else []
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, dict) or not _speaks_of(entry, kind, group):
                continue
            if entry is not value or any("," in spoke for spoke in entry["spokes"]):
                raise RefusedError(
                    f"{path}: the conversions of {kind} are written together with others",
                    "write a file for each kind, and an entry for each spoke",
                )
            return ConversionFile(path, text, value, entry["kind"], entry["hub"], dict(entry["spokes"]))
    return None


def _speaks_of(entry: dict[str, Any], kind: str, group: str) -> bool:
    hub, spokes = entry.get("hub"), entry.get("spokes")
    if not isinstance(hub, str) or not isinstance(spokes, dict):
        return False
    named = [(hub, entry.get("kind"))]
    for spoke, body in spokes.items():
        own = body.get("kind") if isinstance(body, dict) else None
        named += [(each, own or entry.get("kind")) for each in str(spoke).replace(" ", "").split(",")]
    return any((each.rpartition("/")[0], name) == (group, kind) for each, name in named)


def new_conversions(plan: FilePlan, path: Path, kind: str, hub: str, spokes: list[str]) -> None:
    """Adds the file of a kind that has none: apiVersions that differ in nothing yet."""
    plan.new[path] = render("scaffold_conversion", kind=kind, hub=hub, spokes=spokes)
