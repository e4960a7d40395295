"""Ages as people read them: ``3s``, ``5m30s``, ``2d4h``, ``3y120d``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apimachinery.meta.clock import wall

_LONGEST = (1 << 63) / 1e9  # what Go's time.Duration holds: 292 years


def since(moment: Any) -> str:
    """How long ago an RFC 3339 text says.

    ``<unknown>`` where it says nothing, ``<invalid>`` where it cannot be read.
    """
    if not moment:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(str(moment).replace("Z", "+00:00"))
        seconds = min(wall() - then.timestamp(), _LONGEST)
    except (ValueError, OverflowError):
        return "<invalid>"
    return human(seconds)


def human(seconds: float) -> str:
    """A duration in at most two units; precise where it is short."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, rest = divmod(hours, 24)
    if days < 8:
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    if years < 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


def between(start: Any, end: Any) -> str:
    """From one moment to another: RFC 3339 texts, or seconds."""
    return human(_seconds(end) - _seconds(start))


def _seconds(moment: Any) -> float:
    if isinstance(moment, (int, float)):
        return moment
    try:
        return datetime.fromisoformat(str(moment).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
