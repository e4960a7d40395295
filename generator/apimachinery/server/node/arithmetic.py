"""What the shell of simulated containers can count: sums, products and brackets."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

_TERM = re.compile(r"\s*([0-9]{1,18}|\$?[A-Za-z_]\w*|[-+*/%()])")
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda one, other: int(one / other) if other else 0,
    "%": lambda one, other: one - other * int(one / other) if other else 0,
}


def summed(text: str, variables: Mapping[str, str]) -> int:
    """The value of ``$((…))``: sums, products and brackets; 0 for what it does not know."""
    terms = [each.lstrip("$") for each in _TERM.findall(text)]

    def value(least: int) -> int:
        """Reads an operand and the operators after it: all of them for 0, those of products for 1, none for 2."""
        term = terms.pop(0) if terms else "0"
        if term == "(":
            found = value(0)
            if terms[:1] == [")"]:
                terms.pop(0)
        elif term == "-":
            found = -value(2)
        else:
            term = term if term.isdigit() else variables.get(term, "0")
            found = int(term) if is_number(term) else 0
        while terms and terms[0] in _OPERATIONS and (1 if terms[0] in "*/%" else 0) >= least:
            sign = terms.pop(0)
            found = _OPERATIONS[sign](found, value(2 if sign in "*/%" else 1))
        return found

    return value(0)


def is_number(text: str) -> bool:
    """Whether a word is a whole number."""
    return re.fullmatch(r"[-+]?[0-9]{1,18}", text) is not None
