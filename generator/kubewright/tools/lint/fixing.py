"""``lint --fix``: the faults for which a rule knows a correction that changes no object's meaning.

A fix edits the one document that a finding is in, and leaves order and comments as they are. What an object may hold,
how it is stored and how its lists merge is the same before and after, with one exception: L303 drops a requirement.
Faults whose correction is a decision (a name, a bound, a merge strategy) have no fix.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostics
from kubewright.location import unescape_pointer
from kubewright.tools.lint.bounds import KEYWORDS, camel
from kubewright.tools.lint.rule import UNUSED
from kubewright.tools.lint.run import Finding
from kubewright.tools.lint.suppress import COMMENT
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.validate.inputs import split

Fix: TypeAlias = Callable[[dict[str, Any], str], None]
"""Changes a document, given the pointer of a finding; leaves it alone where it is not what was expected."""

FIXES: Final[dict[str, Fix]] = {}
"""Code → fix. The docstring is what ``--explain`` says."""

_VERSION: Final = re.compile(r"/spec/versions/\d+")
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_FORMS: Final = {"integer": "number", "array": "list"}


@dataclass(slots=True)
class Fixed:
    """What a run of ``apply`` did: findings gone by code, and those whose document could not be edited in place."""

    count: int = 0
    files: set[str] = field(default_factory=set)
    left: list[Finding] = field(default_factory=list)


def _fix(*codes: str) -> Callable[[Fix], Fix]:
    def register(fix: Fix) -> Fix:
        FIXES.update(dict.fromkeys(codes, fix))
        return fix

    return register


def at(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer, or None."""
    for step in pointer.split("/")[1:]:
        if isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        elif isinstance(document, dict):
            document = document.get(unescape_pointer(step))
        else:
            return None
    return document


@_fix(UNUSED.code)
def comment(document: dict[str, Any], pointer: str) -> None:
    """takes the code out of the comment, or the comment"""


@_fix("L107")
def singular(document: dict[str, Any], pointer: str) -> None:
    """sets spec.names.singular to the kind in lower case"""
    names = at(document, "/spec/names")
    if isinstance(names, dict) and names.get("singular"):
        names["singular"] = str(names.get("kind")).lower()


@_fix("L209")
def atomic(document: dict[str, Any], pointer: str) -> None:
    """says atomic, which is how a list without a list type merges"""
    schema = at(document, pointer)
    if isinstance(schema, dict) and schema.get("type") == "array":
        schema.setdefault("x-kubernetes-list-type", "atomic")


@_fix("L218", "L303")
def optional(document: dict[str, Any], pointer: str) -> None:
    """takes the field out of the required ones"""
    above, _, name = pointer.rpartition("/properties/")
    schema, name = at(document, above), unescape_pointer(name)
    if isinstance(schema, dict) and name in (schema.get("required") or ()):
        schema["required"] = [each for each in schema["required"] if each != name]
        if not schema["required"]:
            del schema["required"]


@_fix("L228")
def once(document: dict[str, Any], pointer: str) -> None:
    """takes the second one out"""
    schema = at(document, pointer)
    for keyword in ("enum", "x-kubernetes-list-map-keys"):
        listed = schema.get(keyword) if isinstance(schema, dict) else None
        if isinstance(listed, list):
            kept: list[Any] = []
            for value in listed:
                if not any(value == other and type(value) is type(other) for other in kept):
                    kept.append(value)
            schema[keyword] = kept


@_fix("L229")
def sized(document: dict[str, Any], pointer: str) -> None:
    """sets the format int64, in which every integer that was accepted fits"""
    schema = at(document, pointer)
    if isinstance(schema, dict) and schema.get("type") == "integer":
        schema.setdefault("format", "int64")


@_fix("L230")
def no_idle_keyword(document: dict[str, Any], pointer: str) -> None:
    """takes the keyword out"""
    schema = at(document, pointer)
    if isinstance(schema, dict) and isinstance(schema.get("type"), str):
        form = _FORMS.get(schema["type"], schema["type"])
        idle = {camel(name) for other, names in KEYWORDS.items() if other != form for name in names}
        for keyword in idle & schema.keys():
            del schema[keyword]


