"""The numbers of the protobuf form, for the definitions of the API: ``protobuf.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.rules import FieldNumber


def emitter(options: Options) -> Emitter:
    return ProtobufNumbers(options)


@dataclass(frozen=True, slots=True)
class ProtobufNumbers:
    """One table for the package, read by ``apimachinery.wire.protobuf``; none where no number is known."""

    options: Options
    name: str = "protobuf"

    def emit(self, api: Api) -> Iterable[File]:
        """``protobuf.py``."""
        names = {definition.name for definition in api.definitions}
        table = {
            entry.definition: _table(entry.fields)
            for entry in sorted(api.fact("protobuf") or (), key=lambda entry: entry.definition)
            if entry.definition in names
        }
        if table:
            yield File(
                "protobuf.py",
                module_of(
                    "protobuf",
                    self.options.origins,
                    "Numbers of fields in the protobuf form.",
                    table=expression(table, 0, 34),
                ),
            )


def _table(fields: tuple[FieldNumber, ...]) -> dict[str, Any]:
    return {f.name: (f.number, _table(f.inline)) if f.inline else f.number for f in fields}
