"""The extended strings library; places count code points.

Version 0: charAt, indexOf, join, lastIndexOf, lowerAscii, replace, split, substring, trim, upperAscii;
1: format and quote; 3: reverse; 4: format as the specification has it now. Kubernetes has 2.
"""

from __future__ import annotations

from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values.errors import CostLimitError, EvalError

from .old_format import format_like_kubernetes
from .string_format import format_string

KUBERNETES_VERSION = 2
"""With it a search that starts past the end finds nothing, where the specification has an error."""
MAX_RESULT = 64 * 1024 * 1024
"""No call may build a longer string: no cost is counted before the result of ``replace`` or ``join`` is there."""

_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = dict(zip('\a\b\f\n\r\t\v\\"', ("\\" + c for c in 'abfnrtv\\"'), strict=True))


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise EvalError(f"index out of range: {place}")
    return text[place : place + 1]


def _index_of_from(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if not 0 <= start < len(text):
        raise EvalError(f"index out of range: {start}")
    return text.find(part, start)


def _index_of_from_anywhere(text: str, part: str, start: int) -> int:
    return -1 if part and start >= len(text) else _index_of_from(text, part, start)


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return text.rfind(part)


def _last_index_of_before(text: str, part: str, end: int) -> int:
    if not part:
        return end
    if not 0 <= end < len(text):
        raise EvalError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


def _last_index_of_before_anywhere(text: str, part: str, end: int) -> int:
    return -1 if part and end >= len(text) else _last_index_of_before(text, part, end)


def _joined(items: list[Any], separator: str = "") -> str:
    total = len(separator) * len(items)
    for item in items:
        if type(item) is not str:
            raise EvalError("no such overload")
        total += len(item)
    if total > MAX_RESULT:
        raise CostLimitError
    return separator.join(items)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if count == 0:
        return text
    times = len(text) + 1 if not old else text.count(old)
    if count > 0:
        times = min(times, count)
    if len(text) + times * len(new) > MAX_RESULT:
        raise CostLimitError
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if count == 1:
        return [text]
    if not separator:
        parts = list(text)
        if 0 < count < len(parts):
            parts = [*parts[: count - 1], text[count - 1 :]]
        return parts
    return text.split(separator, count - 1 if count > 0 else -1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise EvalError(f"index out of range: {start}")
    return text[start:]


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise EvalError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise EvalError(f"index out of range: {end}")
    return text[start:end]


def quote(text: str) -> str:
    """``text`` in double quotes with escapes; what is not Unicode becomes U+FFFD."""
    inner = "".join(_QUOTED.get(c, "�" if 0xD800 <= ord(c) < 0xE000 else c) for c in text)
    return f'"{inner}"'


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def strings(version: int = 4) -> Library:
    """The library at ``version``."""
    lib = Library("strings")
    kubernetes = version == KUBERNETES_VERSION
    lib.add("charAt", ("string_char_at_int", "string.(int) string", _char_at))
    lib.add(
        "indexOf",
        ("string_index_of_string", "string.(string) int", lambda text, part: text.find(part)),
        (
            "string_index_of_string_int",
            "string.(string, int) int",
            _index_of_from_anywhere if kubernetes else _index_of_from,
        ),
    )
    lib.add(
        "lastIndexOf",
        ("string_last_index_of_string", "string.(string) int", _last_index_of),
        (
            "string_last_index_of_string_int",
            "string.(string, int) int",
            _last_index_of_before_anywhere if kubernetes else _last_index_of_before,
        ),
    )
    lib.add(
        "join",
        ("list_join", "list(string).() string", _joined),
        ("list_join_string", "list(string).(string) string", _joined),
    )
    lib.add("lowerAscii", ("string_lower_ascii", "string.() string", _lower))
    lib.add("upperAscii", ("string_upper_ascii", "string.() string", _upper))
    lib.add(
        "replace",
        ("string_replace_string_string", "string.(string, string) string", _replace),
        ("string_replace_string_string_int", "string.(string, string, int) string", _replace),
    )
    lib.add(
        "split",
        ("string_split_string", "string.(string) list(string)", _split),
        ("string_split_string_int", "string.(string, int) list(string)", _split),
    )
    lib.add(
        "substring",
        ("string_substring_int", "string.(int) string", _substring),
        ("string_substring_int_int", "string.(int, int) string", _substring_to),
    )
    lib.add("trim", ("string_trim", "string.() string", _trim))
    if version >= 1:
        fill = format_string if version >= 4 else format_like_kubernetes
        lib.add("format", ("string_format", "string.(list(dyn)) string", fill))
        lib.add("strings.quote", ("strings_quote", "(string) string", quote))
    if version >= 3:
        lib.add("reverse", ("string_reverse", "string.() string", lambda text: text[::-1]))
    return lib
