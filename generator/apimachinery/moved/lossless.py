"""Moved to ``apimachinery.typed.lossless``; this name works until 0.2."""

from apimachinery.typed.lossless import *  # noqa: F403
