"""Duplicate fields of a request body: what ``?fieldValidation=Warn`` and ``Strict`` say of them.

Theory. A decoder that keeps the last of two equal keys loses the first, so a document without duplicates
has as many colons as its re-encoding (unless a colon is written as an escape). That test costs a tenth of a
slow parse and runs on every write; only a document that fails it is parsed again, by hand, to name the
duplicates. Unknown fields are found on the decoded value: ``CompiledSchema.prune``.
"""

from __future__ import annotations

from typing import Any


def duplicate_fields(data: bytes, value: Any) -> list[str]:
    """The paths of keys that stand twice in the JSON document ``data``, in its order.

    ``value`` is it decoded.
    """
    raise NotImplementedError


def unknown_field_texts(duplicates: list[str], unknown: list[str]) -> list[str]:
    """The texts of Warning headers (and, joined by ``, ``, of the strict decoding error)."""
    return [f'duplicate field "{path}"' for path in duplicates] + [
        f'unknown field "{path}"' for path in unknown
    ]
