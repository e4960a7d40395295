"""Which releases added fields to the definitions of the API: ``since.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    return FieldsSince(options)


@dataclass(frozen=True, slots=True)
class FieldsSince:
    """One table for the package: a server that answers as an older release has none of them."""

    options: Options
    name: str = "since"

    def emit(self, api: Api) -> Iterable[File]:
        """``since.py``."""
        names = {definition.name for definition in api.definitions}
        added = dict(api.fact("since") or ())
        table = {name: added[name] for name in sorted(added) if name in names}
        if table:
            yield File(
                "since.py",
                module_of(
                    "since",
                    self.options.origins,
                    "The releases that added fields to definitions that were there before.",
                    table=expression(table, 0, 43),
                ),
            )
