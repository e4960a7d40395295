"""Compare our CEL with Google's C++ implementation on random expressions.

    python -m tests.bench.cel_soak [COUNT]

Prints every difference and exits 1 if there is one. Needs the package cel-expr-python.
"""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, Phase, given, settings
from tests.cel import oracle
from tests.cel.expressions import ANY


def compare(count: int) -> tuple[int, int, list[str]]:
    """(compared, of which failed on both sides, differences) for ``count`` expressions."""
    env = oracle.theirs()
    tally = {"compared": 0, "failed": 0}
    differences: list[str] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ANY)
    def one(source: str) -> None:
        ours, theirs = oracle.our_answer(source), oracle.their_answer(env, source)
        tally["compared"] += 1
        tally["failed"] += ours == oracle.FAILED
        if not oracle.agree(ours, theirs):
            differences.append(f"{source}\n  ours   {ours!r}\n  theirs {theirs!r}")

    one()
    return tally["compared"], tally["failed"], differences


def main(count: int) -> int:
    """Run and report."""
    compared, failed, differences = compare(count)
    for difference in differences[:50]:
        print(difference)
    print(f"{compared} expressions compared, {failed} failed on both sides, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
