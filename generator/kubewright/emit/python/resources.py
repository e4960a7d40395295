"""The resource table of each group-version, as a literal: ``<group_version>/resources.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code import names
from kubewright.emit.code.render import CallText, expression, module_of
from kubewright.emit.interface import Options
from kubewright.emit.python.code.constructor import call
from kubewright.ir.api import Api, Emitter, File, Resource
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
    return Resources(options)


@dataclass(frozen=True, slots=True)
class Resources:
    """One ``RESOURCES`` tuple per group-version; what is not served at all is left out."""

    options: Options
    name: str = "resources"

    def emit(self, api: Api) -> Iterable[File]:
        """``resources.py`` of each group-version that serves something."""
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        modules = names.module_names(pairs)
        tables: dict[tuple[str, str], list[Resource]] = {}
        for resource in api.resources:
            tables.setdefault((resource.group, resource.version), []).append(resource)
        for (group, version), table in sorted(tables.items()):
            calls = tuple(self._resource(resource) for resource in table)
            used = {"Resource"}
            used.update("Subresource" for r in table if r.subresources)
            used.update("PrinterColumn" for r in table if r.printer_columns)
            api_version = join_api_version(group, version)
            yield File(
                f"{modules[group, version]}/resources.py",
                module_of(
                    "resources",
                    self.options.origins,
                    f"Resources of {api_version}.",
                    imports=sorted(used),
                    resources=expression(calls, 0, 34),
                ),
            )

    def _resource(self, resource: Resource) -> CallText:
        return call("Resource", resource, self.options.documentation)
