"""Conversions: the generated ones of an installed package, and those that rules next to CRDs declare."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from apimachinery.conversion.versions import ConversionError, Converter, Table
from apimachinery.meta.import_faults import describe_import_fault
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.location import Location
from kubewright.tools.migrate.steps import UnknownStepError, read_table


class HooksError(Exception):
    """The ``hooks.py`` of a package cannot be imported; the text says file, line and fault."""


def converter_of(package: str, further: Iterable[Table] = ()) -> Converter | None:
    """The conversions of a generated package, and ``further`` ones; ``None`` where it is not importable. Raises
    ``HooksError``."""
    return Converter([*_tables(package), *further]) if find_spec(package) is not None else None


def _tables(package: str) -> Iterator[Table]:
    """Generated tables, then those written by hand, which win."""
    modules = import_module(f"{package}.registry").GROUP_VERSIONS
    for stem in ("conversion", "hooks"):
        for folder in modules.values():
            name = f"{package}.{folder}.{stem}"
            if find_spec(name) is None:
                continue
            try:
                module = import_module(name)
            except Exception as fault:
                if stem == "conversion":
                    raise
                raise HooksError(describe_import_fault(name, fault)) from fault
            yield getattr(module, "CONVERSIONS", {})


def tables_of_crds(
    paths: Sequence[Path], rules: Path | None, diagnostics: Diagnostics, modules: Path | None = None
) -> list[Table]:
    """The conversions between the versions of CRDs: by the rule files below ``rules`` (docs/rules.md), and by name
    alone for kinds without rules whose versions have one shape. ``modules`` is the folder of the Python modules
    that ``call`` rules name; without it none of the user's is imported. What is wrong is a diagnostic."""
    from kubewright.pipeline import build

    sources = tuple(PathSource(path, path.name) for path in paths)
    built = build(Package(name="crds", sources=sources, facts=rules, only=("conversion",)), Path("crds"))
    for item in built.diagnostics:
        diagnostics.add(item)
    if diagnostics.has_errors:
        return []
    if modules is not None:
        sys.path.insert(0, str(modules.resolve()))
    try:
        return [
            read_table(content, own_modules=modules is not None)
            for _, content in sorted(built.tree.files.items())
        ]
    except (UnknownStepError, ImportError) as problem:
        diagnostics.error(
            "K181",
            f"cannot use a function of a `call` rule: {problem}",
            Location(str(rules)),
            "name the folder of the module with --modules",
        )
        return []
    finally:
        if modules is not None:
            sys.path.remove(str(modules.resolve()))


def converted(converter: Converter, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """A manifest at another version; a ``List`` item by item. Empty objects that only the form of a stored object
    demands are left out.

    Raises what ``Converter.convert`` does, with the place of the item.
    """
    if obj.get("kind") == "List" and isinstance(obj.get("items"), list):
        items = []
        for index, item in enumerate(obj["items"]):
            try:
                if not isinstance(item, dict):
                    raise ConversionError("an object is wanted, with apiVersion and kind")
                items.append(converted(converter, item, api_version))
            except ConversionError as problem:
                raise ConversionError(f"items[{index}]: {problem}") from problem
        return {**obj, "items": items}
    new = converter.convert(obj, api_version)
    added = {name for name in ("metadata", "status") if name not in obj and new.get(name) == {}}
    return {name: value for name, value in new.items() if name not in added}
