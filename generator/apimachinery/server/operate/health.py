"""/livez, /readyz and /healthz, as kube-apiserver answers them.

Rules. Any method; no credentials. ``?verbose`` lists the checks, ``?exclude=NAME`` leaves one out, ``/livez/NAME`` asks
one alone. Failing is 500 and lists the checks, without reasons except for
those that its operator can fix (a full disk). /livez is forgiving while the server starts;
/readyz fails from the moment a shutdown is asked for, so that load goes elsewhere before the server ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.http.messages import Request, Response

TEXT = "text/plain; charset=utf-8"
# The steps of a start that those who watch kube-apiserver ask for by name. Here a start is one step: a check of that
# name passes when it is done.
_STARTED = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/storage-readiness",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
Probe = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Check:
    """A named check; ``grace`` says that /livez lets it fail during the grace at the start. ``reason`` is what those
    who ask may know of a failure."""

    name: str
    passes: Probe
    grace: bool = False
    reason: Callable[[], str] = lambda: "reason withheld"


class Health:
    """The state of the process, and the checks that tell it."""

    def __init__(self, grace_seconds: float = 0.0) -> None:
        self.started = False
        self.ending = False
        self._grace_until = time.monotonic() + grace_seconds
        self._live = [Check("ping", lambda: True), Check("log", lambda: True)]
        self._ready: list[Check] = []
        for name in _STARTED:
            self.add(Check(name, lambda: self.started, grace=True))

    def add(self, check: Check) -> None:
        """Adds a check to all three endpoints."""
        self._live.append(check)

    def add_ready(self, check: Check) -> None:
        """Adds a check to /readyz alone: a restart would not help."""
        self._ready.append(check)

    def answer(self, request: Request) -> Response | None:
        """The answer to a health path, None where the path is none."""
        head, _, name = request.path[1:].partition("/")
        if head not in ("livez", "readyz", "healthz") or (not name and request.path.endswith("/")):
            return None
        checks = self._checks(head)
        if name:
            chosen = [check for check in checks if check.name == name]
            if not chosen:
                return Response(404, b"404 page not found\n", TEXT)
            if chosen[0].passes():
                return Response(200, b"ok", TEXT)
            text = f"internal server error: {name} failed: {chosen[0].reason()}\n"
            return Response(500, text.encode(), TEXT)
        return self._all(head, checks, request)

    def _checks(self, head: str) -> list[Check]:
        checks = [*self._live]
        if head == "readyz":
            checks.insert(2, Check("informer-sync", lambda: self.started))
            checks += [*self._ready, Check("shutdown", lambda: not self.ending)]
        if head == "livez" and time.monotonic() < self._grace_until:
            checks = [Check(c.name, lambda: True) if c.grace else c for c in checks]
        return checks

    def _all(self, head: str, checks: list[Check], request: Request) -> Response:
        excluded = set(request.sought("exclude"))
        lines, failed = [], False
        for check in checks:
            if check.name in excluded:
                excluded.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok")
            elif check.passes():
                lines.append(f"[+]{check.name} ok")
            else:
                failed = True
                lines.append(f"[-]{check.name} failed: {check.reason()}")
        if excluded:
            names = ", ".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            lines.append(f"{head} check failed")
            return Response(500, ("\n".join(lines) + "\n").encode(), TEXT)
        if request.sought_first("verbose") is None:
            return Response(200, b"ok", TEXT)
        lines.append(f"{head} check passed")
        return Response(200, ("\n".join(lines) + "\n").encode(), TEXT)
