# Made from async_work_queue.py by build/plain.py: edit that one.
"""Moved to ``apimachinery.queue.work_queue``; this name works until 0.2."""

from apimachinery.queue.work_queue import *  # noqa: F403
