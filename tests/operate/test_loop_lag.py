"""What counts as the loop being held: its own CPU time, not what a busy machine takes from it."""

from __future__ import annotations

import pytest

from apimachinery.metrics import Metrics
from apimachinery.server.operate.loop_lag import LoopLag


@pytest.mark.parametrize(
    ("lag", "used", "held", "stalls"),
    [
        (0.0, 0.02, 0.0, 0),
        (5.0, 0.01, 0.01, 0),  # others had the CPU
        (0.5, 0.52, 0.5, 1),
        (-0.01, 0.0, 0.0, 0),  # woken early
    ],
)
def test_the_loop_is_held_by_its_own_work(lag, used, held, stalls):
    metrics = Metrics()
    loop_lag = LoopLag(metrics)
    loop_lag.note(lag, used)
    lines = dict(line.rsplit(" ", 1) for line in metrics.text().splitlines() if line[0] != "#")
    assert float(lines["kubewright_loop_held_worst_seconds"]) == pytest.approx(held)
    assert float(lines["kubewright_loop_lag_seconds"]) == pytest.approx(max(0.0, lag))
    assert int(lines["kubewright_loop_stalls_total"]) == loop_lag.stalls == stalls
    assert lines["kubewright_loop_held_seconds_count"] == "1"
