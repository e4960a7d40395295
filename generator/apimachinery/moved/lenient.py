"""Moved to ``apimachinery.typed.lenient``; this name works until 0.2."""

from apimachinery.typed.lenient import *  # noqa: F403
