"""Duplicate fields of a request body: what ``?fieldValidation=Warn`` and ``Strict`` say of them.

Theory. A decoder that keeps the last of two equal keys loses the first, so a document without duplicates
has as many colons as its re-encoding, unless a colon is written as an escape. That test costs a fraction of
decoding and runs on every write; only a document that fails it is read again, by hand, to name the
duplicates.

Unknown fields are found on the decoded value (``CompiledSchema.prune``). The texts are those of kube-
apiserver: a warning for each, or, for Strict, all of them in one error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias
from zlib import crc32

from apimachinery.wire.json import LARGE_BYTES, decode_pairs, encode, encode_in_steps

MAX_NAMED = 100
"""So many duplicates are named at most, as the strict decoder does."""


def has_duplicate_fields(data: bytes, value: Any) -> bool:
    """May the JSON document ``data``, decoded to ``value``, have a key twice in one object.

    Errs on yes only.
    """
    if b"\\u003" in data:
        return True
    pack = encode if len(data) <= LARGE_BYTES else encode_in_steps
    try:
        return data.count(b":") != pack(value).count(b":")
    except (OverflowError, UnicodeEncodeError):  # an integer beyond 64 bits, a lone surrogate
        return True


def duplicate_fields(data: bytes, value: Any) -> list[str]:
    """The paths of keys that occur twice in the JSON document ``data``; ``value`` is it decoded."""
    return repeated_fields(data) if has_duplicate_fields(data, value) else []


def repeated_fields(data: bytes) -> list[str]:
    """The same of a document that may have some.

    A path reads ``spec.l[0].x``. Inner duplicates come before those of the object around them, in the order
    of the document; each path once.
    """
    found: dict[str, None] = {}
    _find(decode_pairs(data, _Pairs, _number), None, found)
    return list(found)[:MAX_NAMED]


def _number(text: str) -> int:
    """Any number: it is read for its place alone."""
    return 0


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they are."""


_Place: TypeAlias = "tuple[_Place, str] | None"
"""What is around a value, and the step from there, ``.name`` or ``[0]``: texts of all deep places would be long."""


def _find(value: Any, place: _Place, found: dict[str, None]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            if name in seen:
                found.setdefault(_path((place, f".{name}")))
            seen.add(name)
            if isinstance(each, list):
                _find(each, (place, f".{name}"), found)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            if isinstance(each, list):
                _find(each, (place, f"[{index}]"), found)


def _path(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "".join(reversed(steps)).removeprefix(".")


def in_order_of(data: bytes, texts: Collection[str]) -> list[str]:
    """Texts about duplicate and unknown fields in the order in which a decoder of the JSON document meets them."""
    meeting = _Meeting(texts)
    meeting.go(decode_pairs(data, _Pairs, _number), None, 0)
    return sorted(texts, key=lambda text: meeting.met.get(text, len(meeting.met)))


_TEXT = re.compile(r'(?:duplicate|unknown) field "(.*)"', re.DOTALL)


class _Meeting:
    """Looks for the fields that texts name, and notes in which order it meets them. A path is compared as a text where
    its checksum is that of a path looked for."""

    def __init__(self, texts: Collection[str]) -> None:
        self._texts = frozenset(texts)
        paths = [match[1] for match in map(_TEXT.fullmatch, texts) if match]
        # A step to a member begins with a dot, one to an item does not.
        self._sums = {crc32(_bytes(begin + path)) for path in paths for begin in (".", "")}
        self.met: dict[str, int] = {}

    def go(self, value: Any, place: _Place, sum_: int) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for name, each in value:
                step = f".{name}"
                inner = crc32(_bytes(step), sum_)
                if inner in self._sums:
                    path = _path((place, step))
                    text = f'{"duplicate" if name in seen else "unknown"} field "{path}"'
                    if text in self._texts:
                        self.met.setdefault(text, len(self.met))
                seen.add(name)
                if isinstance(each, list):
                    self.go(each, (place, step), inner)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if isinstance(each, list):
                    step = f"[{index}]"
                    self.go(each, (place, step), crc32(_bytes(step), sum_))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def field_texts(duplicates: Iterable[str], unknown: Iterable[str]) -> list[str]:
    """The text of each: ``duplicate field "a.b"``, then ``unknown field "c"``."""
    return [f'duplicate field "{path}"' for path in duplicates] + [
        f'unknown field "{path}"' for path in unknown
    ]


def strict_error(texts: Iterable[str]) -> str:
    """What Strict answers for these texts, after ``cannot be handled as a KIND: ``."""
    of_lines: list[str] = []
    others: list[str] = []
    for text in texts:
        (of_lines if text.startswith("line ") else others).append(text)
    return f"strict decoding error: {', '.join([*yaml_errors(of_lines), *others])}"


def yaml_errors(of_lines: Collection[str]) -> list[str]:
    """The texts about lines of YAML (keys that occur twice) as the one error that its decoder makes of them."""
    if not of_lines:
        return []
    return ["yaml: unmarshal errors:\n" + "\n".join(f"  {text}" for text in of_lines)]
