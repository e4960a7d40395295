"""Duplicate fields of a request body: what ``?fieldValidation=Warn`` and ``Strict`` say of them.

Theory. A decoder that keeps the last of two equal keys loses the first, so a document without duplicates
has as many colons as its re-encoding, unless a colon is written as an escape. That test costs a fraction of
decoding and runs on every write; only a document that fails it is read again, by hand, to name the
duplicates.

Unknown fields are found on the decoded value (``CompiledSchema.prune``). The texts are those of kube-
apiserver: a warning for each, or, for Strict, all of them in one error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

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
    """The paths of keys that occur twice in the JSON document ``data``; ``value`` is it decoded.

    A path reads ``spec.l[0].x``. Inner duplicates come before those of the object around them, in the order
    of the document; each path once.
    """
    if not has_duplicate_fields(data, value):
        return []
    read = decode_pairs(data, _Pairs, _number)
    found: dict[str, None] = {}
    _find(read, "", found)
    return list(found)[:MAX_NAMED]


def _number(text: str) -> int:
    """Any number: it is read for its place alone."""
    return 0


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they are."""


def _find(value: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            inner = f"{path}.{name}" if path else name
            if name in seen:
                found.setdefault(inner)
            seen.add(name)
            _find(each, inner, found)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _find(each, f"{path}[{index}]", found)


def in_order_of(data: bytes, texts: Collection[str]) -> list[str]:
    """Texts about duplicate and unknown fields in the order in which a decoder of the JSON document meets them."""
    met: dict[str, int] = {}
    read = decode_pairs(data, _Pairs, _number)
    _meet(read, "", met)
    return sorted(texts, key=lambda text: met.get(text, len(met)))


def _meet(value: Any, path: str, met: dict[str, int]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            inner = f"{path}.{name}" if path else name
            met.setdefault(f'{"duplicate" if name in seen else "unknown"} field "{inner}"', len(met))
            seen.add(name)
            _meet(each, inner, met)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _meet(each, f"{path}[{index}]", met)


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
