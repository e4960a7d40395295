"""The merge types of a generated package."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.from_openapi import METADATA_TYPES
from apimachinery.merge.schema import Field, Type


@cache
def package_types(package: str) -> MergeTypes:
    """All types of the ``merge_schema.py`` tables of a generated package, such as ``kubernetes_api``.

    Raises ``ModuleNotFoundError`` for a package that is not there, or was generated without them.
    """
    table: dict[str, Type | Field] = dict(METADATA_TYPES)
    for module in sorted(set(import_module(f"{package}.registry").GROUP_VERSIONS.values())):
        table.update(import_module(f"{package}.{module}.merge_schema").TYPES)
    return MergeTypes(table)
