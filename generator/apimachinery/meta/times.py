"""RFC 3339 as Go reads it by a layout, with its words for what does not fit."""

from __future__ import annotations

import re
from typing import Final

from apimachinery.meta.printing import go_quote

SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICROS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

_SECONDS = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_ZONE = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
FORMS: Final = {
    SECONDS_LAYOUT: re.compile(rf"{_SECONDS}(?:[.,]\d+)?{_ZONE}"),
    MICROS_LAYOUT: re.compile(rf"{_SECONDS}[.,]\d{{6}}{_ZONE}"),
}
"""What each layout takes: one that names a fraction demands all its digits."""
_DATE_PARTS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d{2}", "01"),
    ("-", "-"),
    (r"\d{2}", "02"),
    ("[Tt]", "T"),
    (r"\d{2}", "15"),
    (":", ":"),
    (r"\d{2}", "04"),
    (":", ":"),
    (r"\d{2}", "05"),
)
_ZONE_PART = (r"[Zz]|[+-]\d{2}:\d{2}", "Z07:00")
_PARTS = {
    SECONDS_LAYOUT: (*_DATE_PARTS, (r"(?:[.,]\d+)?", ""), _ZONE_PART),
    MICROS_LAYOUT: (*_DATE_PARTS, (r"[.,]\d{6}", ".000000"), _ZONE_PART),
}


def parse_fault(text: str, layout: str) -> str | None:
    """Why ``text`` is not a time of the layout, None where it is one."""
    if FORMS[layout].fullmatch(text) is not None:
        return None
    place, wanted = _where_it_fails(text, _PARTS[layout])
    return f"parsing time {go_quote(text)} as {go_quote(layout)}: cannot parse {go_quote(place)} as {go_quote(wanted)}"


def _where_it_fails(text: str, parts: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    at = 0
    for form, wanted in parts:
        found = re.compile(form).match(text, at)
        if found is None:
            return text[at:], wanted
        at = found.end()
    return text[at:], ""


def reformatted(text: str) -> str:
    """A time as Go writes it again: at most nine digits of a fraction, no zeros at its end, Z for no offset."""
    found = re.fullmatch(r"(.{19})(?:[.,](\d+))?(.+)", text)
    assert found
    fraction = (found[2] or "")[:9].rstrip("0")
    zone = "Z" if found[3] in ("z", "Z", "+00:00", "-00:00") else found[3]
    return found[1].upper() + (f".{fraction}" if fraction else "") + zone
