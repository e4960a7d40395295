"""What is counted within the API, by kube-apiserver's names: admission, webhooks, storage, watch events, objects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from apimachinery.metrics import Count, Distribution, Metrics, Pairs
from apimachinery.server.operate.requests import SECONDS

ADMISSION_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
WEBHOOK_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
EVENT_SIZES = tuple(1024.0 * 2**power for power in range(8))
Seen = Callable[[int, int], None]
"""Takes the size of an event and how many watchers it was for."""


class ApiMetrics:
    """The families."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._steps = metrics.histogram(
            "apiserver_admission_step_admission_duration_seconds", "Seconds of a step of admission.",
            ADMISSION_SECONDS, "operation", "rejected", "type",
        )  # fmt: skip
        self._webhooks = metrics.histogram(
            "apiserver_admission_webhook_admission_duration_seconds", "Seconds of a call to a webhook.",
            WEBHOOK_SECONDS, "name", "operation", "rejected", "type",
        )  # fmt: skip
        self._rejections = metrics.counter(
            "apiserver_admission_webhook_rejection_count", "Requests that a webhook refused, or that failed with it.",
            "error_type", "name", "operation", "rejection_code", "type",
        )  # fmt: skip
        self._requests = metrics.counter(
            "apiserver_admission_webhook_request_total", "Calls to webhooks.",
            "code", "name", "operation", "rejected", "type",
        )  # fmt: skip
        self._events = metrics.counter(
            "apiserver_watch_events_total", "Events that watchers were sent.", "group", "resource", "version"
        )
        self._sizes = metrics.histogram(
            "apiserver_watch_events_sizes", "Bytes of events that watchers were sent.", EVENT_SIZES,
            "group", "resource", "version",
        )  # fmt: skip
        self._writes = metrics.histogram(
            "etcd_request_duration_seconds", "Seconds of writes to the storage, whichever it is.", SECONDS,
            "group", "operation", "resource",
        )  # fmt: skip
        self._write_counts = metrics.counter(
            "etcd_requests_total", "Writes to the storage, whichever it is.", "group", "operation", "resource"
        )
        self._write_errors = metrics.counter(
            "etcd_request_errors_total", "Writes that the storage refused, conflicts too.",
            "group", "operation", "resource",
        )  # fmt: skip
        self._of_steps: dict[tuple[str, bool, bool], Distribution] = {}
        self._seen: dict[tuple[str, str, str], Seen] = {}
        self._of_writes: dict[tuple[str, str, str], tuple[Distribution, Count, Count]] = {}

    def step(self, operation: str, validates: bool, refused: bool, seconds: float) -> None:
        """Counts a step of admission (all plugins that may change an object, or all that may only refuse it)."""
        place = (operation, validates, refused)
        series = self._of_steps.get(place)
        if series is None:
            kind = "validate" if validates else "admit"
            series = self._of_steps[place] = self._steps.at(operation, _flag(refused), kind)
        series.observe(seconds)

    def webhook(self, name: str, operation: str, kind: str, code: int, seconds: float) -> None:
        """Counts a call to a webhook: ``code`` is 200 where it allowed, 0 where it could not be asked."""
        refused = code != 200
        self._webhooks.at(name, operation, _flag(refused), kind).observe(seconds)
        self._requests.at(str(code), name, operation, _flag(refused), kind).value += 1
        if refused:
            error = "calling_webhook_error" if code == 0 else "no_error"
            self._rejections.at(error, name, operation, str(code), kind).value += 1

    def watched(self, of: tuple[str, str, str]) -> Seen:
        """What counts the events of a resource (group, version, plural)."""
        seen = self._seen.get(of)
        if seen is None:
            group, version, resource = of
            count, sizes = self._events.at(group, resource, version), self._sizes.at(group, resource, version)

            def seen(size: int, times: int) -> None:
                count.value += times
                sizes.observe(size, times)

            self._seen[of] = seen
        return seen

    def objects(self, values: Callable[[], Pairs]) -> None:
        """Says how many objects there are; ``values`` gives them by group and resource."""
        text = "Objects of a resource."
        self._metrics.asked("apiserver_resource_objects", text, ("group", "resource"), values)
        self._metrics.asked(
            "apiserver_storage_objects", text, ("resource",),
            lambda: [((f"{p[1]}.{p[0]}" if p[0] else p[1],), number) for p, number in values()],
        )  # fmt: skip

    def timed(self, storage: Any) -> Timed:
        """The writes of a storage, counted."""
        return Timed(storage, self._write_of)

    def _write_of(self, key: str, operation: str) -> tuple[Distribution, Count, Count]:
        _, group, resource, *_ = key.split("/", 3)
        place = (group, resource, operation)
        series = self._of_writes.get(place)
        if series is None:
            labels = ("" if group == "core" else group, operation, resource)
            series = self._of_writes[place] = (
                self._writes.at(*labels),
                self._write_counts.at(*labels),
                self._write_errors.at(*labels),
            )
        return series


class Timed:
    """Writes that are counted."""

    def __init__(self, storage: Any, of: Callable[[str, str], tuple[Distribution, Count, Count]]) -> None:
        self._storage = storage
        self._of = of

    def create(self, key: str, value: Any) -> Coroutine[Any, Any, Any]:
        return self._count("create", key, self._storage.create(key, value))

    def update(self, key: str, expected: int, value: Any) -> Coroutine[Any, Any, Any]:
        return self._count("update", key, self._storage.update(key, expected, value))

    def delete(self, key: str, expected: int, last: Any, *, marked: bool = False) -> Coroutine[Any, Any, Any]:
        return self._count("delete", key, self._storage.delete(key, expected, last, marked=marked))

    async def _count(self, operation: str, key: str, made: Any) -> Any:
        seconds, count, errors = self._of(key, operation)
        count.value += 1
        began = perf_counter()
        try:
            return await made
        except Exception:
            errors.value += 1
            raise
        finally:
            seconds.observe(perf_counter() - began)


def _flag(value: bool) -> str:
    return "true" if value else "false"
