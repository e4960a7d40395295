"""Metrics of controllers under the names of client-go and controller-runtime, so that their dashboards fit."""

from __future__ import annotations

import threading

from apimachinery.metrics import Metrics
from apimachinery.queue.observing import Observer, Outcome

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class PrometheusObserver(Observer):
    """Counts into ``metrics``: its own or the program's, where other families may be next to these."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self.metrics = metrics = metrics if metrics is not None else Metrics()
        self._lock = threading.Lock()
        self._total = metrics.counter(
            "controller_runtime_reconcile_total",
            "Reconciliations by controller and result.",
            "controller",
            "result",
        )
        self._seconds = metrics.histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciliations take.",
            _SECONDS,
            "controller",
        )
        self._depth = metrics.gauges("workqueue_depth", "Objects in line.", "name")
        self._retries = metrics.counter("workqueue_retries_total", "Objects tried again.", "name")
        self._mirror_failures = metrics.counter(
            "kubewright_mirror_failures_total", "Lists and watches that failed.", "resource"
        )
        self._leading = metrics.gauges("leader_election_master_status", "1 while this copy leads.", "name")

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Counts and measures."""
        with self._lock:
            self._total.at(controller, outcome).add()
            self._seconds.at(controller).observe(seconds)

    def queued(self, controller: str, depth: int) -> None:
        """Sets the gauge."""
        with self._lock:
            self._depth.at(controller).value = depth

    def retried(self, controller: str, failures: int) -> None:
        """Counts."""
        with self._lock:
            self._retries.at(controller).add()

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """Counts."""
        with self._lock:
            self._mirror_failures.at(resource).add()

    def leading(self, lease: str, is_leader: bool) -> None:
        """Sets the gauge."""
        with self._lock:
            self._leading.at(lease).value = int(is_leader)

    def exposition(self) -> bytes:
        """The metrics as text, for a scrape."""
        return self.metrics.text().encode()
