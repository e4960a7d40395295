"""The computed cells of built-in kinds' tables, by kind and column; what is not here is found by its column's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
CELLS: dict[tuple[str, str], Callable[[Json], Any]] = {}
