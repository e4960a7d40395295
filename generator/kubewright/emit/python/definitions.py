"""The linked definitions in OpenAPI v2 form, for everything that works on schemas at run time: ``definitions.json``.

References are ``#/definitions/<name>``. Every marker, default, format and validation is kept; prose only on
request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.json_lines import json_lines
from kubewright.emit.code.schemas import SchemaWriter
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    return Definitions(options)


@dataclass(frozen=True, slots=True)
class Definitions:
    """One JSON object: definition name → schema, sorted by name."""

    options: Options
    name: str = "definitions"

    def emit(self, api: Api) -> Iterable[File]:
        """``definitions.json``, a definition or, where it is long, a field a line."""
        writer = SchemaWriter(documentation=self.options.documentation)
        lines = [
            f"{json.dumps(d.name)}: {json_lines(writer.definition(d))}"
            for d in sorted(api.definitions, key=lambda d: d.name)
        ]
        yield File("definitions.json", "{\n" + ",\n".join(lines) + "\n}\n")
