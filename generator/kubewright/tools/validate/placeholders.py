"""Values of a repository that are to be filled in before anybody applies them: ``${REGISTRY}``, ``kibana.{{DOMAIN}}``.

Nobody has sent such a value to a server, so what a server would say of it is no finding. Files that are named one by
one, and standard input, are judged as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kubewright.diagnostics import Diagnostic, Severity
from kubewright.location import Location, unescape_pointer
from kubewright.tools.inputs.projects import LEFT_OUT
from kubewright.tools.validate.inputs import Chunk, decoded

_PLACEHOLDER = re.compile(
    r"""\$\{ | \$\([\w.-]+\) | \{\{.*\}\} | \$\$\w+\$\$ | ^\$[A-Z_]+$ | @[A-Z_]+@ | <\ ?[A-Za-z][\w -]*> | ^\(.*\)$
    | \b__[A-Z][A-Z0-9_]*__\b""",
    re.VERBOSE | re.DOTALL,
)
"""Of shells, make, Go templates, sed scripts, prose, and the expressions of chainsaw."""
_CAPITALS = re.compile(r"[A-Z]{2,}(?:[ _][A-Z]{2,})+")
"""A sentence in the place of a name: ``FILLED BY THE OPERATOR``."""
_QUOTED = re.compile(r'Invalid value: "((?:[^"\\]|\\.)*)"')
_MAY_HOLD = re.compile(rb"\$|\{\{|@[A-Z_]+@|< ?[A-Za-z]|\(\w|__[A-Z]|[A-Z]{2}[ _][A-Z]{2}")


def without_placeholders(chunk: Chunk, findings: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings of a document, those at values to fill in replaced by one note."""
    findings = list(findings)
    value = decoded(chunk) if findings and _MAY_HOLD.search(chunk.content) else None
    if value is None:
        yield from findings
        return
    unfilled = [each for each in findings if _is_at_placeholder(value, each)]
    yield from (each for each in findings if each not in unfilled)
    if unfilled:
        place = unfilled[0].location
        number = len({each.location for each in unfilled})
        said = f"{number} values to be filled in" if number > 1 else "a value to be filled in"
        where = Location(place.file, place.pointer, place.line, place.column)
        yield Diagnostic(LEFT_OUT, Severity.NOTE, f"{said}: not judged", where, subject=unfilled[0].subject)


def is_unfilled(finding: Diagnostic) -> bool:
    """Whether a finding quotes a value to fill in."""
    quoted = _QUOTED.search(finding.message)  # a label's value, say, whose finding is of all labels
    return quoted is not None and bool(_PLACEHOLDER.search(quoted[1]) or _CAPITALS.fullmatch(quoted[1]))


def _is_at_placeholder(value: Any, finding: Diagnostic) -> bool:
    if is_unfilled(finding):
        return True
    for token in finding.location.pointer.split("/")[1:]:
        token = unescape_pointer(token)
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return False
    if not isinstance(value, str):
        return False
    return bool(_PLACEHOLDER.search(value) or (finding.code == "V010" and _CAPITALS.fullmatch(value)))
