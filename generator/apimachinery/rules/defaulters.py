"""Moved to ``apimachinery.kinds.defaulters``; this name works until 0.2."""

from apimachinery.kinds.defaulters import *  # noqa: F403
