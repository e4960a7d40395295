"""How Go prints the values of the kinds, for messages: ``go_types.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    return GoTypeTable(options)


@dataclass(frozen=True, slots=True)
class GoTypeTable:
    """Three tables for the package, read by ``apimachinery.schema``; none where no fact is known."""

    options: Options
    name: str = "go_types"

    def emit(self, api: Api) -> Iterable[File]:
        """``go_types.py``."""
        facts = sorted(api.fact("go_types") or (), key=lambda entry: entry.name)
        known = {definition.name for definition in api.definitions}
        structs = {each.name: each.struct for each in facts if not (each.fields or each.moved)}
        names = {each.name: dict(each.fields) for each in facts if each.fields and each.name in known}
        moved = {each.name: dict(each.moved) for each in facts if each.moved and each.name in known}
        if facts:
            yield File(
                "go_types.py",
                module_of(
                    "go_types",
                    self.options.origins,
                    "Go structs, the names of fields' types, and fields out of order, for messages.",
                    structs=expression(structs, 0, 25),
                    names=expression(names, 0, 36),
                    moved=expression(moved, 0, 36),
                ),
            )
