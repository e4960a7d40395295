"""Spans of reconciliations: one each, named and described, with what left the reconcile function recorded in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

trace = pytest.importorskip("opentelemetry.trace", reason="opentelemetry-api is not installed")


def test_a_reconciliation_is_a_span_and_its_error_is_recorded() -> None:
    from apimachinery.controller.tracing import TracingObserver

    spans: list[tuple[str, Any, str]] = []

    class Kept(trace.NoOpTracer):  # type: ignore[misc, name-defined]
        @contextmanager
        def start_as_current_span(self, name: str, **options: Any) -> Iterator[None]:
            try:
                yield
            except ValueError as error:
                spans.append((name, options["attributes"], str(error)))
                raise
            spans.append((name, options["attributes"], ""))

    observer = TracingObserver(Kept())
    with observer.reconciling("websites", "shop", "a"):
        pass
    with pytest.raises(ValueError, match="no such image"), observer.reconciling("websites", "shop", "b"):
        raise ValueError("no such image")
    described = {"k8s.controller": "websites", "k8s.namespace.name": "shop"}
    assert spans == [
        ("reconcile websites", {**described, "k8s.object.name": "a"}, ""),
        ("reconcile websites", {**described, "k8s.object.name": "b"}, "no such image"),
    ]
