"""Findings of any tool, in the forms that people and machines read.

Text for terminals; JSON, one object a finding; SARIF 2.1.0 for code scanning; JUnit XML for test reports; GitHub
workflow commands for annotations. All take ``Diagnostic``s, in order, and give the whole text.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from apimachinery.meta.version import SITE, VERSION
from kubewright.diagnostics import Diagnostic, NamedObject, Severity, escaped, printable
from kubewright.location import Location

Subjects = Sequence[tuple[Location, NamedObject]]
_SARIF_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PAGES: Final = {"L": "reference/lint.html", "K": "diagnostics.html"}
"""First letter of a code → the page of the documentation that explains it."""
_GITHUB_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def text(findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()) -> str:
    """One finding a line, its hint below it. On a terminal the severity is coloured, and the line of the file that a
    finding speaks of is shown with a caret; in a pipe nothing but plain lines."""
    if not on_terminal():
        return "".join(f"{finding}\n" for finding in findings)
    files: dict[str, list[str]] = {}
    return "".join(_with_excerpt(finding, files) for finding in findings)


_COLOURS: Final = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_EXCERPT_WIDTH: Final = 160


def on_terminal() -> bool:
    """Whether people look at standard output. ``NO_COLOR`` (https://no-color.org) says that it stays plain,
    ``FORCE_COLOR`` (https://force-color.org) that a log shows colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _with_excerpt(finding: Diagnostic, files: dict[str, list[str]]) -> str:
    first, _, rest = str(finding).partition("\n")
    word = f"{finding.severity.value} {finding.code}"
    shown = first.replace(word, f"\033[1;{_COLOURS[finding.severity]}m{word}\033[0m", 1) + "\n"
    place = finding.location
    if place.line:
        if place.file not in files:
            files[place.file] = _lines_of(place.file)
        if place.line <= len(files[place.file]):
            line = printable(files[place.file][place.line - 1][:_EXCERPT_WIDTH])
            number = str(place.line)
            caret = f"{' ' * (len(number) + 3)}{' ' * (max(1, place.column) - 1)}\033[1;32m^\033[0m\n"
            shown += f"{number} | {line}\n{caret if place.column <= _EXCERPT_WIDTH else ''}"
    return shown + (f"{rest}\n" if rest else "")


def _lines_of(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError):
        return []


def as_json(findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()) -> str:
    """``{"findings": [...], "summary": {...}}``."""
    rows = [
        {
            "code": f.code,
            "severity": f.severity.value,
            "message": f.message,
            "file": f.location.file,
            "line": f.location.line,
            "column": f.location.column,
            "pointer": f.location.pointer,
            "hint": f.hint,
            **({"object": _object(f.subject)} if f.subject else {}),
        }
        for f in findings
    ]
    summary = {s.value: sum(f.severity is s for f in findings) for s in Severity}
    return json_text({"findings": rows, "summary": summary})


def _object(subject: NamedObject) -> dict[str, str]:
    parts = {name: getattr(subject, name) for name in ("kind", "namespace", "name", "source")}
    return {name: text for name, text in parts.items() if text}


def sarif(findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()) -> str:
    """SARIF 2.1.0 (OASIS); ``rules`` gives the short description of each code."""
    used = sorted({f.code for f in findings})
    results: list[dict[str, Any]] = []
    for f in findings:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(f.location.file))}}
        if f.location.line:
            place["region"] = {"startLine": f.location.line, "startColumn": max(1, f.location.column)}
        results.append(
            {
                "ruleId": f.code,
                "level": _SARIF_LEVEL[f.severity],
                "message": {"text": f"{f.message}\n{f.hint}" if f.hint else f.message},
                "locations": [{"physicalLocation": place, **_logical(f.subject)}],
                "partialFingerprints": {"kubewright/v1": _fingerprint(f)},
            }
        )
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kubewright",
                        "version": VERSION,
                        "informationUri": SITE,
                        "rules": [_rule(code, rules.get(code, code)) for code in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json_text(log)


def _rule(code: str, text: str) -> dict[str, Any]:
    """A rule as SARIF describes it: its name is the description in Pascal case, as viewers expect."""
    words = re.findall(r"[A-Za-z0-9]+", text.replace("'s", ""))
    return {
        "id": code,
        "name": "".join(word[:1].upper() + word[1:] for word in words),
        "shortDescription": {"text": text},
        "help": {"text": f"{code}: {text}"},
        "helpUri": f"{SITE}/{_PAGES.get(code[0], 'tools.html')}{f'#{code.lower()}' if code[0] == 'L' else ''}",
    }


def _logical(subject: NamedObject | None) -> dict[str, Any]:
    if subject is None or not str(subject):
        return {}
    name = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    whole = {"name": name or subject.kind, "fullyQualifiedName": str(subject), "kind": "object"}
    return {"logicalLocations": [whole]}


def _fingerprint(finding: Diagnostic) -> str:
    """The same for a finding as long as its file, object and message are; lines move too easily."""
    parts = (finding.location.file, finding.code, str(finding.subject or ""), finding.message)
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


# What JSON and XML let pass and a terminal obeys: DEL, C1, line separators, marks of the writing direction.
_STEERING: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_text(value: Any) -> str:
    """A report as JSON that no terminal obeys."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def junit(findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()) -> str:
    """JUnit XML: a test case for each object judged, and for each file with findings of no object; one failure an
    error; warnings and notes go to system-out."""
    # Not above: it draws half of the standard library's network modules in, which every start would pay for.
    from xml.sax.saxutils import quoteattr

    cases: dict[tuple[str, str, int], list[Diagnostic]] = {}
    starts: dict[tuple[str, str], list[int]] = {}
    for place, subject in subjects:
        cases[place.file, str(subject), place.line] = []
        starts.setdefault((place.file, str(subject)), []).append(place.line)
    for f in findings:
        subject_text = str(f.subject or "")
        before = [line for line in starts.get((f.location.file, subject_text), ()) if line <= f.location.line]
        known = (f.location.file, subject_text, max(before)) if before else (f.location.file, "", 0)
        cases.setdefault(known, []).append(f)
    failed = sum(any(f.severity is Severity.ERROR for f in group) for group in cases.values())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="kubewright" tests="{len(cases)}" failures="{failed}">',
    ]
    for (file, subject_text, _), group in cases.items():
        name, of_class = quoteattr(_clean(subject_text or file)), quoteattr(_clean(file))
        lines.append(
            f"  <testcase classname={of_class if subjects else quoteattr('kubewright')} name={name}>"
        )
        lines += _junit_findings(group)
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return (
        _STEERING.sub(lambda found: f"&#x{ord(found[0]):x};", "\n".join(lines)).replace("\r", "&#xd;") + "\n"
    )


def _junit_findings(group: Sequence[Diagnostic]) -> Iterable[str]:
    from xml.sax.saxutils import escape, quoteattr

    for f in group:
        if f.severity is not Severity.ERROR:
            yield f"    <system-out>{escape(_clean(str(f)))}</system-out>"
        else:
            message = quoteattr(_clean(f"{f.code}: {f.message}"))
            yield f"    <failure type={quoteattr(f.code)} message={message}>{escape(_clean(str(f)))}</failure>"


def github(findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()) -> str:
    """GitHub workflow commands, which become annotations on the changed lines."""
    lines = []
    for f in findings:
        where = f"file={_property(f.location.file)}"
        if f.location.line:
            where += f",line={f.location.line},col={f.location.column}"
        said = escaped(f"{f.text}\n{f.hint}" if f.hint else f.text)
        data = said.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        lines.append(f"::{_GITHUB_LEVEL[f.severity]} {where},title={f.code}::{data}\n")
    return "".join(lines)


class ReportFormat(Protocol):
    """A form of a report. ``subjects`` are the objects that were judged, those without findings too."""

    def __call__(
        self, findings: Sequence[Diagnostic], rules: Mapping[str, str], subjects: Subjects = ()
    ) -> str:
        """The report as text."""


FORMATS: Final[dict[str, ReportFormat]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "junit": junit,
    "github": github,
}


def report_unusable(faults: Iterable[Diagnostic], form: str) -> None:
    """Says why an input cannot be used: people read it on standard error, machines where they expect findings."""
    out = sys.stderr if form == "text" else sys.stdout
    out.write(FORMATS[form]([*faults], {}))


def count(findings: Iterable[Diagnostic]) -> str:
    """``3 errors, 1 warning, 2 notes``; ``no findings`` where there are none."""
    listed = [*findings]
    parts = []
    for severity in Severity:
        number = sum(f.severity is severity for f in listed)
        if number:
            parts.append(f"{number} {severity.value}{'s' * (number != 1)}")
    return ", ".join(parts) or "no findings"


_MARKUP: Final = {ord(char): f"&#{ord(char)};" for char in "\\\\`*_[]<>&|~!"} | {
    ord("@"): "@&#8203;",
    ord("#"): "#&#8203;",
}


def markdown(value: str) -> str:
    """Text of a spec inside Markdown, a table cell included: one line, and none of it markup. What would be marked
    up is written as character references; a mention or a reference to an issue is broken by a space of no width."""
    flat = " ".join(escaped(" ".join(value.split())).split()).translate(_MARKUP)
    return flat.replace("://", "&#58;//").replace("www.", "www&#46;")


class Progress:
    """A line on a terminal that is written over."""

    def __init__(self, total: int, *, shown: bool = True) -> None:
        self._total = total
        self._percent = -1
        self._shown = shown

    def __call__(self, done: int) -> None:
        """Says how many documents are done."""
        percent = done * 100 // max(1, self._total)
        if self._shown and percent != self._percent:
            self._percent = percent
            print(f"\r{done}/{self._total} documents ({percent} %)", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def progress(total: int, *, quiet: bool) -> Progress:
    """The progress of work on ``total`` documents, shown where standard error is a terminal."""
    return Progress(total, shown=not quiet and sys.stderr.isatty())


def _clean(value: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return _NOT_XML.sub("\ufffd", value)


def _property(value: str) -> str:
    for raw, written in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        value = value.replace(raw, written)
    return escaped(value)
