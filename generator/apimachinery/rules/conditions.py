"""Moved to ``apimachinery.kinds.conditions``; this name works until 0.2."""

from apimachinery.kinds.conditions import *  # noqa: F403
