"""A fault of decoding that also says what it is made of.

It is apart because classes that extend built-ins are not compiled (build/compiled.toml).
"""

from __future__ import annotations

from typing import Any


class Mismatch(str):
    """A fault of decoding, with what it is made of: the ``value``, the ``wanted`` type, and the ``form`` that this has:
    ``struct``, ``map``, ``slice`` or the name of a scalar."""

    __slots__ = ("form", "value", "wanted")
    value: Any
    wanted: str
    form: str
