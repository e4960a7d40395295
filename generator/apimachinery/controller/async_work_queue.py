"""Moved to ``apimachinery.queue.async_work_queue``; this name works until 0.2."""

from apimachinery.queue.async_work_queue import *  # noqa: F403
