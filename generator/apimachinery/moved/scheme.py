"""Moved to ``apimachinery.typed.scheme``; this name works until 0.2."""

from apimachinery.typed.scheme import *  # noqa: F403
