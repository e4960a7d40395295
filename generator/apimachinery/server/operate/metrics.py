"""Counts for /metrics, in the Prometheus text format, by kube-apiserver's names."""

from __future__ import annotations

from collections.abc import Callable

from apimachinery.server.http.messages import Response

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What the server counts; gauges are asked when they are shown."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._gauges: list[tuple[str, str, str, Callable[[], float]]] = []

    def count(self, method: str, code: int) -> None:
        """One answered request."""
        place = (method, code)
        self._requests[place] = self._requests.get(place, 0) + 1

    def gauge(self, name: str, text: str, value: Callable[[], float], *, kind: str = "gauge") -> None:
        """A number that is looked up when it is asked for."""
        self._gauges.append((name, text, kind, value))

    def answer(self) -> Response:
        """All of them."""
        lines = [
            "# HELP apiserver_request_total Requests answered, by verb and code.",
            "# TYPE apiserver_request_total counter",
        ]
        lines += [
            f'apiserver_request_total{{verb="{method}",code="{code}"}} {number}'
            for (method, code), number in sorted(self._requests.items())
        ]
        for name, text, kind, value in self._gauges:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value():g}"]
        return Response(200, ("\n".join(lines) + "\n").encode(), TEXT)
