"""Applying a profile of rules to an API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from kubewright.diagnostics import Diagnostic, NamedObject, Severity
from kubewright.ir.api import Api, Resource
from kubewright.ir.versions import version_priority
from kubewright.location import Location
from kubewright.tools.lint.places import places_of
from kubewright.tools.lint.rule import NO_HOUSE, RULES, House, LintedKind, LintRule, Profile

_CODE: Final = re.compile(r"L\d{3}")
_WEIGHT: Final = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.NOTE: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to check. ``select`` and ``ignore`` hold codes or beginnings of them (``L2``); ``severity`` overrides a
    rule's own; ``exclude`` holds shell patterns of paths
    (``widgets.example.com/v1: spec.old*``), a code before them limits them to its rule
    (``L206 widgets*: spec.mode``)."""

    profile: Profile = "crd"
    select: tuple[str, ...] = ("L",)
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    least: Severity = Severity.NOTE
    exclude: tuple[str, ...] = ()
    house: House = NO_HOUSE


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its diagnostic, the rule, and the path that a baseline keeps."""

    diagnostic: Diagnostic
    rule: LintRule
    path: str


def _excludes(pattern: str, code: str, path: str) -> bool:
    first, _, rest = pattern.partition(" ")
    if rest and _CODE.fullmatch(first):
        return first == code and fnmatchcase(path, rest)
    return fnmatchcase(path, pattern)


def load_rules() -> Mapping[str, LintRule]:
    """All rules, by code."""
    from kubewright.tools.lint import (
        bounds,
        docs,
        forms,
        house,
        lists,
        names,
        references,
        shape,
        types,
        versions,
    )

    # imported for what they register
    assert all((bounds, docs, forms, house, lists, names, references, shape, types, versions))
    return dict(sorted(RULES.items()))


def chosen(settings: Settings) -> list[LintRule]:
    """The rules of a profile that are selected and not ignored, with their severities overridden."""
    found = []
    for rule in load_rules().values():
        severity = settings.severity.get(rule.code, rule.severity)
        if (
            settings.profile in rule.profiles
            and rule.code.startswith(settings.select)
            and not (settings.ignore and rule.code.startswith(settings.ignore))
            and _WEIGHT[severity] >= _WEIGHT[settings.least]
            and (not rule.opt_in or rule.code in settings.select or rule.code in settings.severity)
        ):
            found.append(rule)
    return found


def lint(api: Api, settings: Settings) -> list[Finding]:
    """All findings, in order of place. A place that several kinds share is reported once for each rule."""
    rules = chosen(settings)
    findings: dict[tuple[str, Location, str], Finding] = {}

    def add(rule: LintRule, of: Resource, location: Location, message: str, inside: str = "") -> None:
        subject = subject_of(of)
        path = f"{subject.name}: {inside}" if inside else subject.name
        if any(_excludes(pattern, rule.code, path) for pattern in settings.exclude):
            return
        severity = settings.severity.get(rule.code, rule.severity)
        shown = Diagnostic(rule.code, severity, f"{path}: {message}", location, rule.hint, subject)
        said = (
            message.replace(inside, "…") if inside else message
        )  # a type used in many places is one finding
        findings.setdefault((rule.code, location, said), Finding(shown, rule, path))

    for rule in rules:
        if rule.of_api is not None:
            for resource, message in rule.of_api(api):
                add(rule, resource, resource.location, message)
    for kind in kinds_of(api, settings.house):
        for rule in rules:
            if rule.of_kind is not None:
                for place, message in rule.of_kind(kind):
                    location = place.value.location if place is not None else kind.definition.value.location
                    inside = place.path if place is not None else ""
                    add(rule, kind.resource, location, message, inside)
            if rule.of_place is not None:
                for place in kind.places:
                    if not place.in_metadata:
                        for message in rule.of_place(place, kind):
                            add(rule, kind.resource, place.value.location, message, place.path)
    return sorted(
        findings.values(), key=lambda f: (f.diagnostic.location, f.diagnostic.code, f.diagnostic.message)
    )


def kinds_of(api: Api, house: House = NO_HOUSE) -> list[LintedKind]:
    """Every served kind of an API, with all its places: the newest version of each first."""
    definitions = {d.name: d for d in api.definitions}
    found = []
    newest_first = sorted(api.resources, key=lambda r: version_priority(r.version), reverse=True)
    for resource in sorted(newest_first, key=lambda r: (r.group, r.plural)):
        definition = definitions.get(resource.definition)
        if definition is not None:
            places = tuple(places_of(definition, definitions, api.folded))
            found.append(LintedKind(api, resource, definition, places, house))
    return found


def subject_of(resource: Resource) -> NamedObject:
    """The kind that findings in a resource are of."""
    group = f".{resource.group}" if resource.group else ""
    return NamedObject(resource.kind, name=f"{resource.plural}{group}/{resource.version}")
