"""A quick test of a pattern, for values that are checked often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import re2

from apimachinery.cel.patterns import QUIET, compile_pattern, kept


@kept
def pattern_test(pattern: str) -> Callable[[str], Any]:
    """A quicker test of a pattern: None for no match. It may miss one, where the automaton grows too large.

    Raises ``PatternError``.
    """
    compile_pattern(pattern)
    single = re2.Set.SearchSet(QUIET)
    single.Add(pattern)
    single.Compile()
    test: Callable[[str], Any] = single.Match
    return test
