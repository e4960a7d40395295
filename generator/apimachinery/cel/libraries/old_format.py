"""``string.format(list)`` before version 4 of its library, which is what Kubernetes has.

The verbs are those of ``string_format``. Numbers are printed for English readers: ``%f`` groups its digits, ``%e``
has six of them whatever its precision, and a raised exponent; infinity is ∞. Inside lists and maps values are
printed as expressions would have them. What is wrong is reported in the words of that version.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from apimachinery.cel.libraries.string_format import MAX_PRECISION, MAX_RESULT, bounded
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.printing import go_quote
from apimachinery.cel.values.values import Duration, Timestamp, TypeValue, go_double, type_name

Clause = tuple[str, int | None]
"""A verb and its precision."""

VERBS = frozenset("sdfebxXo")
_UNREADABLE = "could not parse formatting clause"
_SHOWN = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
WRONG_TYPE = {
    "s": f"string clause can only be used on {_SHOWN}",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


def pieces(template: str, count: int) -> Iterator[str | Clause]:
    """The texts and clauses of ``template``, which has ``count`` arguments; EvalError at the first fault."""
    at, used = 0, 0
    while True:
        found = template.find("%", at)
        if found < 0:
            yield template[at:]
            return
        yield template[at:found]
        at = found + 1
        if template.startswith("%", at):
            yield "%"
            at += 1
            continue
        if at >= len(template):
            raise EvalError("unexpected end of string")
        if used >= count:
            raise EvalError(f"index {used} out of range")
        precision, at = _precision(template, at)
        verb = template[at]
        if verb not in VERBS:
            raise EvalError(f'{_UNREADABLE}: unrecognized formatting clause "{verb}"')
        yield verb, precision
        at += 1
        used += 1


def _precision(template: str, at: int) -> tuple[int | None, int]:
    if template[at] != ".":
        return None, at
    end = at + 1
    while end < len(template) and template[end] in "0123456789":
        end += 1
    fault = f"{_UNREADABLE}: error while parsing precision"
    if end == len(template):
        raise EvalError(f"{fault}: could not find end of precision specifier")
    digits = template[at + 1 : end]
    if not digits:
        raise EvalError(
            f'{fault}: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if len(digits) > 6 or int(digits) > MAX_PRECISION:
        raise EvalError(f"precision exceeds maximum of {MAX_PRECISION}")
    return int(digits), end


def format_like_kubernetes(template: str, args: list[Any]) -> str:
    """Fill ``template``; EvalError for a wrong verb, a wrong value or a missing one."""
    out: list[str] = []
    used, total = 0, 0
    for piece in pieces(template, len(args)):
        if isinstance(piece, str):
            text = piece
        else:
            verb, precision = piece
            try:
                text = _FORMATS[verb](args[used], precision)
            except CostLimitError:
                raise
            except EvalError as error:
                raise EvalError(f"error during formatting: {error}") from None
            used += 1
        total += len(text)
        if total > MAX_RESULT:
            raise CostLimitError
        out.append(text)
    return "".join(out)


def _wrong(verb: str, value: Any) -> EvalError:
    return EvalError(f"{WRONG_TYPE[verb]}, was given {type_name(value)}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _show(value: Any, precision: int | None = None) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_double(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (Duration, Timestamp)):
        return str(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, list):
        return f"[{bounded(', '.join(map(_inside, value)))}]"
    if isinstance(value, dict):
        entries = sorted((_key(key), _inside(each)) for key, each in value.items())
        return "{" + bounded(", ".join(f"{key}:{each}" for key, each in entries)) + "}"
    raise _wrong("s", value)


def _inside(value: Any) -> str:
    """A value in a list or map, as an expression would write it."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        return f"b{go_quote(_show(value))}"
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")'
    if isinstance(value, Duration):
        return f'duration("{value}")'
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{go_double(value)}"'
    return _show(value)


def _key(key: Any) -> str:
    if not isinstance(key, (str, int)):
        raise EvalError(f"no formatting function for map key of type {type_name(key)}")
    return _inside(key)


def _decimal(value: Any, precision: int | None) -> str:
    if not _is_integer(value):
        raise _wrong("d", value)
    return str(int(value))


def _double(value: Any, verb: str) -> float:
    if isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _wrong(verb, value)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Any, precision: int | None) -> str:
    number = _double(value, "f")
    return (
        f"{number:,.{6 if precision is None else precision}f}" if math.isfinite(number) else _special(number)
    )


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "+")


def _scientific(value: Any, precision: int | None) -> str:
    number = _double(value, "e")
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    return f"{mantissa}×10{exponent.translate(_RAISED)}"


def _binary(value: Any, precision: int | None) -> str:
    if not isinstance(value, int):
        raise _wrong("b", value)
    return format(int(value), "b")


def _octal(value: Any, precision: int | None) -> str:
    if not _is_integer(value):
        raise _wrong("o", value)
    return format(int(value), "o")


def _hexadecimal(value: Any, precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return value.hex()
    if not _is_integer(value):
        raise _wrong("x", value)
    return format(int(value), "x")


_FORMATS: dict[str, Callable[[Any, int | None], str]] = {
    "s": _show,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}
