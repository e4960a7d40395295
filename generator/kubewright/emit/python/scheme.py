"""GVK ↔ model class: ``scheme.py``. Model modules are imported when a class of theirs is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
    return SchemeTable(options)


@dataclass(frozen=True, slots=True)
class SchemeTable:
    """One table for the package: apiVersion → kind → ``module.Class``."""

    options: Options
    name: str = "scheme"

    def emit(self, api: Api) -> Iterable[File]:
        """``scheme.py``; none next to another flavour, whose classes msgspec cannot decode, or of ordinary
        documents."""
        if self.options.models != "msgspec" or not api.has_kinds:
            return
        table: dict[str, dict[str, str]] = {}
        for plan in lay_out(api).modules:
            for item in plan.classes:
                if item.kind:
                    group, version, kind = item.kind
                    api_version = join_api_version(group, version)
                    table.setdefault(api_version, {})[kind] = f"{plan.name}.{item.name}"
        ordered = {key: dict(sorted(table[key].items())) for key in sorted(table)}
        yield File(
            "scheme.py",
            module_of(
                "scheme",
                self.options.origins,
                "Which class is which kind.",
                package=self.options.package,
                table=expression(ordered, 4, 1),
            ),
        )
