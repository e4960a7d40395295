"""Moved to ``apimachinery.kinds.gates``; this name works until 0.2."""

from apimachinery.kinds.gates import *  # noqa: F403
