"""The reference as Markdown (CommonMark): a page for each group-version with an index, or all on one page.

Text of a description becomes one paragraph in which every character that Markdown or HTML would read is escaped; names
are in code spans. It cannot make structure, HTML, or links other than those of the web that it shows as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kubewright.ir.api import File
from kubewright.tools.docs.page import TOKEN, visible
from kubewright.tools.docs.reference import DocumentedVersion, KindEntry, Link, ReferencePages, Row

INDEX = "README.md"
_SPECIAL = re.compile(r"[\\`*_{}\[\]#~|!$@.:)+-]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_STEP = "  "
_MOST_USES = 60


def pages(content: ReferencePages) -> list[File]:
    """A page for each group-version, and the index."""
    places = {
        entry.anchor: f"{group.file}.md#{entry.anchor}"
        for group in content.group_versions
        for entry in group.kinds + group.parts
    }
    files = [File(INDEX, "".join(_index(content, places)))]
    for group in content.group_versions:
        own = {anchor: place.removeprefix(f"{group.file}.md") for anchor, place in places.items()}
        files.append(File(f"{group.file}.md", "".join(_group(group, own, "#"))))
    return files


def single_page(content: ReferencePages) -> str:
    """Everything on one page."""
    entries = [entry for group in content.group_versions for entry in group.kinds + group.parts]
    places = {entry.anchor: f"#{entry.anchor}" for entry in entries}
    parts = [*_index(content, places)]
    for group in content.group_versions:
        parts += ["\n", *_group(group, places, "##")]
    return "".join(parts)


def text(given: str) -> str:
    """A description on one line: words in backticks as code, addresses of the web as links, all else as ``plain``."""
    words = " ".join(visible(given).split())
    parts: list[str] = []
    place = 0
    for match in TOKEN.finditer(words):
        parts.append(_escaped(words[place : match.start()], begins=place == 0))
        parts.append(code(match[1]) if match[1] is not None else f"<{match[2]}>")
        place = match.end()
    return "".join([*parts, _escaped(words[place:], begins=place == 0)])


def plain(given: str) -> str:
    """``given`` on one line, as text that Markdown reads as nothing but text."""
    return _escaped(" ".join(visible(given).split()), begins=True)


def _escaped(words: str, *, begins: bool) -> str:
    words = "".join(_ENTITIES.get(character, character) for character in words)

    def escape(match: re.Match[str]) -> str:
        """Escapes what means something at this place: prose with a backslash in each word is no good to read."""
        character, before, after = match[0], words[: match.start()], words[match.end() :]
        if character in "-+":
            harmless = bool(before) or not begins
        elif character in ".)":
            harmless = not (begins and before.isdigit()) and not before.lower().endswith("www")
        else:
            harmless = character == ":" and after[:1] in ("", " ")
        return character if harmless else f"\\{character}"

    return _SPECIAL.sub(escape, words)


def code(given: str) -> str:
    """``given`` as a code span, with as many backticks around it as it takes."""
    words = " ".join(visible(given).split())
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {words} " if not words or words[0] in "` " or words[-1] in "` " else words
    return f"{fence}{inner}{fence}"


def _index(content: ReferencePages, places: Mapping[str, str]) -> Iterator[str]:
    yield f"# {plain(content.title)}\n"
    for group in content.group_versions:
        yield f"\n## {plain(group.name)}\n"
        for title, entries in (("Kinds", group.kinds), ("Other types", group.parts)):
            if entries:
                links = ", ".join(_link((entry.name, entry.anchor), places) for entry in entries)
                yield f"\n{title}: {links}\n"


def _group(group: DocumentedVersion, places: Mapping[str, str], level: str) -> Iterator[str]:
    yield f"{level} {plain(group.name)}\n"
    for entry in group.kinds + group.parts:
        yield from _entry(entry, places, level + "#")


def _entry(entry: KindEntry, places: Mapping[str, str], level: str) -> Iterator[str]:
    # Anchors are made of letters, digits, dots, dashes and underscores alone.
    yield f'\n<a id="{entry.anchor}"></a>\n\n{level} {plain(entry.name)}\n'
    if entry.deprecated:
        yield f"\n**Deprecated.** {text(entry.deprecated)}\n"
    if entry.doc:
        yield f"\n{text(entry.doc)}\n"
    if entry.about:
        yield "\n" + "".join(f"- {label}: {' '.join(map(code, words))}\n" for label, words in entry.about)
    if entry.versions:
        yield f"\nAlso in {', '.join(_link(link, places) for link in entry.versions)}\n"
    if not entry.rows:
        yield f"\nType: {_type(entry.type, places)}\n"
    if said := _said(entry.facts, entry.rules):
        yield "\n" + "".join(f"- {line}\n" for line in said)
    if entry.rows:
        yield f"\n{level}# Fields\n\n"
        for row in entry.rows:
            yield from _row(row, places, "")
    if entry.used:
        more = f" and {len(entry.used) - _MOST_USES} more places" if len(entry.used) > _MOST_USES else ""
        yield f"\nAppears in {', '.join(_link(link, places) for link in entry.used[:_MOST_USES])}{more}\n"


def _row(row: Row, places: Mapping[str, str], indent: str) -> Iterator[str]:
    marks = "".join(
        f", **{word}**" for word, on in (("required", row.required), ("deprecated", row.deprecated)) if on
    )
    yield f"{indent}- {code(row.name)} {_type(row.type, places)}{marks}\n"
    inner = indent + _STEP
    if row.doc:
        yield f"\n{inner}{text(row.doc)}\n\n"
    for line in _said(row.facts, row.rules):
        yield f"{inner}- {line}\n"
    for child in row.children:
        yield from _row(child, places, inner)


def _said(facts: tuple[tuple[str, tuple[str, ...]], ...], rules: tuple[tuple[str, str], ...]) -> list[str]:
    lines = [f"{label} {' '.join(map(code, words))}" for label, words in facts]
    return lines + [
        f"rule {code(rule)}" + (f": {text(message)}" if message else "") for rule, message in rules
    ]


def _type(parts: tuple[Link, ...], places: Mapping[str, str]) -> str:
    return "".join(_link(part, places) if part[1] else plain(part[0]) for part in parts)


def _link(link: Link, places: Mapping[str, str]) -> str:
    return f"[{plain(link[0])}]({places[link[1]]})"
