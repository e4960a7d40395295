"""Moved to ``apimachinery.kinds.checks``; this name works until 0.2."""

from apimachinery.kinds.checks import *  # noqa: F403
