"""Which objects of a document a release does not have any more, what they become, and what is left to a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apimachinery.conversion import ConversionError, Converter
from apimachinery.wire import json as wire_json
from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostic, Severity
from kubewright.location import Location
from kubewright.tools.migrating.conversions import converted
from kubewright.tools.migrating.lifecycle import Key, LifeCycle, Release, release_of
from kubewright.tools.migrating.rewrite import rewrite
from kubewright.tools.validating.inputs import Chunk
from kubewright.tools.validating.places import Places

Json = dict[str, Any]
CODES = {
    "M001": "an API version that the release does not have any more",
    "M002": "an API version that is deprecated in the release",
    "M003": "gone or deprecated, and left to a person: without a successor, or in a template",
    "M004": "an API version that the release does not have yet",
    "M005": "a reference to an API version that is gone",
    "M006": "rewritten without comments and order",
    "M010": "a template or broken document that was not judged",
}
"""Code → what it says, for reports."""

_TEMPLATE = re.compile(rb"\{\{")
_API_VERSION = re.compile(r"""^apiVersion:[ \t]*["']?([\w.\-/]+)["']?[ \t]*(?:#.*)?$""", re.MULTILINE)
_KIND = re.compile(r"""^kind:[ \t]*["']?(\w+)["']?[ \t]*(?:#.*)?$""", re.MULTILINE)
_CONTROL = re.compile(r"^\s*\{\{-?\s*(?:if|else|range|with|end|define)\b", re.MULTILINE)
_REFERENCES = ("scaleTargetRef",)


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

    def document(self, chunk: Chunk) -> Migration:
        """Judges one document; raises nothing for any input."""
        found = Migration()
        try:
            json_form = chunk.content.lstrip()[:1] == b"{" and not _TEMPLATE.search(chunk.content)
            value = wire_json.decode(chunk.content) if json_form else wire_yaml.decode(chunk.content)
        except (DecodeFault, RecursionError, ValueError):
            self._template(chunk, found)
            return found
        if not isinstance(value, dict):
            return found
        places = Places(chunk, value)
        new = self._object(value, "", places, found)
        if new != value:
            text = chunk.content.decode("utf-8-sig")
            done = rewrite(text, value, new)
            found.text = done.text
            if not done.kept:
                said = "this document has to be written anew; its comments and order are lost"
                found.findings.append(Diagnostic("M006", Severity.NOTE, said, places.at("")))
        return found

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
        life = self.lifecycles.get(key)
        if life is None:
            return None
        release = release_of(self.release)
        api_version, kind = key
        if life.introduced and release_of(life.introduced) > release:
            said = f"{kind} of {api_version} is new in {life.introduced}; {self.release} does not have it"
            found.findings.append(Diagnostic("M004", Severity.ERROR, said, place))
            return None
        gone = bool(life.removed) and release_of(life.removed) <= release
        if not gone and not (life.deprecated and release_of(life.deprecated) <= release):
            return None
        target = self._successor(life, release)
        if gone:
            said = f"{kind} of {api_version} is gone since {life.removed}"
        else:
            said = f"{kind} of {api_version} is deprecated since {life.deprecated}"
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

    def _successor(self, life: LifeCycle, release: Release) -> Key | None:
        """The end of the way of replacements that the release has."""
        best: Key | None = None
        seen: set[Key] = set()
        key = life.successor
        while key is not None and key not in seen:
            seen.add(key)
            next_life = self.lifecycles.get(key)
            if next_life is None:
                break
            if next_life.introduced and release_of(next_life.introduced) > release:
                break
            if not next_life.removed or release_of(next_life.removed) > release:
                best = key
            key = next_life.successor
        return best

    def _references(self, obj: Json, below: str, places: Places, found: Migration) -> Json:
        """References to a kind by apiVersion follow it; they hold no object, so only the version changes."""
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return obj
        for name in _REFERENCES:
            reference = spec.get(name)
            if not isinstance(reference, dict):
                continue
            key = (str(reference.get("apiVersion")), str(reference.get("kind")))
            life = self.lifecycles.get(key)
            release = release_of(self.release)
            if life is None or not life.removed or release_of(life.removed) > release:
                continue
            target = self._successor(life, release)
            said = f"spec.{name} names {key[1]} of {key[0]}, which is gone since {life.removed}"
            place = places.at(f"spec.{name}.apiVersion", below)
            found.findings.append(Diagnostic("M005", Severity.ERROR, said, place))
            if target is not None:
                obj = {**obj, "spec": {**spec, name: {**reference, "apiVersion": target[0]}}}
        return obj

    def _template(self, chunk: Chunk, found: Migration) -> None:
        """A document that is no YAML yet. Of a template only what stands literally and unconditionally is told."""
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
            and not _CONTROL.search(text[: first.start()])
        ):
            line = chunk.line + text.count("\n", 0, first.start()) + 1
            self._told((versions[0], kinds[0]), Location(chunk.file, "", line, 1), found)
            found.findings = [
                replace(each, code="M003") if each.code in ("M001", "M002") else each
                for each in found.findings
            ]
            return
        said = "a template whose API version depends on its values was not judged; render it and look again"
        found.findings.append(Diagnostic("M010", Severity.NOTE, said, place))


def _unwritten(finding: Diagnostic) -> Diagnostic:
    """A finding in a template, which nothing rewrites."""
    return replace(finding, code="M003") if finding.code in ("M001", "M002") else finding
