"""Moved to ``apimachinery.typed.dataclass_form``; this name works until 0.2."""

from apimachinery.typed.dataclass_form import *  # noqa: F403
