"""A span for each reconciliation (OpenTelemetry). Needs ``pip install 'kubewright[controller]'``.

Which exporter gets them is for your program to configure; without that the API does nothing, at little cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace

from apimachinery.queue.observing import Observer


class TracingObserver(Observer):
    """Spans named ``reconcile <controller>``; errors that leave the reconcile function are recorded in them."""

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer = tracer if tracer is not None else trace.get_tracer("kubewright.controller")

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        """One span, with the object's name by the semantic conventions for Kubernetes."""
        attributes = {"k8s.controller": controller, "k8s.namespace.name": namespace, "k8s.object.name": name}
        with self._tracer.start_as_current_span(f"reconcile {controller}", attributes=attributes):
            yield
