"""Moved to ``apimachinery.queue.clock``; this name works until 0.2."""

from apimachinery.queue.clock import *  # noqa: F403
