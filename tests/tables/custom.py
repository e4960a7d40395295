"""Custom resources and their schemas."""

from __future__ import annotations

from . import cel_rules, schemas
from .agreement import Suite

SUITE = Suite(
    "custom-resources",
    ("custom-resources.jsonl", "schema-*.jsonl"),
    {"celcompile": cel_rules.compiled, "celvalidate": cel_rules.run, **schemas.RUNNERS},
)
