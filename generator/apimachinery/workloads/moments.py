"""Times as objects hold them, and seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def text_of(moment: float) -> str:
    """RFC 3339 in whole seconds."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str | None) -> float:
    """Seconds since 1970; 0 for no time."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def sooner(one: float | None, other: float | None) -> float | None:
    """The shorter of two waits, where None is for ever."""
    return other if one is None else one if other is None else min(one, other)
