"""How typed structs write zero values, for the definitions of the API: ``zero_values.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    return ZeroValueTable(options)


@dataclass(frozen=True, slots=True)
class ZeroValueTable:
    """One table for the package, read by ``apimachinery.schema.typed_form``; none where no fact is known."""

    options: Options
    name: str = "zero_values"

    def emit(self, api: Api) -> Iterable[File]:
        """``zero_values.py``."""
        names = {definition.name for definition in api.definitions}
        table = {
            entry.definition: (dict(entry.written), entry.kept)
            for entry in sorted(api.fact("zero_values") or (), key=lambda entry: entry.definition)
            if entry.definition in names
        }
        if table:
            yield File(
                "zero_values.py",
                module_of(
                    "zero_values",
                    self.options.origins,
                    "Fields that are always written, and scalars kept although zero.",
                    table=expression(table, 0, 30),
                ),
            )
