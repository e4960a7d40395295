"""Metrics for Prometheus, under the names that controller-runtime gives them, so that its dashboards fit.

Needs ``pip install 'kubewright[controller]'`` (prometheus-client).
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from apimachinery.controller.observing import Observer, Outcome

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class PrometheusObserver(Observer):
    """Counts into a registry of its own, or yours."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._total = Counter(
            "controller_runtime_reconcile",
            "Reconciliations by controller and result.",
            ("controller", "result"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciliations take.",
            ("controller",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._depth = Gauge("workqueue_depth", "Objects in line.", ("name",), registry=self.registry)
        self._retries = Counter(
            "workqueue_retries", "Objects tried again.", ("name",), registry=self.registry
        )
        self._mirror_failures = Counter(
            "kubewright_mirror_failures",
            "Lists and watches that failed.",
            ("resource",),
            registry=self.registry,
        )
        self._leading = Gauge(
            "leader_election_master_status", "1 while this copy leads.", ("name",), registry=self.registry
        )

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Counts and measures."""
        self._total.labels(controller, outcome).inc()
        self._seconds.labels(controller).observe(seconds)

    def queued(self, controller: str, depth: int) -> None:
        """Sets the gauge."""
        self._depth.labels(controller).set(depth)

    def retried(self, controller: str, failures: int) -> None:
        """Counts."""
        self._retries.labels(controller).inc()

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """Counts."""
        self._mirror_failures.labels(resource).inc()

    def leading(self, lease: str, is_leader: bool) -> None:
        """Sets the gauge."""
        self._leading.labels(lease).set(int(is_leader))

    def exposition(self) -> bytes:
        """The metrics as text, for a scrape."""
        return generate_latest(self.registry)
