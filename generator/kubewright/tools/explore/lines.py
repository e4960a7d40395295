"""An object as lines of YAML, each with the path it is at and the managers that own it.

The YAML is what ``wire.yaml.encode`` means, in the order of the object's own keys. No line holds a control character
or a mark that turns the text, so lines can be shown on a terminal. ``managedFields`` is left out: the owners say it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from apimachinery.merge.fields_v1 import path_text
from apimachinery.merge.owners import OwnedPlace, Owners, Ownership
from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault

Path = tuple[str, ...]
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?:[ :][A-Za-z0-9_./@+-]+)*")
_HIDDEN = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff"
"""Control characters and marks that no line shows, besides those that JSON escapes."""
_BLOCK = re.compile(rf"\S[^\x00-\x09\x0b-\x1f{_HIDDEN}]*")
_NOT_IN_QUOTES = re.compile(f"[{_HIDDEN}]")
_LONGEST_KEY = 900
"""YAML's simple keys have 1,024 characters at most, as written."""


@dataclass(slots=True)
class OwnedLine:
    """One line. ``path`` has the elements of FieldsV1, ``field`` is how causes of a refusal name the same place.
    ``whole``: owned as a part of something that is owned as a whole. ``below`` are the owners of what an item or field
    holds that nobody owns itself."""

    text: str
    path: Path
    field: str
    owners: Owners
    whole: bool = False
    below: Owners = ()

    @property
    def name(self) -> str:
        """The path for people, as conflicts name it."""
        return path_text(self.path)


def lines_of(obj: dict[str, Any], ownership: Ownership) -> list[OwnedLine]:
    """The lines of an object."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        metadata = {name: value for name, value in metadata.items() if name != "managedFields"}
        obj = {**obj, "metadata": metadata}
    writer = _Writer()
    writer.mapping(obj, OwnedPlace.top(ownership), (), "", 0)
    return writer.lines


def owned_value(obj: dict[str, Any], ownership: Ownership, number: int) -> dict[str, Any]:
    """What one manager owns of an object, with what names it: the document that the manager would apply again."""
    metadata = obj.get("metadata") or {}
    named = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    shown = {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    owned = _owned(shown, OwnedPlace.top(ownership), number)
    owned = owned if isinstance(owned, dict) else {}
    head = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    return {**head, "metadata": {**named, **(owned.pop("metadata", None) or {})}, **owned}


def _owned(value: Any, place: OwnedPlace, number: int) -> Any:
    """The owned part of a value; None where nothing is. A field that is null is owned by nobody who applies."""
    if number in place.share.owners and number in place.whole_owners:
        return value
    if isinstance(value, dict):
        below = {name: _owned(item, place.field(name)[1], number) for name, item in value.items()}
        kept = {name: item for name, item in below.items() if item is not None}
        return kept if kept or number in place.share.owners else None
    if isinstance(value, list):
        items = []
        for item, (element, below_item) in zip(value, place.items(value), strict=True):
            found = _owned(item, below_item, number)
            if found is not None and element.startswith("k:") and isinstance(found, dict):
                found = {**json.loads(element[2:]), **found}
            items += [found] if found is not None else []
        return items or None
    return value if number in place.share.owners else None


class _Writer:
    """Writes lines. Each method answers with the owners of what it wrote."""

    def __init__(self) -> None:
        self.lines: list[OwnedLine] = []

    def mapping(
        self, value: dict[str, Any], place: OwnedPlace, path: Path, field: str, indent: int, lead: str = ""
    ) -> set[int]:
        """The fields; ``lead`` is what the first line begins with in place of its indentation: dashes of lists."""
        owners: set[int] = set()
        for name, item in value.items():
            element, below = place.field(name)
            here, at = (*path, element), f"{field}.{name}" if field else name
            start, lead = lead or " " * indent, ""
            key = _text(name)
            if len(key) > _LONGEST_KEY:
                self.lines.append(OwnedLine(f"{start}? {key}", here, at, *below.share))
                start, key = " " * indent, ""
            owners |= self._member(item, below, here, at, indent, f"{start}{key}:")
        return owners

    def _member(
        self, value: Any, place: OwnedPlace, path: Path, field: str, indent: int, start: str
    ) -> set[int]:
        owners = set(place.share.owners)
        if not (isinstance(value, dict | list) and value):
            self.scalar(value, place, path, field, indent + 2, f"{start} ")
            return owners
        line = OwnedLine(start, path, field, *place.share)
        self.lines.append(line)
        if isinstance(value, dict):
            below = self.mapping(value, place, path, field, indent + 2)
        else:
            below = self.sequence(value, place, path, field, indent)
        if not owners:
            line.below = tuple(sorted(below))
        return owners | below

    def sequence(
        self, value: list[Any], place: OwnedPlace, path: Path, field: str, indent: int, lead: str = ""
    ) -> set[int]:
        """The items, each behind a dash."""
        owners: set[int] = set()
        for index, (item, (element, below)) in enumerate(zip(value, place.items(value), strict=True)):
            here, at = (*path, element), f"{field}[{index}]"
            start, lead = f"{lead or ' ' * indent}- ", ""
            if isinstance(item, dict) and item:
                owners |= self.mapping(item, below, here, at, indent + 2, start)
            elif isinstance(item, list) and item:
                owners |= self.sequence(item, below, here, at, indent + 2, start)
            else:
                self.scalar(item, below, here, at, indent + 2, start)
            owners |= set(below.share.owners)
        return owners

    def scalar(self, value: Any, place: OwnedPlace, path: Path, field: str, indent: int, start: str) -> None:
        """Adds the lines of a value without members: one, or several for a text of several lines."""
        first, *more = _scalar(value, indent)
        self.lines.append(OwnedLine(start + first, path, field, *place.share))
        self.lines += [OwnedLine(text, path, field, *place.share) for text in more]


def _scalar(value: Any, indent: int) -> list[str]:
    if isinstance(value, str):
        if "\n" in value and _BLOCK.fullmatch(value) and value[-2:] != "\n\n" and value != "\n":
            mark = "|" if value.endswith("\n") else "|-"
            parts = value.removesuffix("\n").split("\n")
            return [mark, *(f"{' ' * indent}{part}" if part else "" for part in parts)]
        return [_text(value)]
    if value is None or isinstance(value, bool | int):
        return [json.dumps(value)]
    if isinstance(value, float):
        return [yaml.encode(value).decode().partition("\n")[0]]
    return ["{}" if isinstance(value, dict) else "[]"]


def _text(value: str) -> str:
    """A text on one line, in quotes unless it reads as itself without them."""
    if len(value) <= _LONGEST_KEY and _PLAIN.fullmatch(value):
        try:
            if isinstance(yaml.resolve(value), str):
                return value
        except DecodeFault:
            pass
    quoted = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_QUOTES.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
