"""Bounds, enums, patterns and formats of one place: what of them refuses a value that was accepted.

A keyword that is new or tighter is no change for writers where the others said as much before: ``maxLength`` 63 next
to a pattern that allows no longer text, a pattern that every value of the enum has, ``minimum`` 1 in place of an
exclusive 0. So each is held against all that was said before, texts by the automata of ``patterns``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias

from apimachinery.cel.patterns import match_test
from apimachinery.schema.formats import is_known_format, string_format_check
from kubewright.ir.types import Constraints, Primitive, Scalar, Type, Value
from kubewright.tools.diff import patterns
from kubewright.tools.diff.automata import Undecided

Change: TypeAlias = tuple[str, str]
"""Code and message."""

RANGES: Final = (
    ("value", "minimum", "maximum", "minimum", "maximum"),
    ("length", "min_length", "max_length", "minLength", "maxLength"),
    ("number of items", "min_items", "max_items", "minItems", "maxItems"),
    ("number of properties", "min_properties", "max_properties", "minProperties", "maxProperties"),
)
"""What is bounded, the attributes of its bounds, and their keywords."""
_NARROW: Final = ("int32", "float")
_SPANS: Final = {
    "int32": (-(2.0**31), 2.0**31 - 1),
    "float": (-3.5e38, 3.5e38),
}
"""Formats of numbers that a server holds them against, but for those that every number has."""


def limits(old: Constraints, new: Constraints, was: Type, now: Type) -> Iterator[Change]:
    """What changed in the limits of a value whose type, but for a widening, stayed."""
    if isinstance(was, Scalar) and isinstance(now, Scalar) and was.primitive is now.primitive:
        yield from _format(was.format, now.format, was.primitive, old)
    yield from _enums(old, new, now)
    for what, low, high, *_ in RANGES:
        yield from _range(what, low, high, (old, new), was)
    if old.multiple_of != new.multiple_of:
        code = "D253" if not new.multiple_of or _divides(new.multiple_of, old.multiple_of) else "D214"
        if _keeps_enum(old, new):
            code = "D253"
        yield code, f"multipleOf changed from {shown(old.multiple_of)} to {shown(new.multiple_of)}"
    if new.unique_items and not old.unique_items:
        yield "D230", "items must be unique now"
    elif old.unique_items and not new.unique_items:
        yield "D253", "items need not be unique any more"
    if old.pattern != new.pattern:
        yield from _pattern(old, new)


def shown(value: Any) -> str:
    """A value as it stands in a message."""
    return "none" if value is None or value == "" else f'"{value}"' if isinstance(value, str) else str(value)


def _format(was: str, now: str, primitive: Primitive, old: Constraints) -> Iterator[Change]:
    if was == now:
        return
    said = f'format changed from "{was}" to "{now}"'
    if primitive is Primitive.STRING:
        is_checked = bool(now) and is_known_format(now)
    else:
        least, most = (_bound(old, end, whole=False) for end in ("minimum", "maximum"))
        low, high = _SPANS.get(now, (-math.inf, math.inf))
        was_low, was_high = _SPANS.get(was, (-math.inf, math.inf))
        is_checked = max(was_low, least[0] if least else -math.inf) < low
        is_checked |= min(was_high, most[0] if most else math.inf) > high
        if is_checked and not was and now == "int32":
            # Go types of the fields of kinds are int32 far more often than their schemas say so.
            yield "D236", said
            return
        if not is_checked and (low, high) != (was_low, was_high) and was in _NARROW:
            yield "D233", f"{said} (readers of the narrow form overflow)"
            return
    # Of texts a server checks no other formats, and of numbers no wider ones.
    yield ("D203" if is_checked else "D268"), said


def _enums(old: Constraints, new: Constraints, now: Type) -> Iterator[Change]:
    before, after = old.enum, new.enum
    gone = [value for value in before if value not in after]
    added = [value for value in after if value not in before]
    if before and not after:
        yield "D255", "any value is accepted now"
    elif after and not before:
        is_all = isinstance(now, Scalar) and now.primitive is Primitive.BOOLEAN and len({*after}) == 2
        yield ("D253" if is_all else "D213"), f"only {_listed(after)} {_be(after)} accepted now"
    else:
        for code, word, values in (("D211", "removed", gone), ("D212", "added", added)):
            if values:
                yield code, f"enum value{'s' * (len(values) > 1)} {_listed(values)} {word}"


def _listed(values: Any) -> str:
    *most, last = [repr(value) for value in values]
    return f"{', '.join(most)} and {last}" if most else last


def _be(values: Any) -> str:
    return "are" if len(values) > 1 else "is"


def _range(
    what: str, low: str, high: str, states: tuple[Constraints, Constraints], kind: Type
) -> Iterator[Change]:
    old, new = states
    is_value = low == "minimum"
    is_whole = not is_value or (isinstance(kind, Scalar) and kind.primitive is Primitive.INTEGER)
    before, after = [
        tuple(_bound(state, end, whole=is_whole) if is_value else getattr(state, end) for end in (low, high))
        for state in states
    ]
    is_fraction = (
        is_value and is_whole and _has_fraction(new, low, high) and not _has_fraction(old, low, high)
    )
    if before == after and not is_fraction:
        return
    if not is_value and before[0] in (None, 0) and after[0] in (None, 0) and before[1] == after[1]:
        return  # nothing is shorter than empty
    said = _change(what, _text(old, low, high), _text(new, low, high))
    is_tighter = _is_tighter(before, after)
    if is_value and not is_whole:  # of numbers, too, a server compares whole ones with bounds cut off
        cut = [tuple(_bound(state, end, whole=True) for end in (low, high)) for state in states]
        is_tighter = is_tighter or _is_tighter(cut[0], cut[1])
    if is_fraction:
        is_tighter, said = True, f"{said}: a server refuses every whole number next to a fraction"
    if is_tighter and low == "min_length":
        is_tighter = not _is_so_long(old, new)
    if is_tighter and _keeps_enum(old, new):
        is_tighter = False
    yield ("D214" if is_tighter else "D253"), said


def _has_fraction(state: Constraints, *ends: str) -> bool:
    return any(getattr(state, end) not in (None, int(getattr(state, end) or 0)) for end in ends)


def _change(what: str, was: str, now: str) -> str:
    if not was:
        return f"{what} is limited now: {now}"
    return (
        f"{what} limit changed from {was} to {now}" if now else f"{what} is no longer limited (it was {was})"
    )


def _text(state: Constraints, low: str, high: str) -> str:
    least, most = getattr(state, low), getattr(state, high)
    above, below = (state.exclusive_minimum, state.exclusive_maximum) if low == "minimum" else (False, False)
    if least is not None and most is not None and not above and not below:
        return f"{least} to {most}" if least != most else f"exactly {least}"
    parts = [f"{'more than' if above else 'at least'} {least}"] if least is not None else []
    parts += [f"{'less than' if below else 'at most'} {most}"] if most is not None else []
    return " and ".join(parts)


def _bound(state: Constraints, end: str, *, whole: bool) -> tuple[float, bool] | None:
    """A bound of numbers, and whether it is itself left out; of whole numbers, as one that is not."""
    value, is_out = getattr(state, end), getattr(state, f"exclusive_{end}")
    if value is None:
        return None
    if whole:  # a server cuts off what is behind the point, and compares then
        return (int(value) + (1 if end == "minimum" else -1) * is_out, False)
    return (value, is_out)


def _is_tighter(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    for sign, was, now in ((1, before[0], after[0]), (-1, before[1], after[1])):
        if now is None:
            continue
        if isinstance(now, int) and sign == 1 and now <= 0:
            continue  # of a size: nothing is below it
        if was is None:
            return True
        if isinstance(now, tuple):
            if (sign * now[0], now[1]) > (sign * was[0], was[1]):
                return True
        elif sign * now > sign * was:
            return True
    return False


def _divides(new: float, old: float | None) -> bool:
    if not old or not new:
        return False
    times = old / new
    return times == math.floor(times) and isinstance(new, int) and isinstance(old, int)


# texts


def _is_so_long(old: Constraints, new: Constraints) -> bool:
    """Whether texts had, by what was said before, the length that is asked for now."""
    if not old.pattern:
        return False
    try:
        wanted = patterns.sized(new.min_length, new.max_length)
        return _example(_texts(old), wanted) is None
    except Undecided:
        return False


def _texts(state: Constraints) -> tuple[str, ...]:
    """The patterns of all texts that a state accepts. Raises ``Undecided``."""
    found: tuple[str, ...] = (state.pattern,) if state.pattern else ()
    if state.min_length or state.max_length is not None:
        found += (patterns.sized(state.min_length, state.max_length),)
    return found


@lru_cache(maxsize=4096)
def _decided(old: tuple[str, ...], new: str) -> tuple[str | None, str]:
    try:
        return patterns.counterexample(old, new), ""
    except Undecided as error:
        return None, str(error)


def _example(old: tuple[str, ...], new: str) -> str | None:
    example, why = _decided(old, new)
    if why:
        raise Undecided(why)
    return example


def _pattern(old: Constraints, new: Constraints) -> Iterator[Change]:
    said = f"pattern changed from {shown(old.pattern)} to {shown(new.pattern)}"
    if not new.pattern:
        yield "D254", said
        return
    code = "D215" if old.pattern else "D216"
    if _keeps_enum(old, new):
        yield "D265", f"{said}: every value of the enum has it"
        return
    try:
        try:
            refused = _example(_texts(old), new.pattern)
        except Undecided:
            if not old.pattern:
                raise
            refused = _example((old.pattern,), new.pattern)  # without the lengths, which may be too large
    except Undecided as error:
        yield code, f"{said}; whether it refuses what was accepted cannot be decided: {error}"
        return
    if refused is not None:
        short = refused if len(refused) <= 40 else f"{refused[:37]}..."
        yield code, f"{said}: {_quoted(short)} is refused now"
        return
    try:
        is_same = bool(old.pattern) and _example((new.pattern,), old.pattern) is None
    except Undecided:
        is_same = False
    if not is_same:
        yield "D265", said


def _quoted(text: str) -> str:
    shown_text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{shown_text}"'


def _keeps_enum(old: Constraints, new: Constraints) -> bool:
    """Whether the values were listed before, and each that is still listed keeps what is said now."""
    values = [value for value in old.enum if not new.enum or value in new.enum]
    return bool(old.enum) and all(_fits(value, new) for value in values)


def keeps(value: Any, place: Value) -> bool:
    """Whether a scalar is one of the enum, and keeps the limits and the format; of others that is not known."""
    limits, kind = place.constraints, place.type
    if isinstance(value, dict | list) or (limits.enum and value not in limits.enum):
        return False
    check = string_format_check(kind.format) if isinstance(kind, Scalar) and isinstance(value, str) else None
    return (check is None or check(value)) and _fits(value, limits)


def _fits(value: Any, state: Constraints) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, str):
        is_long = state.min_length is not None and len(value) < state.min_length
        if is_long or (state.max_length is not None and len(value) > state.max_length):
            return False
        return not state.pattern or match_test(state.pattern)(value)
    if isinstance(value, int | float):
        least, most = (_bound(state, end, whole=False) for end in ("minimum", "maximum"))
        if least is not None and (value < least[0] or (least[1] and value == least[0])):
            return False
        if most is not None and (value > most[0] or (most[1] and value == most[0])):
            return False
        return not state.multiple_of or value % state.multiple_of == 0
    return False
