"""Patterns that are kept: clients write them, and an automaton grows with what it reads."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import re2

from apimachinery.cel.libraries.standard import compile_search
from apimachinery.cel.patterns import (
    KEPT_LONG,
    KEPT_PATTERNS,
    SMALL_MEMORY,
    compile_pattern,
    kept,
    match_test,
)

TEXT = "".join(random.Random(3).choices("ab", k=20_000))
STATUS = Path("/proc/self/status")


def resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", STATUS.read_text())
    assert found is not None
    return int(found[1]) >> 10


@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from /proc")
def test_automatons_that_grow_with_their_text_stay_small():
    before = resident()
    for number in range(8):
        pattern = f"a.{{{14 + number % 3}}}[c{number}]"  # of 2^14 states
        assert compile_pattern(pattern).search(TEXT) is None
        assert not match_test(pattern)(TEXT)
    assert resident() - before < 60, "each of the three grew to 3 to 6 MB when it might"


@pytest.mark.parametrize("count", [50, 300, 490])
@pytest.mark.parametrize("form", ["a.{%d}b", "(a|b.){%d}c", "[ab]{%d}$", "(ab?){%d}", "a{%d}"])
def test_with_little_memory_they_say_the_same(form, count):
    pattern = form % count
    options = re2.Options()
    options.log_errors = False
    expected = re2.compile(pattern, options).search(TEXT) is not None
    assert (compile_pattern(pattern).search(TEXT) is not None) == expected
    assert compile_search(pattern)(TEXT) == expected
    assert match_test(pattern)(TEXT) == expected


def test_a_program_that_is_larger_than_the_memory_is_taken_all_the_same():
    pattern = "\\pL{90}b"
    small = re2.Options()
    small.log_errors, small.max_mem = False, SMALL_MEMORY
    with pytest.raises(re2.error):
        re2.compile(pattern, small)
    assert compile_pattern(pattern).search("a" * 90 + "b") is not None


def test_few_long_ones_are_kept():
    made: list[str] = []
    make = kept(lambda pattern: made.append(pattern) or pattern)
    for _ in range(2):
        for number in range(KEPT_PATTERNS // 2):
            make(f"short{number}")
    assert len(made) == KEPT_PATTERNS // 2
    for _ in range(2):
        for number in range(KEPT_LONG + 1):
            make("x" * 2_000 + str(number))
    assert len(made) == KEPT_PATTERNS // 2 + 2 * (KEPT_LONG + 1)
