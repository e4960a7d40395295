"""Which objects of a document a release does not have any more, what they become, and what is left to a person."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from apimachinery.conversion.versions import ConversionError, Converter
from apimachinery.meta.json import Json
from apimachinery.wire import json as wire_json
from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostic, Severity
from kubewright.location import Location
from kubewright.source.lifecycle import Key, LifeCycle, Release, release_of
from kubewright.tools.inputs.projects import source_of
from kubewright.tools.migrate.conversions import converted
from kubewright.tools.migrate.references import (
    ReferenceRule,
    is_kustomization,
    pod_fields,
    redirected,
    references,
    rules,
    shown,
)
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.migrate.volumes import PLUGINS, volumes
from kubewright.tools.validate.check import subject_of
from kubewright.tools.validate.inputs import Chunk
from kubewright.tools.validate.places import Places

CODES = {
    "M001": "an API version that the release does not have any more",
    "M002": "an API version that is deprecated in the release",
    "M003": "gone or deprecated, and left to a person: without a successor, or in a template",
    "M004": "an API version that the release does not have yet",
    "M005": "a reference to an API version that is gone",
    "M006": "rewritten without comments and order",
    "M007": "what the new version refuses, to be decided by a person",
    "M008": "a rule that speaks of resources which are gone",
    "M009": "a field or a kind of volume that is gone",
    "M010": "a template or broken document that was not judged",
}
"""Code → what it says, for reports."""

_TEMPLATE = re.compile(rb"\{\{")
_API_VERSION = re.compile(r"""^apiVersion:[ \t]*["']?([\w.\-/]+)["']?[ \t]*(?:#.*)?$""", re.MULTILINE)
_VERSION_LINE = re.compile(r"^[ \t]*apiVersion:", re.MULTILINE)
_KIND = re.compile(r"""^kind:[ \t]*["']?(\w+)["']?[ \t]*(?:#.*)?$""", re.MULTILINE)
_DIRECTIVE = re.compile(r"\{\{-?\s*(if|with|range|define|block|else|end)\b([^}]*)")
_CHOICE = re.compile(r"capabilities|apiversion|kubeversion|semver", re.IGNORECASE)
"""In a template's condition: it asks what the cluster serves, and what is below it may be meant for others."""

_POD_FIELDS = {
    "workloadRef": ("1.36", "spec.schedulingGroup says which PodGroup a pod belongs to"),
    "source": ("1.31", "resourceClaimName and resourceClaimTemplateName are next to the claim's name"),
}
"""Fields of pods that schemas of 1.25 to 1.37 lost: name → first release without it, what to use."""

_MATCHES_ALL = "*"


@dataclass(slots=True)
class Migration:
    """One document: its findings, and its new text where it changes."""

    findings: list[Diagnostic] = field(default_factory=list)
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The facts by which documents are judged for one release."""

    release: str
    lifecycles: Mapping[Key, LifeCycle]
    converter: Converter | None
    plurals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    patches: frozenset[str] = frozenset()
    """Files that kustomizations name as patches."""
    unknown: Callable[[Key], LifeCycle | None] = lambda key: None
    """The life cycle of what ``lifecycles`` does not have."""
    refusals: Callable[[Chunk], Iterable[str]] = lambda chunk: ()
    """What the release has against a document that was converted."""

    def document(self, chunk: Chunk, before: str = "") -> Migration:
        """Judges one document; raises nothing for any input. ``before`` is the text of its file that is before
        it: in a template, conditions reach over documents."""
        found = Migration()
        self._judge(chunk, before, found)
        return found

    def _judge(self, chunk: Chunk, before: str, found: Migration) -> None:
        try:
            json_form = chunk.content.lstrip()[:1] == b"{" and not _TEMPLATE.search(chunk.content)
            value = wire_json.decode(chunk.content) if json_form else wire_yaml.decode(chunk.content)
        except (DecodeFault, RecursionError, ValueError):
            self._template(chunk, before, found)
            return
        if not isinstance(value, dict):
            return
        places = Places(chunk, value)
        if is_kustomization(value, chunk.file):
            new = self._references(value, "", places, found, kustomization=True)
        elif os.path.normpath(chunk.file) in self.patches:
            new = self._patch(value, places, found)
        else:
            new = self._object(value, "", places, found)
        if new != value:
            text = chunk.content.decode("utf-8-sig")
            done = rewrite(text, value, new)
            found.text = done.text
            if not done.kept:
                said = "this document has to be rewritten; its comments and order are lost"
                found.findings.append(Diagnostic("M006", Severity.NOTE, said, places.at("")))
            if any(each.code in ("M001", "M002") for each in found.findings):
                found.findings += [
                    Diagnostic(
                        "M007", Severity.ERROR, f"the new version refuses {refusal}", places.at("apiVersion")
                    )
                    for refusal in self.refusals(Chunk(chunk.file, chunk.line, done.text.encode()))
                ]
        subject = subject_of(value, source_of(chunk.content))
        if not isinstance(value.get("items"), list):
            found.findings = [replace(each, subject=subject) for each in found.findings]

    def _patch(self, obj: Json, places: Places, found: Migration) -> Json:
        """A strategic merge patch is not an object: defaults that a conversion makes explicit do not belong into it."""
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if isinstance(kind, str) and isinstance(api_version, str):
            self._told((api_version, kind), places.at("apiVersion"), found)
            hint = "a kustomize patch is not rewritten: bring it to the version of what it patches"
            found.findings = [
                replace(each, code="M003", hint=f"{hint}\n        {each.hint}" if each.hint else hint)
                for each in found.findings
            ]
        return obj

    def _object(self, obj: Json, below: str, places: Places, found: Migration) -> Json:
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(api_version, str):
            return obj
        items = obj.get("items")
        if kind == "List" and isinstance(items, list):
            new = [
                self._object(item, f"{below}/items/{index}", places, found)
                if isinstance(item, dict)
                else item
                for index, item in enumerate(items)
            ]
            return {**obj, "items": new}
        place = places.at("apiVersion", below)
        target = self._told((api_version, kind), place, found)
        self._rules(obj, below, places, found)
        self._pods(obj, below, places, found)
        self._volumes(obj, below, places, found)
        if target is None or self.converter is None:
            return self._references(obj, below, places, found)
        try:
            return self._references(converted(self.converter, obj, target[0]), below, places, found)
        except (ConversionError, AttributeError, TypeError, KeyError) as problem:
            said = f"{kind} of {api_version} cannot be converted: {problem}"
            found.findings.append(Diagnostic("M003", Severity.ERROR, said, place, "convert it by hand"))
            return obj

    def _told(self, key: Key, place: Location, found: Migration) -> Key | None:
        """Tells what the release makes of a kind; the version to convert to, where one is known."""
        life = self._life(key)
        if life is None:
            return None
        release = release_of(self.release)
        api_version, kind = key
        if life.is_to_come(release):
            said = f"{kind} of {api_version} is new in {life.introduced}; {self.release} does not have it"
            found.findings.append(Diagnostic("M004", Severity.ERROR, said, place))
            return None
        gone = life.is_gone(release)
        if not gone and not life.is_deprecated(release):
            return None
        target = self._successor(life, release)
        if gone:
            said = f"{kind} of {api_version} is gone{_since(life.removed)}"
        else:
            said = f"{kind} of {api_version} is deprecated{_since(life.deprecated)}"
            if life.removed:
                said += f" and goes with {life.removed}"
        severity = Severity.ERROR if gone else Severity.WARNING
        known = (
            target is not None
            and self.converter is not None
            and self.converter.knows(kind, api_version, target[0])
        )
        if target is not None:
            said += f"; use {target[0]}" + (f" {target[1]}" if target[1] != kind else "")
        else:
            said += " without a successor"
        code = ("M001" if gone else "M002") if known else "M003"
        hint = "\n        ".join(life.notes)
        found.findings.append(Diagnostic(code, severity, said, place, hint))
        return target if known else None

    def _life(self, key: Key) -> LifeCycle | None:
        return self.lifecycles.get(key) or self.unknown(key)

    def _successor(self, life: LifeCycle, release: Release) -> Key | None:
        """The end of the way of replacements that the release has."""
        best: Key | None = None
        seen: set[Key] = set()
        key = life.successor
        while key is not None and key not in seen:
            seen.add(key)
            next_life = self._life(key)
            if next_life is None:
                break
            if next_life.is_to_come(release):
                break
            if not next_life.is_gone(release):
                best = key
            key = next_life.successor
        return best

    def _references(
        self, obj: Json, below: str, places: Places, found: Migration, *, kustomization: bool = False
    ) -> Json:
        """References to a kind by apiVersion follow it; they hold no object, so only the version changes."""
        release = release_of(self.release)
        for reference in [*references(obj, kustomization=kustomization)]:
            life = self._life((reference.api_version, reference.kind))
            if life is None or not life.is_gone(release):
                continue
            target = self._successor(life, release)
            said = f"{reference.shown} names {reference.kind} of {reference.api_version}"
            said += f", which is gone{_since(life.removed)}"
            place = places.at(reference.shown, below)
            found.findings.append(Diagnostic("M005", Severity.ERROR, said, place))
            if target is not None and target[1] == reference.kind:
                obj = redirected(obj, reference, target[0])
        return obj

    def _rules(self, obj: Json, below: str, places: Places, found: Migration) -> None:
        """Roles and admission rules that speak of resources by a group, or a version of it, that is gone."""
        spoken = [*rules(obj)]
        covered = {(group, name) for rule in spoken for group in rule.groups for name in rule.resources}
        for rule in spoken:
            for group in rule.groups:
                names = {name.partition("/")[0] for name in rule.resources} - {_MATCHES_ALL}
                for name in sorted(names):
                    self._rule(rule, group, name, covered, places.at(rule.shown, below), found)

    def _rule(
        self, rule: ReferenceRule, group: str, name: str, covered: set[Key], place: Location, found: Migration
    ) -> None:
        kind = self.plurals.get((group, name))
        release = release_of(self.release)
        lives = {
            key: life
            for key, life in self.lifecycles.items()
            if key[1] == kind and key[0].rpartition("/")[0] == group
            and (not rule.versions or {_MATCHES_ALL, key[0].rpartition("/")[2]} & {*rule.versions})
        }  # fmt: skip
        if not lives or not all(life.is_gone(release) for life in lives.values()):
            return
        newest = max(lives, key=lambda key: release_of(lives[key].removed or "0"))
        target = self._successor(lives[newest], release)
        if target is not None:
            other, _, version = target[0].rpartition("/")
            said_there = rule.versions and version in rule.versions and other in rule.groups
            if said_there or (not rule.versions and {(other, name), (other, _MATCHES_ALL)} & covered):
                return
        said = f"{rule.shown} speaks of {name} of {newest[0] if rule.versions else group}"
        said += f", gone{_since(lives[newest].removed)}"
        said += f"; they are in {target[0]} now" if target is not None else ", without a successor"
        severity = Severity.WARNING if target is not None else Severity.NOTE
        found.findings.append(Diagnostic("M008", severity, said, place))

    def _pods(self, obj: Json, below: str, places: Places, found: Migration) -> None:
        """Fields of pods that the release does not know any more."""
        release = release_of(self.release)
        for way, name in pod_fields(obj, frozenset(_POD_FIELDS)):
            gone, hint = _POD_FIELDS[name]
            if release_of(gone) <= release:
                said = f"{shown((*way, name))} is gone since {gone}"
                found.findings.append(
                    Diagnostic("M009", Severity.WARNING, said, places.at(shown((*way, name)), below), hint)
                )

    def _volumes(self, obj: Json, below: str, places: Places, found: Migration) -> None:
        """Volumes of plugins that the release does not have any more."""
        release = release_of(self.release)
        for way, name in volumes(obj):
            plugin = PLUGINS[name]
            if release_of(plugin.gone) <= release:
                severity = Severity.NOTE if plugin.is_migrated else Severity.WARNING
                said = f"{shown(way)}: the plugin of {name} volumes is gone since {plugin.gone}"
                found.findings.append(
                    Diagnostic("M009", severity, said, places.at(shown(way), below), plugin.hint)
                )

    def _template(self, chunk: Chunk, before: str, found: Migration) -> None:
        """Judges a document that is not YAML yet: of a template, only what is literal and unconditional."""
        text = chunk.content.decode("utf-8", "replace")
        place = Location(chunk.file, "", chunk.line + 1, 1)
        if not _TEMPLATE.search(chunk.content):
            said = "the document is broken and was not judged; `kubewright validate` tells why"
            found.findings.append(Diagnostic("M010", Severity.WARNING, said, place))
            return
        versions, kinds = _API_VERSION.findall(text), _KIND.findall(text)
        first = _API_VERSION.search(text)
        if (
            len(versions) == len(kinds) == 1
            and first is not None
            and not _is_chosen(before + text[: first.start()])
        ):
            line = chunk.line + text.count("\n", 0, first.start()) + 1
            self._told((versions[0], kinds[0]), Location(chunk.file, "", line, 1), found)
            found.findings = [_unwritten(each) for each in found.findings]
            return
        if not versions and not _VERSION_LINE.search(text):
            return  # no object: helpers, values, notes
        said = "a template whose API version depends on its values was not judged; render it and look again"
        found.findings.append(Diagnostic("M010", Severity.NOTE, said, place))


def _is_chosen(text: str) -> bool:
    """Whether a template that begins like this goes on below a condition on what the cluster serves."""
    open_blocks: list[bool] = []
    for directive in _DIRECTIVE.finditer(text):
        word, asks = directive.group(1), bool(_CHOICE.search(directive.group(2)))
        if word == "end":
            del open_blocks[-1:]
        elif word != "else":
            open_blocks.append(asks)
        elif open_blocks:
            open_blocks[-1] |= asks
    return any(open_blocks)


def _since(release: str) -> str:
    """Since when, if somebody knows."""
    return f" since {release}" if release else ""


def _unwritten(finding: Diagnostic) -> Diagnostic:
    """A finding in a template, which nothing rewrites."""
    return replace(finding, code="M003") if finding.code in ("M001", "M002") else finding
