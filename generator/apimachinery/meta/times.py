"""RFC 3339 as Go reads it by a layout, with its words for what does not fit."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date
from typing import Final, NamedTuple

SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICROS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

_SECONDS = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))"
FORMS: Final = {
    SECONDS_LAYOUT: re.compile(rf"{_SECONDS}(?:[.,]\d+)?{_ZONE}"),
    MICROS_LAYOUT: re.compile(rf"{_SECONDS}[.,]\d{{6}}{_ZONE}"),
}
"""What each layout takes, but for days that a month does not have: one that names a fraction demands all its digits."""


class _Part(NamedTuple):
    """A part of a layout: what it takes, and what its number is called where that has a range."""

    form: str
    layout: str
    called: str = ""
    least: int = 0
    most: int = 0


_DATE_PARTS = (
    _Part(r"\d{4}", "2006"),
    _Part("-", "-"),
    _Part(r"\d{2}", "01", "month", 1, 12),
    _Part("-", "-"),
    _Part(r"\d{2}", "02"),
    _Part("T", "T"),
    _Part(r"\d{1,2}", "15", "hour", 0, 23),
    _Part(":", ":"),
    _Part(r"\d{2}", "04", "minute", 0, 59),
    _Part(":", ":"),
    _Part(r"\d{2}", "05", "second", 0, 59),
)
_ZONE_PART = _Part(r"Z|[+-]\d{2}:\d{2}", "Z07:00")
_PARTS = {
    SECONDS_LAYOUT: (*_DATE_PARTS, _Part(r"(?:[.,]\d+)?", ""), _ZONE_PART),
    MICROS_LAYOUT: (*_DATE_PARTS, _Part(r"[.,]\d{6}", ".000000"), _ZONE_PART),
}


def _quoted(text: str) -> str:
    """The quotes of Go's package time: bytes that are no printable ASCII are escaped one by one."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "replace")
    return '"' + "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in plain) + '"'


def parse_fault(text: str, layout: str) -> str | None:
    """Why ``text`` is not a time of the layout, None where it is one."""
    if FORMS[layout].fullmatch(text) is not None and _has_day(text):
        return None
    return f"parsing time {_quoted(text)}{_why(text, layout)}"


def _has_day(text: str) -> bool:
    """Whether the month of a date has its day."""
    day = int(text[8:10])
    return day <= 28 or day <= monthrange(int(text[:4]) or 400, int(text[5:7]))[1]


def _why(text: str, layout: str) -> str:
    at = 0
    for part in _PARTS[layout]:
        found = re.compile(part.form).match(text, at)
        if found is None:
            return f" as {_quoted(layout)}: cannot parse {_quoted(text[at:])} as {_quoted(part.layout)}"
        at = found.end()
        if part.called and not part.least <= int(found[0]) <= part.most:
            return f": {part.called} out of range"
        if part is _ZONE_PART and found[0] != "Z" and (wrong := _odd_offset(found[0])):
            return f": time zone offset {wrong} out of range"
    return ": day out of range" if at == len(text) else f": extra text: {_quoted(text[at:])}"


def _odd_offset(zone: str) -> str:
    if int(zone[1:3]) > 24:
        return "hour"
    return "minute" if int(zone[4:6]) > 60 else ""


def reformatted(text: str) -> str:
    """A time as Go writes it again: at most nine digits of a fraction, no zeros at its end, Z for no offset."""
    found = re.fullmatch(r"(.{19})(?:[.,](\d+))?(.+)", text)
    assert found
    fraction = (found[2] or "")[:9].rstrip("0")
    zone = "Z" if found[3] in ("z", "Z", "+00:00", "-00:00") else found[3]
    return found[1].upper() + (f".{fraction}" if fraction else "") + zone


_INSTANT = re.compile(
    r"(-?\d{4,})-(\d\d)-(\d\d)[Tt](\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))"
)
_EPOCH = date(1970, 1, 1).toordinal()
_CYCLE = date(401, 1, 1).toordinal() - 1
"""The days of 400 years, after which the calendar repeats: ``date`` has no year 0, and none past 9999."""


def instant(text: str) -> tuple[int, int] | None:
    """The seconds since 1970 and the nanoseconds of an RFC 3339 text, None where it names no instant."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        days = date(int(year) % 400 + 400, int(month), int(day)).toordinal()
    except ValueError:
        return None
    days += (int(year) // 400 - 1) * _CYCLE - _EPOCH
    seconds = (days * 24 + int(hour)) * 3600 + int(minute) * 60 + int(second)
    if sign:
        offset = int(hours) * 3600 + int(minutes) * 60
        seconds += -offset if sign == "+" else offset
    return seconds, int((fraction or "0")[:9].ljust(9, "0"))


def utc_text(seconds: int) -> str:
    """``2006-01-02T15:04:05`` of seconds since 1970; years before 0 and beyond 9999 as Go writes them."""
    days, second = divmod(seconds, 86400)
    cycles, day = divmod(days + _EPOCH - 1, _CYCLE)
    plain = date.fromordinal(day + 1 + _CYCLE)
    year = plain.year - 400 + cycles * 400
    shown = f"-{-year:04d}" if year < 0 else f"{year:04d}"
    return f"{shown}-{plain:%m-%d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
