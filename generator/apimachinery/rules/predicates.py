"""Moved to ``apimachinery.kinds.predicates``; this name works until 0.2."""

from apimachinery.kinds.predicates import *  # noqa: F403
