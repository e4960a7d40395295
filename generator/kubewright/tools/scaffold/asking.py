"""Values of the command line: given by a flag, asked for on a terminal, or left at their default.

With everything required given, nothing is asked. Otherwise, on a terminal, every missing value is asked for, with its
default; an answer that cannot be used is refused with the reason and asked for again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from kubewright.tools.scaffold.writing import RefusedError


@dataclass(frozen=True, slots=True)
class Asking:
    """Whether there is somebody to ask."""

    interactive: bool

    def value(
        self,
        flag: str,
        given: str | None,
        check: Callable[[str], str] = str,
        default: Callable[[], str] | None = None,
    ) -> str:
        """The value of a flag, checked; ``default`` may be empty, ``None`` means that the value is required. Raises
        ``RefusedError``."""
        if given is not None:
            return check(given)
        usual = default() if default is not None else None
        if not self.interactive:
            if usual is None:
                raise RefusedError(f"{flag} is required", "there is no terminal to ask on")
            return check(usual) if usual else usual
        while True:
            shown = f" [{usual}]" if usual is not None else ""
            print(f"{flag}{shown}: ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            if not line:
                raise RefusedError(f"{flag} is required", "the input ended")
            answer = line.strip() or usual
            if answer is None:
                print(f"  {flag} is required", file=sys.stderr)
                continue
            if not answer:
                return answer
            try:
                return check(answer)
            except RefusedError as refusal:
                print(f"  {refusal}", file=sys.stderr)


def asking(*required: object) -> Asking:
    """Somebody is asked where something required is missing and standard input is a terminal."""
    return Asking(any(value is None for value in required) and sys.stdin.isatty())
