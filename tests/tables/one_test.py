"""The one test of every suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .agreement import Suite, faults_of, folder, measure


def agreement_test(suite: Suite) -> Callable[[], None]:
    """A test: no level of the suite falls below its floor, and every exception still applies."""

    @pytest.mark.shared
    @pytest.mark.skipif(
        not folder().exists(), reason="needs the ../shared folder of tables, or KUBEWRIGHT_TABLES"
    )
    def test() -> None:
        agreement = measure(suite)
        assert agreement.lines, f"no lines of {suite.name} in {folder()}"
        assert not faults_of(agreement), "\n".join(faults_of(agreement))

    return test
