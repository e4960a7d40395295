"""Moved to ``apimachinery.typed.object``; this name works until 0.2."""

from apimachinery.typed.object import *  # noqa: F403
