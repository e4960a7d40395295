"""One finding for one idea: changes that say the same at many places, or set bounds of one kind, put together.

A field that forty kinds get, or limits that a release sets on every string, are one thing for the reader of a pull
request. First, changes go together where they have one code and one message at fields of one name; where bounds change,
those of one keyword that go one way; where defaults change or go, all of them; where rules, nulls, formats or ways to
merge change, those of one text; what one version of a resource cannot carry for another, by the two versions. Then
groups of one code at the very same places become one: the fields or the rules that came together. What came with a
newer copy of a built-in type (``copies``) is one finding for each code, so long as it breaks no writer.

The first place says what happened, the others are named as far as a line goes, and counted. The group weighs as the
heaviest of its changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.tools.diff.change import ApiChange, Impact

SHOWN = 4
"""How many places a finding names besides the first."""
_RANGE: Final = re.compile(
    r"(value|length|number of \w+) (is limited now|limit changed|is no longer limited)(.*)"
)
_LAST: Final = re.compile(r"([A-Za-z0-9_$-]+)?([\[\]{}]*)$")
_BOUND_CODES: Final = frozenset({"D214", "D253"})
_ANYWHERE: Final = frozenset(
    {
        "D203",
        "D206",
        "D207",
        "D211",
        "D212",
        "D213",
        "D215",
        "D216",
        "D217",
        "D219",
        "D222",
        "D223",
        "D224",
        "D225",
        "D256",
        "D231",
        "D235",
        "D236",
        "D263",
        "D264",
        "D265",
        "D266",
        "D267",
    }
)
"""Codes whose message says enough: the field need not have the same name."""
_DEFAULTS: Final = {"D208": "default changed", "D209": "has no default any more"}
"""Codes of which all changes are one idea, and how their messages begin: which value it was is said at each place."""
_OF_FIELDS: Final = frozenset({"D201", "D204", "D205", "D210", "D232", "D235", "D251", "D252"})
"""Codes of which several fields of one object are one idea."""
_OF_RULES: Final = frozenset({"D223", "D224", "D256", "D267"})
_BETWEEN: Final = frozenset({"D301", "D302", "D303", "D304"})
_BETWEEN_SAID: Final = {
    "D301": "fields have no place in {other}, which is served too",
    "D302": "fields are of another type in {other}, which is served too",
    "D303": "{other} refuses what is accepted here",
    "D304": "only the conversion webhook can keep fields that {other} lacks",
}
_VERSION: Final = re.compile(r"\b(v[1-9]\w*)\b")
_ORDER: Final = [*Severity]


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Changes that are one idea, in the order in which they were found. ``said`` is what happened, ``details`` what is
    added to each place."""

    changes: tuple[ApiChange, ...]
    severity: Severity
    said: str
    details: tuple[str, ...] = ()

    @property
    def first(self) -> ApiChange:
        """The change whose place the finding has."""
        return self.changes[0]

    @property
    def text(self) -> str:
        """What happened, and where."""
        details = self.details or ("",) * len(self.changes)
        places = [f"{c.path}{detail}" for c, detail in zip(self.changes, details, strict=True)]
        places = [*dict.fromkeys(places)]
        if len(places) == 1:
            return f"{places[0]}: {self.said}"
        shown = "; ".join(_after(places[0], place) for place in places[1 : SHOWN + 1])
        more = len(places) - 1 - SHOWN
        tail = f"; and {more} more" if more > 0 else ""
        return f"{places[0]}: {self.said} (at {len(places)} places: also {shown}{tail})"


def grouped(
    changes: Iterable[tuple[ApiChange, Severity]],
    *,
    each: bool = False,
    copies: Callable[[str], str] = lambda path: "",
) -> list[ChangeGroup]:
    """The changes by idea; with ``each`` every one alone. ``copies`` gives the built-in type that a path is inside a
    copy of, or nothing."""
    groups: dict[object, list[tuple[ApiChange, Severity]]] = {}
    copied: dict[object, list[tuple[ApiChange, Severity]]] = {}
    for number, (change, severity) in enumerate(changes):
        if each:
            groups[number] = [(change, severity)]
        elif change.kind.impact in (Impact.SAFE, Impact.BREAKS_READERS) and copies(change.path):
            copied.setdefault(change.kind.code, []).append((change, severity))
        else:
            groups.setdefault((change.kind.code, _idea(change)), []).append((change, severity))
    made = [_group(found) for found in groups.values()]
    if not each:
        made = _joined(made)
    return [*made, *(_copied(found, copies) for found in copied.values())]


