"""How Go prints the values of the kinds, for messages: ``go_types.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.render import docstring, expression, header, module, render
from kubewright.emit.registry import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    """The emitter of ``go_types.py``."""
    return GoTypeTable(options)


@dataclass(frozen=True, slots=True)
class GoTypeTable:
    """Two tables for the package, read by ``apimachinery.schema``; none where no fact is known."""

    options: Options
    name: str = "go_types"

    def emit(self, api: Api) -> Iterable[File]:
        """``go_types.py``."""
        facts = sorted(api.fact("go_types") or (), key=lambda entry: entry.name)
        names = {definition.name for definition in api.definitions}
        if facts:
            yield File(
                "go_types.py",
                module(
                    render(
                        "go_types",
                        header=header(self.options.origins),
                        docstring=docstring("Go structs and the names of fields' types, for messages."),
                        structs=expression(
                            {each.name: each.struct for each in facts if not each.fields}, 0, 25
                        ),
                        names=expression(
                            {each.name: dict(each.fields) for each in facts if each.name in names}, 0, 36
                        ),
                    )
                ),
            )
