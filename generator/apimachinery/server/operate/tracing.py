"""Traces of requests, by OpenTelemetry, sent to a collector.

One span a request, made when its answer is known: before that nobody can say who asks, and whose ``traceparent``
(W3C Trace Context) counts. That of whoever has proved who he is makes the span part of his trace, sampled as he
sampled; that of somebody unknown is only linked to, or anybody could fill the collector. Of requests that belong to no
trace, ``samplingRatePerMillion`` are sampled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from time import perf_counter
from typing import Any

from apimachinery.http.messages import Request

UNAUTHENTICATED = "system:unauthenticated"
SERVICE = "apiserver"


class Tracing:
    """Makes spans with a tracer provider of the OpenTelemetry SDK; ``stop`` ends it, after what waits was sent."""

    def __init__(self, provider: Any, stop: Callable[[], None]) -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = provider.get_tracer("kubewright.server")
        self._propagator = TraceContextTextMapPropagator()
        self._server = SpanKind.SERVER
        self.stop = stop

    def record(self, request: Request, code: int, audit_id: str) -> None:
        """Ends the span of a request."""
        from opentelemetry import trace

        ended = time.time_ns()
        began = ended - int((perf_counter() - request.began) * 1e9)
        context, links = None, []
        if "traceparent" in request.headers:
            asked = self._propagator.extract(request.headers)
            user = request.user
            if user is not None and UNAUTHENTICATED not in user.groups:
                context = asked
            else:
                links.append(trace.Link(trace.get_current_span(asked).get_span_context()))
        labels = request.counted.labels if request.counted is not None else ()
        # The name must not have what makes each request another: it says the verb and the resource.
        name = f"{labels[6]} {labels[3]}{'/' + labels[4] if labels[4] else ''}" if labels else request.method
        span = self._tracer.start_span(
            name, context=context, kind=self._server, links=links, start_time=began
        )
        if span.is_recording():
            span.set_attributes(
                {
                    "http.request.method": request.method,
                    "url.path": request.path,
                    "http.response.status_code": code,
                    "user_agent.original": request.headers.get("user-agent", ""),
                    "client.address": request.source,
                    "audit-id": audit_id,
                }
            )
            if code >= 500:
                span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end(end_time=ended)


def otlp_tracing(endpoint: str, per_million: int, release: str) -> Tracing:
    """Traces that go to a collector (OTLP over gRPC, ``host:port``). Raises ImportError without the SDK."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(per_million / 1_000_000)),
        resource=Resource.create({"service.name": SERVICE, "service.version": release}),
    )
    # Kubernetes' configuration knows collectors without TLS alone.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    return Tracing(provider, provider.shutdown)
