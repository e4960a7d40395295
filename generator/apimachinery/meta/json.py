"""JSON as Python has it: what logic and storage pass to each other instead of models."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object. Its values are dict, list, str, int, float, bool and None."""
