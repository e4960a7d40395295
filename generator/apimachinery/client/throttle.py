"""How fast a client may ask: client-go's token bucket (``QPS`` and ``Burst`` of rest.Config). No clock, no sockets.

A bucket holds ``burst`` tokens and gains ``qps`` of them a second; a request takes one, or waits for the time when
its token will be there. Requests are served in the order they came: a reservation is never taken back.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client allows itself. ``qps`` requests a second after a first ``burst``, 0 for no such limit;
    ``connections`` bounds how many calls of an ``AsyncClient`` are on their way at once (others queue; watches and
    logs are not counted), 0 for no bound."""

    qps: float = 0.0
    burst: int = 10
    connections: int = 32


class TokenBucket:
    """The state of one client; may be shared between threads."""

    def __init__(self, limits: Limits, now: float | None = None) -> None:
        self._qps = limits.qps
        self._burst = max(1, limits.burst)
        self._tokens = float(self._burst)
        self._at = time.monotonic() if now is None else now
        self._lock = threading.Lock()

    def reserve(self, now: float | None = None) -> float:
        """Takes a token; how many seconds to wait until it is there."""
        if self._qps <= 0:
            return 0.0
        with self._lock:
            now = time.monotonic() if now is None else now
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._qps) - 1.0
            self._at = now
            return max(0.0, -self._tokens / self._qps)

    def take(self, now: float | None = None) -> bool:
        """Takes a token where there is one; whether there was."""
        if self._qps <= 0:
            return True
        with self._lock:
            now = time.monotonic() if now is None else now
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._qps)
            self._at = now
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True