@_fix("L312")
def age(document: dict[str, Any], pointer: str) -> None:
    """adds the column Age"""
    version = _VERSION.match(pointer)
    for place in (version[0] if version else "/spec", "/spec"):
        owner = at(document, place)
        columns = owner.get("additionalPrinterColumns") if isinstance(owner, dict) else None
        if isinstance(columns, list) and columns:
            path = "JSONPath" if "JSONPath" in columns[0] else "jsonPath"
            columns.append({"name": "Age", "type": "date", path: ".metadata.creationTimestamp"})
            return


@_fix("L317")
def wording(document: dict[str, Any], pointer: str) -> None:
    """takes the full stop off the end of a message of one line"""
    schema = at(document, pointer)
    rules = schema.get("x-kubernetes-validations") if isinstance(schema, dict) else None
    for rule in rules if isinstance(rules, list) else ():
        message = rule.get("message") if isinstance(rule, dict) else None
        if isinstance(message, str) and "\n" not in message.strip():
            rule["message"] = message.strip().rstrip(".") or message


def apply(findings: Iterable[Finding]) -> Fixed:
    """Fixes what has a fix, file by file; what a fix may bring to light needs another run. A file is written once,
    whole. A document that cannot be edited without losing its comments is left as it is. Raises ``OSError`` where a
    file cannot be read or written."""
    of_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule.code in FIXES and finding.diagnostic.location.line:
            of_file.setdefault(finding.diagnostic.location.file, []).append(finding)
    fixed = Fixed()
    for file, found in sorted(of_file.items()):
        path = Path(file)
        if not path.is_file():
            continue  # standard input, or an input without files
        content = path.read_bytes()
        comments = [each for each in found if each.rule is UNUSED]
        # Comments first and alone: the other findings name lines below them.
        written = _without(content, comments) if comments else _file(content, file, found, fixed)
        if written != content:
            path.write_bytes(written)
            fixed.files.add(file)
            fixed.count += len(comments)
    return fixed


def _file(content: bytes, file: str, findings: list[Finding], fixed: Fixed) -> bytes:
    """A file's content with its findings fixed, from the last document to the first: what is above stays in place."""
    starts = [0]
    for text in content.split(b"\n"):
        starts.append(starts[-1] + len(text) + 1)
    for chunk in reversed(split(content, file, Diagnostics())):
        own = [each for each in findings if each.diagnostic.location.line > chunk.line]
        findings = [each for each in findings if each.diagnostic.location.line <= chunk.line]
        start = content.index(chunk.content, starts[chunk.line])
        content = (
            content[:start] + _document(chunk.content, own, fixed) + content[start + len(chunk.content) :]
        )
    return content


def _document(content: bytes, findings: list[Finding], fixed: Fixed) -> bytes:
    """One document with its findings fixed, or as it is where comments would be lost."""
    if not findings:
        return content
    try:
        old = wire_yaml.decode(content)
    except DecodeFault:  # of a form that is read by other rules: YAML 1.2
        fixed.left += findings
        return content
    new = copy.deepcopy(old)
    done = []
    for finding in findings:
        before = copy.deepcopy(new)
        FIXES[finding.rule.code](new, finding.diagnostic.location.pointer)
        if new != before:
            done.append(finding)
    if new == old:
        return content
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    text = content.decode("utf-8-sig")
    rewritten = rewrite(text, old, new)
    if not rewritten.kept or Counter(_COMMENT.findall(text)) - Counter(_COMMENT.findall(rewritten.text)):
        fixed.left += done
        return content
    fixed.count += len(done)
    return mark + rewritten.text.encode()


def _without(content: bytes, findings: list[Finding]) -> bytes:
    """The content without the idle codes of its comments; a comment without codes goes, with what it says."""
    lines: list[str | None] = [*content.decode("utf-8-sig").split("\n")]
    for finding in findings:
        number, code = finding.diagnostic.location.line - 1, finding.path.rpartition(" ")[2]
        line = lines[number]
        said = COMMENT.search(line) if line is not None else None
        if line is None or said is None:
            continue
        codes = [each.strip() for each in said[1].split(",") if each.strip() != code]
        if codes:
            lines[number] = line[: said.start(1)] + ", ".join(codes) + line[said.end(1) :]
        else:
            end = "\r" if line.endswith("\r") else ""
            lines[number] = line[: said.start()].rstrip() + end if line[: said.start()].strip() else None
    return "\n".join(line for line in lines if line is not None).encode()
