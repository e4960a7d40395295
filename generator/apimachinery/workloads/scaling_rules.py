"""How far and how fast an autoscaler may go: its bounds, its ``behavior``, and what it wanted lately.

What it wanted and did in the time of its windows is all that a workload controller remembers; it goes with the process,
as Kubernetes' own does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from apimachinery.meta.json import Json

DOWN_WINDOW = 300.0
UP: list[Json] = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
DOWN: list[Json] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
MEMORY_SECONDS = 3600.0
"""The longest window that there may be."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """The size to take, and what the conditions AbleToScale and ScalingLimited say of it: reason and message."""

    replicas: int
    able: tuple[str, str]
    limited: bool
    why: tuple[str, str]


@dataclass(slots=True)
class RecentScales:
    """What one autoscaler wanted and did: moments with numbers."""

    wanted: list[tuple[float, int]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)

    def forget(self, now: float) -> None:
        """Drops what no window reaches."""
        self.wanted = [each for each in self.wanted if each[0] > now - MEMORY_SECONDS]
        self.changes = [each for each in self.changes if each[0] > now - MEMORY_SECONDS]


def bounded(scaler: Json, past: RecentScales, present: int, proposed: int, now: float) -> Bounded:
    """The size for a proposal."""
    spec = scaler["spec"]
    behavior = spec.get("behavior") or {}
    up, down = behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {}
    past.forget(now)
    settled = _stabilized(past, present, proposed, now, up, down)
    past.wanted.append((now, proposed))
    if settled == proposed:
        able = "ReadyForNewScale", "recommended size matches current size"
    elif proposed < settled:
        text = (
            "recent recommendations were higher than current one, applying the highest recent recommendation"
        )
        able = "ScaleDownStabilized", text
    else:
        text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        able = "ScaleUpStabilized", text
    least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
    if settled > present:
        limit = _upper(up, past, present, now)
        if settled > min(limit, most):
            return Bounded(min(limit, most), able, True, _TOO_MANY if most <= limit else _TOO_FAST_UP)
    elif settled < present:
        limit = _lower(down, past, present, now)
        if settled < max(limit, least):
            return Bounded(max(limit, least), able, True, _TOO_FEW if least >= limit else _TOO_FAST_DOWN)
    if settled < least:
        return Bounded(least, able, True, _TOO_FEW)
    if settled > most:
        return Bounded(most, able, True, _TOO_MANY)
    return Bounded(
        settled, able, False, ("DesiredWithinRange", "the desired count is within the acceptable range")
    )


_TOO_MANY = "TooManyReplicas", "the desired replica count is more than the maximum replica count"
_TOO_FEW = "TooFewReplicas", "the desired replica count is less than the minimum replica count"
_TOO_FAST_UP = "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
_TOO_FAST_DOWN = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)


def _stabilized(past: RecentScales, present: int, proposed: int, now: float, up: Json, down: Json) -> int:
    """No more than was wanted at any time of the window up, and no less than at any of the window down."""
    up_window = up.get("stabilizationWindowSeconds") or 0
    given = down.get("stabilizationWindowSeconds")
    down_window = DOWN_WINDOW if given is None else given
    highest = max([proposed, *(count for at, count in past.wanted if at > now - down_window)])
    lowest = min([proposed, *(count for at, count in past.wanted if at > now - up_window)])
    return int(min(max(present, lowest), highest))


def _upper(rules: Json, past: RecentScales, present: int, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return present
    proposals: list[int] = []
    for policy in rules.get("policies") or UP:
        base = present - _changed(past.changes, policy, now)
        value = policy["value"]
        proposals.append(base + value if policy["type"] == "Pods" else math.ceil(base * (100 + value) / 100))
    return min(proposals) if rules.get("selectPolicy") == "Min" else max(proposals)


def _lower(rules: Json, past: RecentScales, present: int, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return present
    proposals: list[int] = []
    for policy in rules.get("policies") or DOWN:
        base = present - _changed(past.changes, policy, now)
        value = policy["value"]
        proposals.append(base - value if policy["type"] == "Pods" else int(base * (100 - value) / 100))
    return max(proposals) if rules.get("selectPolicy") == "Min" else min(proposals)


def _changed(changes: Iterable[tuple[float, int]], policy: Json, now: float) -> int:
    return sum(count for at, count in changes if at > now - policy["periodSeconds"])
