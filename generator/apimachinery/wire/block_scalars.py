"""Scalars of ``block_yaml`` that are more than one word in one line: texts over several lines, and quotes with escapes.

Each function answers None, or the number 0 of the next line, for what it does not know for sure.
"""

from __future__ import annotations

import re

# Patterns of single lines say what is not in a text, for characters beyond ASCII are in none of their classes.
_FOLDED = re.compile(r" *+((?!#)(?:[^ :]++|:(?=[^ ])| ++(?=[^ #]))++) *+")
"""A further line of a plain scalar: it holds neither ``: `` nor a comment."""
_SINGLE = re.compile(r"((?:[^']++|'')*+)(?:(') *+)?")
_DOUBLE = re.compile(r'((?:[^"\\]++|\\.|\\$)*+)(?:(") *+)?')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t", " ": " "}


def column_of(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip(" "))


def unquoted(text: str) -> str | None:
    """The text in quotes of one line."""
    inner = text[1:-1]
    if text[0] == "'":
        return inner.replace("''", "'")
    return _unescaped(inner) if "\\" in inner else inner


def _unescaped(text: str) -> str | None:
    parts = _ESCAPE.split(text)
    for index in range(1, len(parts), 2):
        escape = parts[index]
        if escape[0] == "u" and len(escape) == 5:
            code = int(escape[1:], 16)
            if code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code >= 0xFEFF:
                return None
            parts[index] = chr(code)
        elif escape in _ESCAPED:
            parts[index] = _ESCAPED[escape]
        else:
            return None
    return "".join(parts)


def _folded(parts: list[str]) -> str:
    """Lines as one text: a break is a space, of several all but the first are kept."""
    text, empty = [parts[0]], 0
    for number, part in enumerate(parts[1:], 2):
        if not part and number < len(parts):
            empty += 1
            continue
        text += ("\n" * empty if empty else " ", part)
        empty = 0
    return "".join(text)


def plain_over_lines(first: str, lines: list[str], at: int, column: int) -> tuple[str | None, int]:
    """The plain scalar that begins with ``first`` and goes on in line ``at``; ``column`` is that of its key or dash."""
    parts = [first]
    while at < len(lines):
        line = lines[at]
        if line.strip(" "):
            if column_of(line) <= column:
                break
            match = _FOLDED.fullmatch(line)
            if match is None:
                return None, 0
            parts.append(match[1])
        else:
            parts.append("")
        at += 1
    while not parts[-1]:
        parts.pop()
    return _folded(parts), at


def quoted_over_lines(first: str, lines: list[str], at: int, column: int) -> tuple[str | None, int]:
    """The scalar in quotes that begins with ``first``, its quote too, and goes on in line ``at``."""
    pattern = _SINGLE if first[0] == "'" else _DOUBLE
    parts: list[str] = []
    line = first[1:]
    while True:
        match = pattern.fullmatch(line)
        if match is None:
            return None, 0
        text = match[1]
        parts.append(text if parts == [] else text.lstrip(" "))
        if match[2]:
            break
        if at >= len(lines):
            return None, 0
        line = lines[at]
        if column_of(line) <= column and line:
            return None, 0
        at += 1
    parts = [*(part.rstrip(" ") for part in parts[:-1]), parts[-1]]
    if pattern is _SINGLE:
        return _folded(parts).replace("''", "'"), at
    joined: list[str] = [parts[0]]
    for part in parts[1:]:
        last = joined[-1]
        if (len(last) - len(last.rstrip("\\"))) % 2:
            if not part:
                return None, 0
            joined[-1] = last[:-1] + part  # the break is escaped
        else:
            joined.append(part)
    return _unescaped(_folded(joined)), at


def block_over_lines(header: str, lines: list[str], at: int, column: int) -> tuple[str | None, int]:
    """The block scalar below its ``header``, ``|`` or ``>`` with how its end is kept; it begins in line ``at``."""
    start, end = at, len(lines)
    while at < end and not lines[at].strip(" "):
        at += 1
    indent = column_of(lines[at]) if at < end else 0
    if indent <= max(column, 0) or any(len(line) > indent for line in lines[start:at]):
        return None, 0
    pad = " " * indent
    while at < end and (lines[at].startswith(pad) or not lines[at].strip(" ")):
        at += 1
    if at == end and lines[-1]:
        return None, 0  # whether its last line ends decides what is kept
    taken = [line[indent:] for line in lines[start : at - (at == end)]]
    kept = len(taken)
    while not taken[kept - 1]:
        kept -= 1
    text = "\n".join(taken[:kept]) if header[0] == "|" else _folded_block(taken[:kept])
    if header.endswith("-"):
        return text, at
    return text + ("\n" * (len(taken) - kept + 1) if header.endswith("+") else "\n"), at


def _folded_block(lines: list[str]) -> str:
    """Lines of ``>`` as one text: those that are indented further keep their breaks."""
    text: list[str] = []
    empty, is_further, begun = 0, False, False
    for line in lines:
        if not line:
            empty += 1
            continue
        further = line.startswith(" ")
        if begun and (is_further or further):
            text.append("\n")
        elif begun and not empty:
            text.append(" ")
        text += ("\n" * empty, line)
        empty, is_further, begun = 0, further, True
    return "".join(text)
