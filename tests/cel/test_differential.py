"""A few hundred random expressions against Google's C++ implementation; `tests/bench/cel_soak.py` runs 20,000."""

from __future__ import annotations

import pytest


def test_random_expressions_agree() -> None:
    pytest.importorskip("cel_expr_python", reason="cel-expr-python is not installed")
    from tests.bench.cel_soak import compare

    compared, failed, differences = compare(300)
    assert differences == []
    assert compared >= 100 and failed < compared
