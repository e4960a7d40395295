"""Reads ``published.yaml``: what OpenAPI documents say of fields besides what definitions and checks do."""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics
from kubewright.ir.rules import PublishedField
from kubewright.location import Document, escape_pointer
from kubewright.source.rule_reader import RuleReader


def read_published(document: Document, diagnostics: Diagnostics) -> tuple[PublishedField, ...]:
    """The facts of ``published.yaml``."""
    reader = RuleReader(document, diagnostics)
    found = []
    for definition, entry in reader.mapping(document.value, "").items():
        pointer = f"/{escape_pointer(definition)}"
        for name, facts in reader.mapping(entry, pointer).items():
            place = f"{pointer}/{escape_pointer(name)}"
            facts = reader.mapping(facts, place)
            reader.only(facts, {"enum", "default"}, place)
            words = None
            if "enum" in facts:
                words = tuple(map(str, reader.list_of(facts["enum"], f"{place}/enum")))
            default = (facts["default"],) if "default" in facts else ()
            found.append(PublishedField(definition=definition, name=name, words=words, default=default))
    return tuple(found)
