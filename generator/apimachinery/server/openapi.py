"""Descriptions of the API: /openapi/v2, /openapi/v3, /version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apimachinery.server.api_options import ApiOptions
from apimachinery.server.catalog import Catalog
from apimachinery.server.discovery import NOT_FOUND
from apimachinery.server.http import Request, Response
from apimachinery.server.packages import Package
from apimachinery.server.routes import Area, Route
from apimachinery.wire.json import encode


class OpenApi:
    """Answers from a catalog."""

    def __init__(self, catalog: Catalog, packages: Sequence[Package], options: ApiOptions) -> None:
        self._catalog = catalog
        self._packages = packages
        self._options = options

    def answer(self, request: Request, route: Route) -> Response:
        """The answer to a path of this area."""
        if route.area is Area.VERSION:
            return Response(200, encode(self._version()) + b"\n")
        return NOT_FOUND

    def _version(self) -> dict[str, Any]:
        return {}
