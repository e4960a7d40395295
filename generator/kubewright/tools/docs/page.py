"""The reference as one HTML page that needs nothing else: no network, no other file.

Every text of a description is escaped by the template. The page carries a policy that lets only its own script and
style run, by their hashes, so that even a fault here could run nothing of a description.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from kubewright.emit.code.render import render_page, template_text
from kubewright.tools.docs.reference import KindEntry, ReferencePages
from kubewright.tools.docs.skeleton import skeleton

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Controls, and marks that turn the direction of what follows: they could make a reader see another text."""
TOKEN = re.compile(r"`([^`\n]{1,200})`|(https?://[^\s<>\"'`\\^{}|]{1,500}[^\s<>\"'`\\^{}|.,;:!?)\]])")
"""What of a description is more than letters: `code`, and addresses of the web."""


def page(content: ReferencePages) -> str:
    """The page."""
    entries = {entry.anchor: entry for g in content.group_versions for entry in (*g.kinds, *g.parts)}
    style, script = template_text("reference_style"), template_text("reference_script")
    return render_page(
        "reference",
        reference=content,
        count=sum(len(g.kinds) + len(g.parts) for g in content.group_versions),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        prose=prose,
        visible=visible,
        skeleton=lambda entry: skeleton(entry, entries),
        first_sentence=first_sentence,
        example=example_path(content, entries),
    )


def first_sentence(text: str) -> str:
    """The first sentence of a description, shortened where it has no end."""
    sentence = re.split(r"(?<=[.!?])\s|\n\s*\n", text.strip(), maxsplit=1)[0]
    return sentence if len(sentence) <= 200 else f"{sentence[:199]}…"


def example_path(content: ReferencePages, entries: Mapping[str, KindEntry]) -> str:
    """A path that the search of this page finds: a kind, and one or two of its own fields."""
    kinds = [entry for group in content.group_versions for entry in group.kinds]
    best = next((entry for entry in kinds if entry.name == "Pod"), kinds[0] if kinds else None)
    if best is None:
        return "spec"
    words = [best.name.lower()]
    rows = best.rows
    for _ in range(2):
        own = [row for row in rows if row.name not in ("apiVersion", "kind", "metadata", "status")]
        row = next((row for row in own if row.name in ("spec", "containers")), own[0] if own else None)
        if row is None:
            break
        words.append(row.name)
        rows = row.children or (entries[row.unfolds].rows if row.unfolds in entries else ())
    return ".".join(words)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def visible(text: str) -> str:
    """``text`` with characters that nobody sees written as their code points."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def prose(text: str) -> Markup:
    """A description: paragraphs as they are, words in backticks as code, addresses of the web as links."""
    text = visible(text.strip())
    parts: list[Markup] = []
    place = 0
    for match in TOKEN.finditer(text):
        parts.append(escape(text[place : match.start()]))
        if match[1] is not None:
            parts.append(Markup("<code>{}</code>").format(match[1]))
        else:
            parts.append(Markup('<a href="{0}" rel="noopener noreferrer">{0}</a>').format(match[2]))
        place = match.end()
    parts.append(escape(text[place:]))
    return Markup("").join(parts)
