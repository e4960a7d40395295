"""OpenAPI v2 (``swagger: "2.0"``): one document with ``definitions``, as /openapi/v2 serves it."""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.location import Document
from kubewright.source.openapi import read_openapi
from kubewright.source.schema import OPENAPI_V2


class OpenApiV2:
    """The source of OpenAPI v2 documents."""

    def read(self, document: Document, diagnostics: Diagnostics, *, operations: bool = False) -> Fragment:
        """Every definition of the document, and the resources its paths serve; with ``operations`` those too."""
        return read_openapi(
            document,
            document.value.get("definitions", {}),
            "/definitions",
            OPENAPI_V2,
            diagnostics,
            operations=operations,
        )
