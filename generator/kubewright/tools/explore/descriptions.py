"""Descriptions of Kubernetes' own definitions, for servers whose OpenAPI documents leave them out, as ours."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubewright.source.kubernetes_validate import NEWEST, described, has_prose

Json = dict[str, Any]


def descriptions(asked: Json) -> Json:
    """``descriptions`` by definition, each with its own under the empty name and those of its fields, of the names in
    ``definitions`` as a ``release`` says them, or the newest release that is known."""
    release = str(asked.get("release") or "")
    known = _known(release if has_prose(release) else NEWEST)
    return {"descriptions": {name: known[name] for name in asked.get("definitions") or () if name in known}}


@lru_cache(1)
def _known(release: str) -> dict[str, dict[str, str]]:
    if not has_prose(release):
        return {}
    return {name: _texts(schema) for name, schema in described(release).items()}


def _texts(schema: Json) -> dict[str, str]:
    texts = {
        name: str(field["description"])
        for name, field in (schema.get("properties") or {}).items()
        if field.get("description")
    }
    return {**texts, "": str(schema.get("description") or "")}
