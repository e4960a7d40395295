"""Moved to ``apimachinery.kinds.hooks``; this name works until 0.2."""

from apimachinery.kinds.hooks import *  # noqa: F403
