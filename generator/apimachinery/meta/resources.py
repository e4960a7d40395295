"""The resource table: what an API serves, as data. Generated ``resources.py`` files hold literals of these.

The server routes by it, discovery prints it, the client decides by it which methods exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from apimachinery.meta.gvk import GroupVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An API group as discovery lists it: ``versions`` preferred first, groups by falling ``priority``, then
    by name. 1000 is the priority kube-apiserver gives to groups of CustomResourceDefinitions."""

    name: str
    versions: tuple[str, ...]
    priority: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrinterColumn:
    """A Table column. ``json_path`` is empty where the server computes the cell (built-in kinds)."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """A subresource and the GVK it takes and gives; the paths are those of a custom resource's scale. ``introduced`` is
    the first release that has it, where its resource is older."""

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str = ""
    introduced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of one version. ``definition`` names its schema in the API's definitions; ``served`` says
    whether a server serves it without being told to (``--runtime-config``). The last four are life-cycle
    facts of built-in kinds: releases such as ``1.36``, and the GVK to use instead."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    definition: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""
    introduced: str = ""
    deprecated_in: str = ""
    removed_in: str = ""
    replacement: str = ""

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for the core group."""
        return str(GroupVersion(self.group, self.version))


def find_resource(resources: tuple[Resource, ...], plural: str) -> Resource:
    """The resource of a table with that plural. Raises ``KeyError``."""
    for resource in resources:
        if resource.plural == plural:
            return resource
    raise KeyError(plural)
