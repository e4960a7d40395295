"""Lists of field errors, compared: is there one, at which fields with which reason, in which words.

Errors of sibling fields come in no fixed order from Go, so order does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError

from .agreement import FIELDS, TEXT, VERDICT, Answer

_DIFFERENCE = "@@"


def compared(wanted: Iterable[dict[str, Any]], ours: Iterable[FieldError]) -> Iterator[Answer]:
    """Three levels for one list of errors."""
    theirs, mine = list(wanted or ()), list(ours)
    yield Answer(VERDICT, bool(theirs), bool(mine))
    yield Answer(
        FIELDS,
        sorted([each["field"], each["type"]] for each in theirs),
        sorted([each.field or "<nil>", each.reason.value] for each in mine),
    )
    yield Answer(
        TEXT,
        sorted(_shown(each["text"], each["detail"]) for each in theirs),
        sorted(_shown(f"{each.field or '<nil>'}: {each.body}", each.detail) for each in mine),
    )


def _shown(text: str, detail: str) -> str:
    """A text without what tells only of Go's memory: a value that is a struct, or the difference of two, is printed
    with every field of the internal type."""
    head, newline, difference = text.partition("\n")
    if newline and difference.lstrip().startswith(_DIFFERENCE):
        return head
    said = text.removesuffix(f": {detail}") if detail else text
    start = said.find(" value: ") + len(" value: ")
    value = said[start:]
    if start < len(" value: ") or not value.startswith(("{", "[{")):
        return text
    return f"{said[:start]}{value[0]}: {detail}"
