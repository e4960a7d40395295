"""Moved to ``apimachinery.queue.prometheus``; this name works until 0.2."""

from apimachinery.queue.prometheus import *  # noqa: F403
