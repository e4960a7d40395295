"""Reading what a strict decoder refuses, as Go would: null and nothing where a value must be.

Servers written in Go send ``"endpoints": null`` for an empty list that is required, and give back objects that were
stored before a field became required. A null where the model has a default counts as nothing, as a server drops it
before defaulting; elsewhere null and a missing field are the zero value of their type.
"""

from __future__ import annotations

import copy
import re
from typing import Any, TypeVar

import msgspec

from apimachinery.typed.decoders import prepare

T = TypeVar("T")
_NULL = re.compile(r"^Expected `([a-z |]+)`, got `null` - at `\$(.*)`$")
_MISSING = re.compile(r"^Object missing required field `([^`]*)`(?: - at `\$(.*)`)?$")
_STEPS = re.compile(r"\[[^\]]*\]|\.([^.\[]+)")
_ZEROS: dict[str, Any] = {"array": [], "object": {}, "str": "", "int": 0, "float": 0.0, "bool": False}
_MAX_MENDS = 200


def convert_leniently(value: Any, cls: type[T], refusal: msgspec.ValidationError) -> T:
    """``value``, which is changed in place, as ``cls``; ``refusal`` is why it did not fit. Raises the last refusal
    where something else is wrong than nulls and missing fields."""
    prepare(cls)
    required: set[tuple[str, ...]] = set()
    for _ in range(_MAX_MENDS):
        if not _mend(value, str(refusal), required):
            raise refusal
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as again:
            refusal = again
    raise refusal


def _mend(value: Any, refusal: str, required: set[tuple[str, ...]]) -> bool:
    """Takes away a null that ``refusal`` finds, or writes the zero over it where the field is ``required``; writes null
    where it finds nothing. Whether it did something."""
    if match := _MISSING.match(refusal):
        steps = _STEPS.findall(match.group(2) or "")
        required.add((*steps, match.group(1)))
        return _add(value, steps, match.group(1))
    match = _NULL.match(refusal)
    zero = _ZEROS.get(match.group(1).partition(" ")[0]) if match else None
    if match is None or zero is None:
        return False
    steps = _STEPS.findall(match.group(2))
    if tuple(steps) in required or not steps or not steps[-1]:
        return _fill(value, steps, zero)
    return _drop(value, steps)


def _add(value: Any, steps: list[str], key: str) -> bool:
    """Gives every object that ``steps`` lead to a null ``key`` where it lacks one."""
    if not steps:
        if not isinstance(value, dict) or key in value:
            return False
        value[key] = None
        return True
    step, *rest = steps
    if step:
        return isinstance(value, dict) and step in value and _add(value[step], rest, key)
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    added = [_add(item, rest, key) for item in below]  # in all of them, not only up to the first
    return any(added)


def _drop(value: Any, steps: list[str]) -> bool:
    """Takes away every null that ``steps`` lead to."""
    step, *rest = steps
    if not isinstance(value, dict | list):
        return False
    if not rest:
        if isinstance(value, dict) and step in value and value[step] is None:
            del value[step]
            return True
        return False
    if step:
        return isinstance(value, dict) and step in value and _drop(value[step], rest)
    below = value.values() if isinstance(value, dict) else value
    dropped = [_drop(item, rest) for item in below]
    return any(dropped)


def _fill(value: Any, steps: list[str], zero: Any) -> bool:
    """Writes ``zero`` over every null that ``steps`` lead to (an empty step is each item or value)."""
    if not isinstance(value, dict | list) or not steps:
        return False
    step, *rest = steps
    if step:
        keys: list[Any] = [step] if isinstance(value, dict) and step in value else []
    else:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    filled = False
    for key in keys:
        if rest:
            filled |= _fill(value[key], rest, zero)
        elif value[key] is None:
            value[key] = copy.copy(zero)
            filled = True
    return filled
