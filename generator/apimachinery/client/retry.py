"""When a failed call is tried again, and after how long. No clock, no sockets: callers sleep.

Rules (client-go's and RFC 9110's):

* 429, and any answer with Retry-After and a code of 500 or more, was refused before anything was done: every
  call is tried again, not earlier than the server says.
* A broken connection, 502, 503 and 504 leave open whether the server acted: only calls that may be repeated
  without harm are tried again (reads, and server-side apply).
* A request that surely never reached the server is tried again, whatever it is.
* Between tries lies a backoff that doubles, with jitter; the sum of all waiting never passes ``budget``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from apimachinery.client.bodies import AnswerTooLarge, TransportError
from apimachinery.meta.errors import ApiError

UNCLEAR = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient a client is. Times in seconds; ``attempts`` counts the first try."""

    attempts: int = 5
    first_wait: float = 0.1
    longest_wait: float = 10.0
    budget: float = 60.0

    def start(self) -> Patience:
        """The state of one call."""
        return Patience(self)


@dataclass(slots=True)
class Patience:
    """What is left of the patience for one call."""

    policy: RetryPolicy
    tries: int = 1
    waited: float = 0.0
    _random: random.Random = field(default_factory=random.Random)

    def wait_before_next(self, error: Exception, *, repeatable: bool) -> float | None:
        """How long to wait before the next try, or None to give up and raise ``error``."""
        policy = self.policy
        if self.tries >= policy.attempts or not _may_repeat(error, repeatable):
            return None
        doubled: float = policy.first_wait * 2.0 ** (self.tries - 1)
        wait = min(policy.longest_wait, doubled)
        wait *= self._random.uniform(0.5, 1.0)
        if isinstance(error, ApiError):
            wait = max(wait, float(error.retry_after))
        if self.waited + wait > policy.budget:
            return None
        self.tries += 1
        self.waited += wait
        return wait


def _may_repeat(error: Exception, repeatable: bool) -> bool:
    if isinstance(error, AnswerTooLarge):
        return False
    if isinstance(error, TransportError):
        return not error.sent or (repeatable and not error.timed_out)
    if isinstance(error, ApiError):
        refused = error.code == 429 or (error.code >= 500 and error.retry_after > 0)
        return refused or (repeatable and error.code in UNCLEAR)
    return False


NO_RETRIES = RetryPolicy(attempts=1)