def _group(found: list[tuple[ApiChange, Severity]]) -> ChangeGroup:
    changes = tuple(change for change, _ in found)
    code, said = changes[0].kind.code, changes[0].message
    details: tuple[str, ...] = ()
    if len(changes) > 1 and code in _BETWEEN:
        other = _other(changes[0])
        said = _BETWEEN_SAID[code].format(other=other)
        if code != "D301":
            details = tuple(f" ({_detail(change)})" for change in changes)
    if code in _DEFAULTS and len({change.message for change in changes}) > 1:
        details = tuple(f" ({_inner(change.message.removeprefix(_DEFAULTS[code]))})" for change in changes)
        said = _DEFAULTS[code]
    ranges = [_RANGE.fullmatch(change.message) for change in changes]
    if code in _BOUND_CODES and all(ranges) and len({change.message for change in changes}) > 1:
        said = f"{ranges[0][1]} {ranges[0][2]}" if ranges[0] else said
        details = tuple(f" ({match[3].strip(' :()')})" for match in ranges if match)
    return ChangeGroup(changes, min((severity for _, severity in found), key=_ORDER.index), said, details)


def _inner(said: str) -> str:
    return said.strip().removeprefix("(").removesuffix(")")


def _idea(change: ApiChange) -> object:
    code = change.kind.code
    bound = _RANGE.fullmatch(change.message)
    if code in _BOUND_CODES and bound:
        return bound[1], bound[2]
    if code in _DEFAULTS:
        return code
    if code in _BETWEEN:
        return change.path.partition(":")[0].rpartition("/")[2], _other(change), _first_words(_detail(change))
    if code in _ANYWHERE:
        return change.message
    if not code.startswith("D2"):
        return change.message
    match = _LAST.search(change.path)
    return (match.group() if match else change.path), change.message


def _other(change: ApiChange) -> str:
    """The version that a change between two served versions speaks of."""
    match = _VERSION.search(change.message)
    return match[1] if match else ""


def _detail(change: ApiChange) -> str:
    if change.kind.code == "D303":
        return change.message.partition(": ")[2]
    return change.message.partition(", which is served too, it ")[2] if change.kind.code == "D302" else ""


def _first_words(said: str) -> str:
    """What a message says without its values."""
    return re.split(r'["\d:]|\bonly\b', said)[0]


def _joined(groups: list[ChangeGroup]) -> list[ChangeGroup]:
    """Groups of one code at the very same places as one: fields of one object, rules of one value."""
    found: dict[object, list[ChangeGroup]] = {}
    for number, group in enumerate(groups):
        code = group.first.kind.code
        places: object = number
        if code in _OF_FIELDS and not group.details:
            places = tuple(sorted({change.path.rpartition(".")[0] for change in group.changes}))
        elif code in _OF_RULES:
            places = tuple(sorted({change.path for change in group.changes}))
        found.setdefault((code, places), []).append(group)
    return [_one(each) if len(each) > 1 else each[0] for each in found.values()]


def _one(groups: list[ChangeGroup]) -> ChangeGroup:
    changes = tuple(change for group in groups for change in group.changes)
    severity = min((group.severity for group in groups), key=_ORDER.index)
    code = groups[0].first.kind.code
    if code in _OF_RULES:
        return ChangeGroup(
            groups[0].changes, severity, "; ".join(dict.fromkeys(group.said for group in groups))
        )
    words = dict.fromkeys(f"{_name(g.first)} {g.said}" if code == "D210" else _name(g.first) for g in groups)
    head = dict.fromkeys(change.path.rpartition(".")[0] for change in changes)
    named = [next(c for c in changes if c.path.rpartition(".")[0] == place) for place in head]
    places = tuple(
        ApiChange(c.kind, place, c.version, c.message, c.location)
        for c, place in zip(named, head, strict=True)
    )
    if code == "D210":
        return ChangeGroup(places, severity, "; ".join(words))
    said = groups[0].first.message
    said = (
        said.replace("field ", "fields ").replace("is ", "are ").replace("its value is", "their values are")
    )
    return ChangeGroup(places, severity, f"{_listed([*words])}: {said}")


def _name(change: ApiChange) -> str:
    match = _LAST.search(change.path)
    return match.group() if match else change.path


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _copied(found: list[tuple[ApiChange, Severity]], copies: Callable[[str], str]) -> ChangeGroup:
    """One finding for what a newer release of the copied types brought."""
    if len(found) == 1:
        return _group(found)
    changes = tuple(change for change, _ in found)
    ideas: dict[str, None] = {}
    for change in changes:
        said = "" if change.kind.code == "D251" else f" {change.message}"
        ideas[f"{copies(change.path)}.{_name(change)}{said}"] = None
    shown = [*ideas][:12]
    more = f", and {len(ideas) - 12} more" if len(ideas) > 12 else ""
    said = f"{changes[0].kind.name} in copies of built-in types: {', '.join(shown)}{more}"
    return ChangeGroup(changes, min((severity for _, severity in found), key=_ORDER.index), said)


def _after(first: str, place: str) -> str:
    """A place without what it shares with the first: the resource, where that is the same."""
    head, colon, rest = place.partition(": ")
    return rest if colon and first.startswith(f"{head}: ") else place
