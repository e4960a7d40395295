"""client-go's token bucket. It has no clock and does not wait.

A bucket holds ``burst`` tokens and gains ``qps`` of them a second; who takes one waits until it is there. Tokens are
given in the order of the calls: a reservation is never taken back.
"""

from __future__ import annotations

import threading
import time


class TokenBucket:
    """The state of a bucket, which is always full with ``qps`` 0; may be shared between threads."""

    def __init__(self, qps: float, burst: int, now: float | None = None) -> None:
        self._qps = qps
        self._burst = max(1, burst)
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
