"""L4: what the descriptions say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.tools.lint.places import Place
from kubewright.tools.lint.rule import CONVENTIONS, CRD, LintedKind, kind_rule, place_rule

_LEFTOVER: Final = re.compile(
    r"INSERT ADDITIONAL|make\" to regenerate|Edit \w+_types\.go|foo is an example field|\bTODO\b|\bFIXME\b|\bXXX\b"
)
_STANDARD: Final = frozenset({"apiVersion", "kind", "metadata"})


@place_rule(
    "L401 described",
    why="`kubectl explain` shows the description; without one it shows nothing.",
    source=f"{CONVENTIONS}: Documentation",
    hint="say what the field does, what its default is and what it must be",
)
def described(place: Place, kind: LintedKind) -> Iterator[str]:
    """Every field is described."""
    if place.name and not place.doc.strip() and not (place.parent is None and place.name in _STANDARD):
        yield f'"{place.path}" has no description'


@kind_rule(
    "L402 kind-described",
    why="The description of the kind is what `kubectl explain` begins with.",
    source=f"{CONVENTIONS}: Documentation",
    hint="say what an object of the kind stands for",
)
def kind_described(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Every kind is described."""
    if not kind.definition.value.doc.strip():
        yield None, f"kind {kind.resource.kind} has no description"


@place_rule(
    "L403 begins-with-name",
    severity=Severity.NOTE,
    why="A description that begins with the field's name reads as a sentence wherever it is quoted.",
    source=f"{CONVENTIONS}: Documentation",
    hint="begin with the JSON name of the field",
)
def begins_with_name(place: Place, kind: LintedKind) -> Iterator[str]:
    """A description begins with its field's name."""
    text = place.value.doc.strip()
    if place.name and text and not place.in_metadata and place.name not in _STANDARD:
        if not text.lstrip("`'\"").lower().startswith(place.name.lower()):
            yield f'the description of "{place.path}" does not begin with "{place.name}"'


@place_rule(
    "L404 leftover-text",
    why="Text of a scaffold, or a note to oneself, tells users nothing.",
    source=f"{CONVENTIONS}: Documentation",
    hint="rewrite the description",
)
def leftover_text(place: Place, kind: LintedKind) -> Iterator[str]:
    """No scaffold text or notes to oneself."""
    found = _LEFTOVER.search(place.value.doc)
    if found is not None:
        yield f'the description of "{place.path}" has "{found[0]}" in it'


@place_rule(
    "L405 deprecation-form",
    severity=Severity.NOTE,
    why="Tools and readers look for the word at the start of a line.",
    source=f"{CONVENTIONS}: Documentation (deprecated fields)",
    hint='begin a line with "Deprecated:" and say what to use instead',
)
def deprecation_form(place: Place, kind: LintedKind) -> Iterator[str]:
    """Deprecation is announced as `Deprecated: …`."""
    text, name = place.value.doc, re.escape(place.name) or "it"
    subject = rf"(this|this (field|property|option|kind|type)|{name}|field)"
    said = re.search(rf"\b{subject} (is|has been) deprecated\b", text, re.IGNORECASE)
    begins = place.name != "deprecated" and re.match(r"deprecated\b", text, re.IGNORECASE)
    if (said or begins) and not re.search(r"\bdeprecated:", text, re.IGNORECASE):
        yield f'"{place.path}" is deprecated, but no line begins with "Deprecated:"'


@place_rule(
    "L406 enum-explained",
    severity=Severity.NOTE,
    profiles=CRD,
    why="The names of values alone seldom say what they do.",
    source=f"{CONVENTIONS}: Documentation; Constants",
    hint="name each value in the description",
)
def enum_explained(place: Place, kind: LintedKind) -> Iterator[str]:
    """The description names the values of an enum."""
    values = [v for v in place.value.constraints.enum if isinstance(v, str) and v]
    missing = [v for v in values if v not in place.doc]
    if place.name and len(values) > 1 and place.doc and len(missing) == len(values):
        yield f'the description of "{place.path}" explains none of its values'
