"""What is counted of fairness, by kube-apiserver's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from apimachinery.metrics import Count, Distribution, Metrics, Pairs
from apimachinery.server.fairness.levels import Level
from apimachinery.server.fairness.schemas import Schema

_SECONDS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
_SEATS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
_LENGTHS = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
_P = "apiserver_flowcontrol_"


@dataclass(slots=True, eq=False)
class Lane:
    """Requests of one schema at its level, and what is counted of them. ``stamp`` are the header lines of their
    answers."""

    schema: Schema
    level: Level
    stamp: bytes
    dispatched: Count
    executed: tuple[Distribution, Distribution]
    """Of regular requests, and of watches."""
    estimated: Distribution | None
    waited: Distribution
    lengths: Distribution | None
    flow_prefix: str = ""
    executing: int = 0
    inqueue: int = 0
    seats: int = 0
    rejected: dict[str, Count] = field(default_factory=dict)


class Shown(Protocol):
    """Fairness, as it is shown. ``inqueue`` is by whether requests write."""

    inqueue: dict[bool, int]

    def levels(self) -> Iterable[Level]:
        """The levels."""

    def lanes(self) -> Iterable[Lane]:
        """The lanes."""


class FairnessMetrics:
    """The families."""

    def __init__(self, metrics: Metrics, fairness: Shown) -> None:
        names = ("flow_schema", "priority_level")
        self.dispatched = metrics.counter(
            f"{_P}dispatched_requests_total", "Requests that were let in.", *names
        )
        self.rejected = metrics.counter(
            f"{_P}rejected_requests_total", "Requests that were turned away.", *names, "reason"
        )
        self.waited = metrics.histogram(
            f"{_P}request_wait_duration_seconds", "Seconds in queues.", _SECONDS, "execute", *names
        )
        self.executed = metrics.histogram(
            f"{_P}request_execution_seconds",
            "Seconds from being let in to the answer.",
            _SECONDS,
            *names,
            "type",
        )
        self.estimated = metrics.histogram(
            f"{_P}work_estimated_seats", "Seats that requests take.", _SEATS, *names
        )
        self.lengths = metrics.histogram(
            f"{_P}request_queue_length_after_enqueue",
            "Length of the queue that a request joins.",
            _LENGTHS,
            *names,
        )

        metrics.asked(
            "apiserver_current_inqueue_requests", "Requests that wait.", ("request_kind",),
            lambda: [(("mutating",), fairness.inqueue[True]), (("readOnly",), fairness.inqueue[False])],
        )  # fmt: skip

        def of_lanes(value: Callable[[Lane], float]) -> Callable[[], Pairs]:
            return lambda: [((lane.schema.name, lane.level.name), value(lane)) for lane in fairness.lanes()]

        def of_levels(value: Callable[[Level], float]) -> Callable[[], Pairs]:
            return lambda: [((level.name,), value(level)) for level in fairness.levels()]

        for name, text, lane_value in (
            ("current_executing_requests", "Requests under way.", lambda lane: lane.executing),
            ("current_executing_seats", "Seats that are taken.", lambda lane: lane.seats),
            ("current_inqueue_requests", "Requests that wait.", lambda lane: lane.inqueue),
        ):
            metrics.asked(_P + name, text, names, of_lanes(lane_value))
        for name, text, level_value in (
            ("nominal_limit_seats", "Seats of a level's own.", lambda level: level.nominal),
            ("current_limit_seats", "Seats that a level may take now.", lambda level: level.nominal),
            ("lower_limit_seats", "Seats that are never lent.", lambda level: level.nominal - level.lendable),
            ("upper_limit_seats", "Seats with all that may be borrowed.",
             lambda level: level.nominal + level.borrowable),
        ):  # fmt: skip
            metrics.asked(_P + name, text, ("priority_level",), of_levels(level_value))
