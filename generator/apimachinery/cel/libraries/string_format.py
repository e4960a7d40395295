"""``string.format(list)`` since version 4: verbs %s %d %f %e %b %o %x %X %%, with a precision for %f and %e."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import (
    ABSENT,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    go_fixed,
    type_name,
)

MAX_PRECISION = 1000
MAX_RESULT = 64 * 1024 * 1024
MAX_SHOWN = 4 * 1024 * 1024
Verb = Callable[[Any, int | None], str]
_VERB = re.compile(r"%(?:\.([0-9]*))?(.)", re.DOTALL)


def format_string(template: str, args: list[Any]) -> str:
    """Fill ``template``; EvalError for a wrong verb, a wrong value or a missing one."""
    out: list[str] = []
    position, used, total = 0, 0, 0
    while True:
        at = template.find("%", position)
        if at < 0:
            out.append(template[position:])
            break
        out.append(template[position:at])
        found = _VERB.match(template, at)
        if not found:
            raise EvalError("unexpected end of string")
        position = found.end()
        precision_text, verb = found.groups()
        if verb == "%" and precision_text is None:
            out.append("%")
            continue
        precision = _precision(precision_text)
        if verb not in _VERBS:
            raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        if used >= len(args):
            raise EvalError(f"index {used} out of range")
        try:
            text = _VERBS[verb](args[used], precision)
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


def _precision(text: str | None) -> int | None:
    if text is None:
        return None
    if not text:
        raise EvalError("could not parse formatting clause: unable to find end of precision specifier")
    if len(text) > 6 or int(text) > MAX_PRECISION:
        raise EvalError(f"precision exceeds maximum of {MAX_PRECISION}")
    return int(text)


def _wrong(clause: str, allowed: str, value: Any) -> EvalError:
    return EvalError(f"{clause} clause can only be used on {allowed}, was given {type_name(value)}")


def bounded(text: str) -> str:
    """``text`` if it is not too long: values that share parts may be longer than memory."""
    if len(text) > MAX_SHOWN:
        raise CostLimitError
    return text


def show(value: Any, precision: int | None = None) -> str:
    """``%s`` of a value, also inside lists and maps."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _special(value) or go_fixed(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (Duration, Timestamp)):
        return str(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, list):
        return f"[{bounded(', '.join(show(item) for item in value))}]"
    if isinstance(value, dict):
        entries = sorted((show(k), show(e)) for k, e in value.items())
        return "{" + bounded(", ".join(f"{k}: {e}" for k, e in entries)) + "}"
    if isinstance(value, Optional) and value is not ABSENT:
        raise _wrong("string", _SHOWN, value)
    raise _wrong("string", _SHOWN, value)


_SHOWN = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _integer(value: Any, precision: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        text = _special(value)
        if text is not None:
            return text
    raise _wrong("decimal", "integers", value)


def _number(value: Any, clause: str) -> float | str:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        number = float(value)
        return _special(number) or number
    if value in ("NaN", "Infinity", "-Infinity"):
        return str(value)
    raise _wrong(clause, "doubles", value)


def _fixed(value: Any, precision: int | None) -> str:
    number = _number(value, "fixed-point")
    return number if isinstance(number, str) else f"{number:.{6 if precision is None else precision}f}"


def _scientific(value: Any, precision: int | None) -> str:
    number = _number(value, "scientific")
    return number if isinstance(number, str) else f"{number:.{6 if precision is None else precision}e}"


def _binary(value: Any, precision: int | None) -> str:
    if isinstance(value, int):
        return format(int(value), "b")
    raise _wrong("binary", "integers and bools", value)


def _octal(value: Any, precision: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), "o")
    raise _wrong("octal", "integers", value)


def _hexadecimal(value: Any, precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (int, Uint)) and not isinstance(value, bool):
        return format(int(value), "x")
    raise _wrong("hex", "integers, byte buffers, and strings", value)


_VERBS: dict[str, Verb] = {
    "s": show,
    "d": _integer,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}
