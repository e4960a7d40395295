"""Reads conversion files: how the versions of a kind become each other. Codes K170-K174 are of this file."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.diagnostics import Diagnostics
from kubewright.ir.paths import Items, Path
from kubewright.ir.rules import Conversion, ConversionRule
from kubewright.ir.types import ABSENT, Json
from kubewright.location import Document, escape_pointer
from kubewright.source.rule_reader import RuleReader

WORDS: dict[str, frozenset[str]] = {
    "move": frozenset({"to", "values"}),
    "wrap": frozenset({"to"}),
    "split": frozenset({"to", "separator"}),
    "join": frozenset({"to", "separator"}),
    "default": frozenset({"to", "spoke", "hub"}),
    "seconds": frozenset({"to", "of"}),
    "group": frozenset({"to", "version"}),
    "keyed": frozenset({"to", "of", "key", "value"}),
    "constant": frozenset({"value"}),
    "keep": frozenset({"of"}),
    "lose": frozenset({"of", "why"}),
    "call": frozenset({"spoke", "hub"}),
}
"""Action of a rule → the other words that it may have."""


def read_conversions(document: Document, diagnostics: Diagnostics) -> tuple[Conversion, ...]:
    """The conversions of one file: those of one kind, or of several under ``kinds``."""
    reader = _Reader(document, diagnostics)
    top = reader.mapping(document.value, "")
    entries = [("", top)]
    if "kinds" in top:
        reader.only(top, {"kinds"}, "")
        entries = [
            (f"/kinds/{index}", reader.mapping(entry, f"/kinds/{index}"))
            for index, entry in enumerate(reader.list_of(top["kinds"], "/kinds"))
        ]
    found: list[Conversion] = []
    for pointer, entry in entries:
        reader.only(entry, {"kind", "hub", "spokes"}, pointer)
        kind, hub = entry.get("kind"), entry.get("hub")
        if not isinstance(kind, str) or not isinstance(hub, str):
            reader.error("K170", "a conversion says its kind and its hub", pointer, "such as `hub: apps/v1`")
            continue
        for name, body in reader.mapping(entry.get("spokes"), f"{pointer}/spokes").items():
            place = f"{pointer}/spokes/{escape_pointer(name)}"
            spokes = name.replace(" ", "").split(",")
            found += [reader.spoke(kind, (hub, f"{pointer}/hub"), spoke, body, place) for spoke in spokes]
    return tuple(found)


class _Reader(RuleReader):
    """Takes conversion files apart."""

    def spoke(self, kind: str, hub: tuple[str, str], spoke: str, body: Json, pointer: str) -> Conversion:
        """The conversion of one spoke; ``hub`` has its pointer, ``body`` is the rules, or an object with them."""
        before = len(self.diagnostics)
        fields = body if isinstance(body, dict) else {"rules": body}
        self.only(fields, {"rules", "notes", "annotate", "kind", "removed"}, pointer)
        lines = self.list_of(fields.get("rules") or [], pointer)
        place = f"{pointer}/rules" if fields is body else pointer
        rules = [self.rule(line, f"{place}/{index}") for index, line in enumerate(lines)]
        notes = self.list_of(fields.get("notes") or [], f"{pointer}/notes")
        return Conversion(
            hub_kind=kind,
            hub=hub[0],
            spoke_kind=str(fields.get("kind", kind)),
            spoke=spoke,
            rules=tuple(rule for rule in rules if rule is not None),
            annotate=bool(fields.get("annotate", True)),
            notes=tuple(str(note) for note in notes),
            removed_in=str(fields.get("removed", "")),
            complete=len(self.diagnostics) == before,
            location=self.document.at(pointer),
            hub_location=self.document.at(hub[1]),
        )

    def rule(self, line: Json, pointer: str) -> ConversionRule | None:
        """One rule."""
        fields = self.mapping(line, pointer)
        action = next((word for word in WORDS if word in fields), "")
        if not action:
            self.error(
                "K171", "a conversion rule is one of " + ", ".join(WORDS), pointer, "see docs/rules.md"
            )
            return None
        self.only(fields, WORDS[action] | {action}, pointer)
        here, there = self.paths(fields[action], pointer), self.paths(fields.get("to", []), pointer)
        if action == "call":
            return ConversionRule(
                action="call",
                spoke=self.paths(fields.get("spoke", []), pointer),
                hub=self.paths(fields.get("hub", []), pointer),
                function=str(fields["call"]),
                location=self.document.at(pointer),
            )
        if action in ("keep", "lose"):
            return self._unplaced(action, fields, here, pointer)
        if action == "constant":
            if "value" not in fields:
                self.error("K172", "'constant' needs the value", pointer)
                return None
            here, there = (), here
        if action == "default" and not there:
            there = here
        if fault := _misfit(action, fields, here, there):
            self.error("K172", fault, pointer)
            return None
        values = self.mapping(fields.get("values", {}), f"{pointer}/values")
        if len(set(values.values())) != len(values):
            self.error(
                "K173",
                "two words of one version become the same word of the other",
                f"{pointer}/values",
                "map each to a word of its own; the way back must be told from it",
            )
        return ConversionRule(
            action=action,
            spoke=here,
            hub=there,
            separator=str(fields.get("separator", "")),
            values=tuple((str(key), str(value)) for key, value in values.items()),
            spoke_value=fields.get("spoke", ABSENT),
            hub_value=fields.get("value" if action == "constant" else "hub", ABSENT),
            side=str(fields.get("of", "spoke")),
            version=str(fields.get("version", "")),
            key=str(fields.get("key", "")),
            field=str(fields.get("value", "")) if action == "keyed" else "",
            location=self.document.at(pointer),
        )

    def _unplaced(
        self, action: str, fields: dict[str, Json] | Json, here: tuple[Path, ...], pointer: str
    ) -> ConversionRule | None:
        side = fields.get("of")
        if side not in ("hub", "spoke"):
            self.error("K172", f"{action!r} says of which version: `of: hub` or `of: spoke`", pointer)
            return None
        if action == "lose" and not fields.get("why"):
            self.error("K174", "a loss is declared with its reason", pointer, "add `why:`")
            return None
        return ConversionRule(
            action=action,
            spoke=here if side == "spoke" else (),
            hub=here if side == "hub" else (),
            reason=str(fields.get("why", "")),
            location=self.document.at(pointer),
        )

    def paths(self, value: Json, pointer: str) -> tuple[Path, ...]:
        """One path, or several."""
        texts = value if isinstance(value, list) else [value]
        found = [self.path(text, pointer) for text in texts]
        return tuple(path for path in found if path is not None)


def _misfit(action: str, fields: Mapping[str, Json], here: tuple[Path, ...], there: tuple[Path, ...]) -> str:
    """What a rule lacks, or has wrong, by its action; empty for nothing."""
    wanted = {"split": (1, 2), "join": (2, 1), "constant": (0, 1)}.get(action, (1, 1))
    if action in ("split", "join") and not isinstance(fields.get("separator"), str):
        return f"{action!r} needs a separator"
    if (min(len(here), 2), min(len(there), 2)) != wanted:
        return f"{action!r} leads from {wanted[0]} to {wanted[1]} paths"
    if action == "wrap" and not any(isinstance(step, Items) for step in there[0].steps):
        return "'wrap' leads to an item of a list, such as `spec.stores[*].name`"
    if action in ("seconds", "keyed") and fields.get("of", "spoke") not in ("hub", "spoke"):
        return f"{action!r} says of which version: `of: hub` or `of: spoke`"
    if action == "keyed" and not isinstance(fields.get("key"), str):
        return "'keyed' needs the field of the items that holds the key: `key: name`"
    if action == "group" and not isinstance(fields.get("version"), str):
        return "'group' needs the version that the way back gives"
    return ""
