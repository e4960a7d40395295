"""Moved to ``apimachinery.kinds.fields``; this name works until 0.2."""

from apimachinery.kinds.fields import *  # noqa: F403
