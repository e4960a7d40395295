"""Moved to ``apimachinery.queue.observing``; this name works until 0.2."""

from apimachinery.queue.observing import *  # noqa: F403
