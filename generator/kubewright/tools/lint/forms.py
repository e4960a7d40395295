"""L1 to L4, what a value is written as: times and amounts as numbers, choices as numbers or texts, lists as texts,
conditions as booleans. These look at names and prose, so each asks for more than one sign before it speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.types import ListOf, Primitive, Scalar
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import CONVENTIONS, LintedKind, place_rule


@place_rule(
    "L122 plural-scalar",
    severity=Severity.NOTE,
    why="Several values in one text need a parser in every client, and no schema can check or merge them.",
    source=f"{CONVENTIONS}: Lists and simple kinds; Naming conventions",
    hint="make it a list of strings",
)
def plural_scalar(place: Place, kind: LintedKind) -> Iterator[str]:
    """A text holds one value."""
    if not place.name or place.primitive is not Primitive.STRING or place.value.constraints.enum:
        return
    if _SEPARATED.search(place.doc):
        yield f'"{place.name}" is a list written in a text'


_SEPARATED: Final = re.compile(
    r"\b(comma|space|semicolon|colon|newline|whitespace|pipe)[- ](separated|delimited)\b(?! by)",
    re.IGNORECASE,
)


@place_rule(
    "L232 number-as-word",
    why="A number says nothing to a reader, and a text of true and false is a boolean that YAML will write as one.",
    source=f"{CONVENTIONS}: Constants; Primitive types",
    hint="name the values in CamelCase",
)
def number_as_word(place: Place, kind: LintedKind) -> Iterator[str]:
    """Enums are words, neither numbers nor true and false."""
    # Choices that somebody numbered begin with 0 or 1 and have no gaps; numbers of a standard (308) and amounts do not.
    values = [value for value in place.value.constraints.enum if value is not None]
    if len(values) < 2 or not place.shown:
        return
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        counted = [range(first, len(values) + first) for first in (0, 1)]
        if any(sorted(values) == list(codes) for codes in counted) and not _IS_AMOUNT.search(place.name):
            yield f'the values of "{place.shown}" are numbers'
    elif {str(v).lower() for v in values if v != ""} <= {"true", "false"} and all(
        isinstance(v, str) for v in values
    ):
        yield f'"{place.shown}" is a boolean written as a text'
    elif all(isinstance(v, str) and v.isdigit() for v in values):
        yield f'the values of "{place.shown}" are numbers written as texts'


_IS_AMOUNT: Final = re.compile(r"(version|replicas|count|size|number|max\w*|min\w*)$", re.IGNORECASE)


@place_rule(
    "L233 plain-quantity",
    severity=Severity.NOTE,
    why="Sizes and amounts of a resource are quantities everywhere in Kubernetes: 500Mi, not a number of some unit.",
    source=f"{CONVENTIONS}: Units (resource.Quantity)",
    hint="use a resource.Quantity and drop the unit from the name",
)
def plain_quantity(place: Place, kind: LintedKind) -> Iterator[str]:
    """Amounts of memory, storage and CPU in a spec are quantities."""
    if (
        place.in_spec
        and place.primitive in (Primitive.INTEGER, Primitive.NUMBER)
        and _AMOUNT.search(place.name)
    ):
        yield f'"{place.name}" is an amount written as a number'


_AMOUNT: Final = re.compile(
    r"([a-z](Bytes|[KMGT]i?[Bb]|[kmgt]i?B|Kilobytes|Megabytes|Gigabytes|Mebibytes|Gibibytes|Millicores|MilliCPU|Millicpu)"
    r"|^bytes|(memory|storage|disk|volume)(Size|Limit|Request|Capacity)|[mM]illis?C(PU|pu))$"
)


@place_rule(
    "L234 unix-time",
    why="A moment as a number needs to be told its unit and cannot be read; RFC 3339 can, and sorts as well.",
    source=f"{CONVENTIONS}: Primitive types (metav1.Time)",
    hint="use a string of format date-time whose name ends in Time",
)
def unix_time(place: Place, kind: LintedKind) -> Iterator[str]:
    """Points in time are RFC 3339, not numbers."""
    if not place.name or place.primitive not in (Primitive.INTEGER, Primitive.NUMBER):
        return
    if _MOMENT.search(place.name) or (_EPOCH.search(place.doc) and not _SPAN.search(place.name)):
        yield f'"{place.name}" is a point in time written as a number'


_MOMENT: Final = re.compile(
    r"^((creation|start|end|begin|completion|completed|finish|finished|last[A-Z]\w*|expiration|expiry|next[A-Z]\w*|created"
    r"|updated|deleted|modified)(Time|Date|At)|(t|\w*T)ime[sS]tamp|unixTime|epoch)$"
)
_EPOCH: Final = re.compile(
    r"\b(unix (time|timestamp|epoch)|since (the )?(unix )?epoch|seconds since 1970)\b", re.IGNORECASE
)
_SPAN: Final = re.compile(r"(Seconds|Millis|Minutes|Hours|Days|Interval|Duration)$")


@place_rule(
    "L321 status-in-spec",
    why="What is observed is the controller's to write, by the status subresource; in spec users would write it too.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="move it to status",
)
def status_in_spec(place: Place, kind: LintedKind) -> Iterator[str]:
    """Nothing observed is in spec."""
    if not place.in_spec or place.in_status:
        return
    body = struct_of(place.target)
    observed = (
        place.name == "status" and body is not None and any(f.wire_name in _OBSERVED for f in body.fields)
    )
    listed = place.name == "conditions" and isinstance(place.target.type, ListOf)
    if listed and isinstance(place.target.type, ListOf):
        inner = struct_of(place.target.type.items)
        listed = inner is not None and {"type", "status", "reason"} <= {f.wire_name for f in inner.fields}
    if observed or listed or place.name == "observedGeneration":
        yield f'"{place.path}" is something observed'


_OBSERVED: Final = frozenset(
    {"conditions", "phase", "state", "observedGeneration", "replicas", "message", "reason"}
)


@place_rule(
    "L322 boolean-condition",
    severity=Severity.NOTE,
    why="A condition says since when, why, and that it is not known; a boolean in status says none of it.",
    source=f"{CONVENTIONS}: Typical status properties",
    hint="make it a condition",
)
def boolean_condition(place: Place, kind: LintedKind) -> Iterator[str]:
    """States of the whole are conditions, not booleans."""
    of_whole = place.parent is not None and place.parent.path == "status"
    if of_whole and place.primitive is Primitive.BOOLEAN and _STATE.search(place.name):
        yield f'"{place.path}" is a condition written as a boolean'


_STATE: Final = re.compile(
    r"^(is)?(ready|available|healthy|initiali[sz]ed|synced|provisioned|running|failed|completed?|succeeded|active|accepted"
    r"|progressing|degraded|reconciled|valid|bound|connected|deployed|installed|established|done)$"
    r"|[a-z](Ready|Available|Healthy|Initiali[sz]ed|Synced|Provisioned|Reconciled|Completed?|Succeeded|Failed)$",
    re.IGNORECASE,
)


@place_rule(
    "L407 enum-in-prose",
    severity=Severity.NOTE,
    why="What the description lists and the schema does not say is checked by nobody until a controller fails.",
    source=f"{CONVENTIONS}: Constants; Documentation",
    hint="list the values as enum, or the forms they have as pattern",
)
def enum_in_prose(place: Place, kind: LintedKind) -> Iterator[str]:
    """Values that the description lists are an enum."""
    limits, node = place.value.constraints, place.target.type
    if (
        not place.name
        or not isinstance(node, Scalar)
        or node.primitive is not Primitive.STRING
        or node.format
    ):
        return
    if limits.enum or limits.pattern or limits.rules or limits.any_of or limits.one_of or limits.all_of:
        return
    told = _ONE_OF.search(place.doc)
    if told is None:
        return
    values = [next(filter(None, found)) for found in _QUOTED.findall(told[1])]
    siblings = {field.wire_name for field in place.owner.fields} if place.owner is not None else set()
    before = place.doc[: told.start()].rpartition(". ")[2]
    if (
        siblings.intersection(values)
        or _QUOTED.search(before)
        or before.rstrip().lower().endswith(("only", "set"))
    ):
        return  # of these fields one may be set, or the values are those of something else
    if len(values) >= 2 and all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", value) for value in values):
        yield f'the description of "{place.path}" lists the values {", ".join(values[:4])}; its schema takes any'


# Only what stands in quotes or backticks: words of a sentence are no values.
_ONE_OF: Final = re.compile(
    r"\b(?:(?:must|can|may) be (?:one of|either)|one of|either|(?:valid|possible|allowed|supported|permitted|accepted) "
    r"(?:values|options)(?: are| is)?)\b:?\s*((?:[`\"'][^`\"'\n]{1,40}[`\"'](?:\s*(?:,|/|\||or|and)\s*)*)+)",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"`([^`]+)`|\"([^\"]+)\"|'([^']+)'")
