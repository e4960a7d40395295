"""Descriptions of built-in kinds from the kubeconfig's cluster, for source checkouts, which have none of their own."""

from __future__ import annotations

from typing import Any

from apimachinery.meta.json import Json
from kubewright.source import prose

_SECONDS = 10.0
"""How long a cluster may take to answer: the descriptions are an extra."""


class NoClusterError(Exception):
    """No cluster gave descriptions; the text says why."""


def describe_from_cluster(definitions: dict[str, Any], api_version: str) -> str:
    """Put the descriptions that the cluster publishes for ``api_version`` into ``definitions``; return the cluster's
    address. Raises ``NoClusterError``."""
    try:
        from apimachinery.client.config import Config
        from apimachinery.client.connection import Client
        from apimachinery.client.errors import ApiError, ConfigError, TransportError
        from apimachinery.client.retry import NO_RETRIES
        from kubewright.tools.inputs.cluster import get
    except ModuleNotFoundError as missing:
        raise NoClusterError(
            f"pip install 'kubewright[client]' reads them from a cluster ({missing})"
        ) from None
    place = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
    try:
        config = Config.load()
        with Client(config, timeout=_SECONDS, retry=NO_RETRIES) as client:
            index: Json = client.run(get("/openapi/v3"))
            entry = (index.get("paths") or {}).get(place) or {}
            document: Json = client.run(get(str(entry.get("serverRelativeURL") or f"/openapi/v3/{place}")))
    except (ApiError, ConfigError, TransportError) as error:
        raise NoClusterError(str(error)) from None
    schemas = (document.get("components") or {}).get("schemas") or {}
    if not prose.describe(definitions, prose.texts_of(schemas)):
        raise NoClusterError(f"{config.server} publishes no descriptions of {api_version}")
    return config.server
