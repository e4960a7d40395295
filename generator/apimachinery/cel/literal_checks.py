"""Checks of constant arguments that are strings of a form: durations, timestamps, regular expressions."""

from __future__ import annotations

from collections.abc import Iterable

from .ast import Call, Literal, Node
from .errors import EvalError
from .libraries.standard import compile_regex
from .values import Duration, Timestamp


def _is_regex(text: str) -> bool:
    try:
        compile_regex(text)
    except EvalError:
        return False
    return True


_FORMS = {
    "duration": lambda text: Duration.parse(text) is not None,
    "timestamp": lambda text: Timestamp.parse(text) is not None,
    "matches": _is_regex,
}


def literal_faults(nodes: Iterable[Node]) -> list[tuple[int, str]]:
    """(offset, message) of each constant argument that cannot be read."""
    faults = []
    for node in nodes:
        if isinstance(node, Call) and node.function in _FORMS and node.args:
            last = node.args[-1]
            if (
                isinstance(last, Literal)
                and isinstance(last.value, str)
                and not _FORMS[node.function](last.value)
            ):
                faults.append((last.offset, f"invalid {node.function} argument"))
    return faults
