"""Moved to ``apimachinery.queue.backlog``; this name works until 0.2."""

from apimachinery.queue.backlog import *  # noqa: F403
