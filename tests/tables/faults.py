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
    yield Answer(TEXT, sorted(_shown(each["text"]) for each in theirs), sorted(map(_text, mine)))


def _shown(text: str) -> str:
    """A text without the difference of two Go structs that a few end with: it names fields of Go's memory."""
    head, newline, difference = text.partition("\n")
    return head if newline and difference.lstrip().startswith(_DIFFERENCE) else text


def _text(fault: FieldError) -> str:
    return f"{fault.field or '<nil>'}: {fault.body}"
