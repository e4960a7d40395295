"""OpenAPI v3 (``openapi: 3.x``): one document, or one of the many that /openapi/v3 serves.

Documents of one server repeat shared types; ``link`` takes equal ones once. References with siblings are
written as ``allOf`` around the reference, often next to ``default: {}``.
"""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.location import Document
from kubewright.source.openapi import read_openapi
from kubewright.source.schema import OPENAPI_V3


class OpenApiV3:
    """The source of OpenAPI v3 documents."""

    def read(self, document: Document, diagnostics: Diagnostics, *, operations: bool = False) -> Fragment:
        """Every schema of the document's components, and the resources its paths serve; with ``operations`` those
        too."""
        components = document.value.get("components", {})
        schemas = components.get("schemas", {}) if isinstance(components, dict) else components
        return read_openapi(
            document, schemas, "/components/schemas", OPENAPI_V3, diagnostics, operations=operations
        )
