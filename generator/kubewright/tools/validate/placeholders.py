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
from kubewright.tools.inputs.kustomize import decoded
from kubewright.tools.inputs.projects import LEFT_OUT
from kubewright.tools.validate.inputs import Chunk

_PLACEHOLDER = re.compile(
    r"""\$\{.*\} | \$\(\w+\) | \{\{.*\}\} | \$\$\w+\$\$ | ^\$[A-Z_]+$ | @[A-Z_]+@ | <[A-Za-z][\w -]*> | ^\(.*\)$""",
    re.VERBOSE | re.DOTALL,
)
"""Of shells, make, Go templates, sed scripts, prose, and the expressions of chainsaw."""
_QUOTED = re.compile(r'Invalid value: "((?:[^"\\]|\\.)*)"')
_MAY_HOLD = re.compile(rb"\$|\{\{|@[A-Z_]+@|<[A-Za-z]|\(\w")


def without_placeholders(chunk: Chunk, findings: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings of a document, those at values to fill in replaced by one note."""
    findings = list(findings)
    value = decoded(chunk) if findings and _MAY_HOLD.search(chunk.content) else None
    if value is None:
        yield from findings
        return
    unfilled = [each for each in findings if _is_unfilled(value, each)]
    yield from (each for each in findings if each not in unfilled)
    if unfilled:
        place = unfilled[0].location
        number = len({each.location for each in unfilled})
        said = f"{number} values to be filled in" if number > 1 else "a value to be filled in"
        where = Location(place.file, place.pointer, place.line, place.column)
        yield Diagnostic(LEFT_OUT, Severity.NOTE, f"{said}: not judged", where, subject=unfilled[0].subject)


def _is_unfilled(value: Any, finding: Diagnostic) -> bool:
    quoted = _QUOTED.search(finding.message)  # a label's value, say, whose finding is of all labels
    if quoted is not None and _PLACEHOLDER.search(quoted[1]):
        return True
    for token in finding.location.pointer.split("/")[1:]:
        token = unescape_pointer(token)
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return False
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None
