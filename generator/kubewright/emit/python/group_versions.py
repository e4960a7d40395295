"""The sub-package of each group-version: ``registry.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code import names
from kubewright.emit.code.render import expression, module_of
from kubewright.emit.interface import Options
from kubewright.emit.python.code.constructor import call
from kubewright.ir.api import Api, Emitter, File
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
    return GroupVersions(options)


@dataclass(frozen=True, slots=True)
class GroupVersions:
    """apiVersion → sub-package, and the groups in the order of discovery."""

    options: Options
    name: str = "registry"

    def emit(self, api: Api) -> Iterable[File]:
        """``registry.py``; none for ordinary documents."""
        if not api.has_kinds:
            return
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        table = {
            (join_api_version(group, version)): module_name
            for (group, version), module_name in names.module_names(pairs).items()
        }
        yield File(
            "registry.py",
            module_of(
                "group_versions",
                self.options.origins,
                "Where the models, tables and functions of each group-version stand.",
                table=expression(dict(sorted(table.items())), 0, 34),
                groups=expression(tuple(call("Group", group, False) for group in api.groups), 0, 28),
            ),
        )
