"""What is counted of requests, by kube-apiserver's names.

A request for a resource is counted under its verb, resource and scope; the handler that routed it says which
(``Request.counted``). Other requests are counted under their path, where it is one that the server has; all others
together under no path, or a client could make the server remember a series for each path that it makes up.

What access control refuses is counted by ``apiserver_request_total`` of no resource, as nothing was routed yet.
"""

from __future__ import annotations

import time
from bisect import bisect_left

from apimachinery.http.messages import (
    Counts,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.metrics import Count, Metrics

SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0,
           15.0, 20.0, 30.0, 45.0, 60.0)  # fmt: skip
SLI_SECONDS = SECONDS[2:]
SIZES = tuple(10.0**power for power in range(3, 10))
BODY_SIZES = tuple(50_000.0 + 100_000 * step for step in range(31))
ACCESS_SECONDS = tuple(0.001 * 2**power for power in range(15))
_METHODS_OF = {"create": "POST", "update": "PUT"}
"""Verbs that are counted under their method; the others are counted under themselves, in capitals."""
PATHS = frozenset(
    {
        "/",
        "/api",
        "/apis",
        "/version",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/livez",
        "/readyz",
        "/healthz",
    }
)
BATCH = 64
"""How many answered requests are noted before they are counted."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
NAMED_USERS = frozenset({"admin", "kubelet", "kube_proxy", "kube_controller_manager", "kube_scheduler"})


class Counted:
    """What is counted of one verb on one resource in one scope."""

    __slots__ = ("_codes", "_counter", "bodies", "durations", "labels", "long_running", "sizes", "sli")

    def __init__(
        self, metrics: RequestMetrics, labels: tuple[str, ...], *, long_running: bool = False
    ) -> None:
        group, resource, verb = labels[1], labels[3], labels[6]
        self.labels = labels
        self._counter = metrics.total
        self._codes: dict[tuple[int, str], Count] = {}
        dry_run_first = (*labels[:1], "", *labels[1:])
        self.durations = metrics.durations.at(*dry_run_first)
        self.sli = None if long_running else metrics.sli.at(*labels)
        self.sizes = metrics.sizes.at(*labels) if verb in ("GET", "LIST") else None
        self.bodies = None
        if resource and verb in ("POST", "PUT", "PATCH", "APPLY", "DELETE"):
            self.bodies = metrics.bodies.at(group, resource, verb.lower())
        self.long_running = metrics.long_running.at(*labels) if long_running else None

    def answered(self, code: int, seconds: float, size: int, body: int, dry_run: str) -> None:
        """Counts one answer."""
        count = self._codes.get((code, dry_run))
        if count is None:
            component, group, version, resource, subresource, scope, verb = self.labels
            count = self._codes[code, dry_run] = self._counter.at(
                str(code), component, dry_run, group, resource, scope, subresource, "", verb, version
            )
        count.value += 1
        place = bisect_left(SECONDS, seconds)
        durations = self.durations
        durations.counts[place] += 1
        durations.sum += seconds
        if (sli := self.sli) is not None:
            sli.counts[place - 2 if place > 2 else 0] += 1
            sli.sum += seconds
        if self.sizes is not None:
            self.sizes.observe(size)
        if self.bodies is not None and body:
            self.bodies.observe(body)


class RequestMetrics:
    """The families, and who asked for what."""

    def __init__(self, metrics: Metrics) -> None:
        self._noted: list[tuple[Counts, int, float, int, int, str]] = []
        metrics.before.append(self._settle)
        names = ("component", "group", "version", "resource", "subresource", "scope", "verb")
        self.total = metrics.counter(
            "apiserver_request_total",
            "Requests answered.",
            "code", "component", "dry_run", "group", "resource", "scope", "subresource", "system_client", "verb",
            "version",
        )  # fmt: skip
        self.durations = metrics.histogram(
            "apiserver_request_duration_seconds",
            "Seconds until a request was answered.",
            SECONDS, "component", "dry_run", "group", "version", "resource", "subresource", "scope", "verb",
        )  # fmt: skip
        self.sli = metrics.histogram(
            "apiserver_request_sli_duration_seconds",
            "Seconds until a request was answered; without long-running ones.",
            SLI_SECONDS,
            *names,
        )
        self.sizes = metrics.histogram(
            "apiserver_response_sizes", "Bytes of answers to reads.", SIZES, *names
        )
        self.bodies = metrics.histogram(
            "apiserver_request_body_size_bytes", "Bytes of bodies of writes.", BODY_SIZES,
            "group", "resource", "verb",
        )  # fmt: skip
        self.long_running = metrics.gauges(
            "apiserver_longrunning_requests", "Long-running requests under way.", *names
        )
        self._terminated = metrics.counter(
            "apiserver_request_terminations_total",
            "Requests that the server gave up to protect itself.",
            "code", "component", "group", "resource", "scope", "subresource", "verb", "version",
        )  # fmt: skip
        self._deprecated = metrics.gauges(
            "apiserver_requested_deprecated_apis",
            "1 for each deprecated API that was asked for since the start.",
            "group", "removed_release", "resource", "subresource", "version",
        )  # fmt: skip
        self._resources: dict[tuple[object, str, str, str], Counted] = {}
        self._paths: dict[tuple[str, str], Counted] = {}
        self._user_counts: dict[str, Count] = {}
        self._add_access(metrics)

    def _add_access(self, metrics: Metrics) -> None:
        """Adds what is counted of authentication and authorization."""
        self._authentications = metrics.counter(
            "authentication_attempts", "Requests by the outcome of authentication.", "result"
        )
        self._authentication = metrics.histogram(
            "authentication_duration_seconds", "Seconds of authentication.", ACCESS_SECONDS, "result"
        )
        self._authorizations = metrics.counter(
            "authorization_attempts_total", "Requests by the outcome of authorization.", "result"
        )
        self._authorization = metrics.histogram(
            "authorization_duration_seconds", "Seconds of authorization.", ACCESS_SECONDS, "result"
        )
        self._users = metrics.counter(
            "authenticated_user_requests",
            "Requests by user; only well-known names are told apart.",
            "username",
        )
        self._known = (
            self._authentications.at("success"),
            self._authentication.at("success"),
            self._authorizations.at("allowed"),
            self._authorization.at("allowed"),
        )

    def resource(self, of: tuple[str, str, str], verb: str, subresource: str, scope: str) -> Counted:
        """What a verb on a resource is counted under. ``of`` is group, version, resource; ``verb`` is an API verb."""
        place = (of, verb, subresource, scope)
        counted = self._resources.get(place)
        if counted is None:
            group, version, resource = of
            named = _METHODS_OF.get(verb, verb.upper())
            labels = ("apiserver", group, version, resource, subresource, scope, named)
            long_running = named in ("WATCH", "CONNECT") or subresource in (
                "log",
                "exec",
                "attach",
                "portforward",
            )
            counted = self._resources[place] = Counted(self, labels, long_running=long_running)
        return counted

    def deprecated(self, group: str, version: str, resource: str, subresource: str, removed: str) -> None:
        """Counts a request for a deprecated API."""
        self._deprecated.at(group, removed, resource, subresource, version).value = 1

    def answered(
        self, request: Request, response: Response | StreamResponse | UpgradeResponse, seconds: float
    ) -> None:
        """Counts an answer, or the beginning of its stream."""
        counted: Counts | None = request.counted
        if counted is None:
            counted = self._of_path(request)
        elif counted.long_running is not None and not isinstance(response, Response):
            self._follow(request, counted, response.status, seconds)
            return
        size = 0
        if isinstance(response, Response) and request.method == "GET":
            body = response.body
            size = len(body) if isinstance(body, bytes) else sum(map(len, body))
        dry_run = "All" if request.query_string and "dryRun=All" in request.query_string else ""
        # One by one each of these additions meets a cold cache, which made a get a tenth slower; many in a row do not.
        self._noted.append((counted, response.status, seconds, size, len(request.body), dry_run))
        if len(self._noted) >= BATCH:
            self._settle()

    def _settle(self) -> None:
        """Counts what was noted."""
        noted, self._noted = self._noted, []
        for counted, code, seconds, size, body, dry_run in noted:
            counted.answered(code, seconds, size, body, dry_run)

    def _follow(self, request: Request, counted: Counts, code: int, seconds: float) -> None:
        began = time.perf_counter() - seconds
        running = counted.long_running
        running.value += 1
        before = request.done

        def done() -> None:
            running.value -= 1
            counted.answered(code, time.perf_counter() - began, 0, 0, "")
            if before is not None:
                before()

        request.done = done

    def _of_path(self, request: Request) -> Counted:
        path = request.path
        if path not in PATHS:
            root = path[1:].partition("/")[0]
            path = f"/{root}" if root in ("livez", "readyz", "healthz") else ""
            if request.path.startswith("/openapi/v3/"):
                path = "/openapi/v3"
        method = request.method if request.method in _METHODS else "other"
        counted = self._paths.get((path, method))
        if counted is None:
            labels = ("", "", "", "", path.removeprefix("/") if "openapi" in path else path, "", method)
            counted = self._paths[path, method] = Counted(self, labels)
        return counted

    def given_up(self, code: int, request: Request) -> None:
        """Counts a request that the server gave up: it took too long, or there were too many."""
        labels = (request.counted or self._of_path(request)).labels
        component, group, version, resource, subresource, scope, verb = labels
        self._terminated.at(
            str(code), component, group, resource, scope, subresource, verb, version
        ).value += 1

    def admitted(self, name: str, authentication: float, authorization: float) -> None:
        """Access control let a user in, in so many seconds."""
        attempts, times, verdicts, asked = self._known
        attempts.value += 1
        verdicts.value += 1
        if authentication < 0.001:
            times.counts[0] += 1
            times.sum += authentication
        else:
            times.observe(authentication)
        if authorization < 0.001:
            asked.counts[0] += 1
            asked.sum += authorization
        else:
            asked.observe(authorization)
        self._count_user(name)

    def _count_user(self, name: str) -> None:
        if name not in NAMED_USERS:
            name = "other"
        count = self._user_counts.get(name)
        if count is None:
            count = self._user_counts[name] = self._users.at(name)
        count.value += 1

    def refused(self, code: int, name: str | None, authentication: float, authorization: float) -> None:
        """Access control refused: nobody knows who (``name`` is None), or he may not."""
        if name is None:
            self._authentications.at("failure" if code == 401 else "error").value += 1
            self._authentication.at("failure" if code == 401 else "error").observe(authentication)
            return
        self._authentications.at("success").value += 1
        self._authentication.at("success").observe(authentication)
        self._count_user(name)
        result = "no-opinion" if code == 403 else "error"
        self._authorizations.at(result).value += 1
        self._authorization.at(result).observe(authorization)
