"""L6: what a project forbids besides the conventions. Without settings (names, forbidden, needed, apart)
these rules say nothing."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.ir.types import Absent, Scalar
from kubewright.tools.lint.bounds import KEYWORDS, camel
from kubewright.tools.lint.places import Place
from kubewright.tools.lint.rule import LintedKind, place_rule

_HOUSE = "the project's own settings"


@place_rule(
    "L601 house-name",
    why="A project agrees on words of its own.",
    source=_HOUSE,
    hint="choose another name, or change `names` in the settings",
)
def house_name(place: Place, kind: LintedKind) -> Iterator[str]:
    """No field name matches a pattern of `names`."""
    for pattern, said in kind.house.names.items():
        if place.name and pattern.search(place.name):
            yield f'"{place.name}": {said}'


@place_rule(
    "L602 house-forbidden",
    why="A project agrees to do without some keywords.",
    source=_HOUSE,
    hint="take it out, or change `forbidden` in the settings",
)
def house_forbidden(place: Place, kind: LintedKind) -> Iterator[str]:
    """No keyword of `forbidden` is used."""
    for keyword in sorted(keywords_of(place).intersection(kind.house.forbidden)):
        yield f'"{place.shown}" has the keyword {keyword}'


@place_rule(
    "L603 house-needed",
    why="Some keywords are of use in company only.",
    source=_HOUSE,
    hint="add what is missing, or change `needed` in the settings",
)
def house_needed(place: Place, kind: LintedKind) -> Iterator[str]:
    """Next to a keyword of `needed` is what it needs."""
    there = keywords_of(place)
    for keyword, company in kind.house.needed.items():
        missing = [each for each in company if each not in there]
        if keyword in there and missing:
            yield f'"{place.shown}" has {keyword}, but no {", no ".join(missing)}'


@place_rule(
    "L604 house-apart",
    why="Some keywords contradict each other.",
    source=_HOUSE,
    hint="decide for one, or change `apart` in the settings",
)
def house_apart(place: Place, kind: LintedKind) -> Iterator[str]:
    """Of a group of `apart` at most one keyword is at a place."""
    there = keywords_of(place)
    for group in kind.house.apart:
        both = [each for each in group if each in there]
        if len(both) > 1:
            yield f'"{place.shown}" has {" and ".join(both)}'


def keywords_of(place: Place) -> set[str]:
    """The keywords that are at a place, as a schema spells them; `required` and `optional` for a field."""
    value, limits, merge = place.value, place.value.constraints, place.value.merge
    found = {
        camel(name)
        for names in KEYWORDS.values()
        for name in names
        if getattr(limits, name) not in (None, "", False)
    }
    found |= {name for name, _ in value.extensions}
    told = {
        "enum": limits.enum,
        "allOf": limits.all_of,
        "anyOf": limits.any_of,
        "oneOf": limits.one_of,
        "not": limits.negated is not None,
        "x-kubernetes-validations": limits.rules,
        "nullable": value.nullable,
        "default": not isinstance(value.default, Absent),
        "description": value.doc,
        "format": isinstance(value.type, Scalar) and value.type.format,
        "x-kubernetes-list-type": merge.list_type_declared,
        "x-kubernetes-list-map-keys": merge.list_map_keys,
        "x-kubernetes-map-type": merge.map_type_declared,
        "x-kubernetes-patch-strategy": merge.patch_strategy,
        "x-kubernetes-patch-merge-key": merge.patch_merge_key,
        "required": bool(place.name) and place.required,
        "optional": bool(place.name) and not place.required,
    }
    return found | {name for name, said in told.items() if said}
