"""The generated conversions of an installed package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from apimachinery.conversion import Converter, Table


def converter_of(package: str) -> Converter | None:
    """The conversions of a generated package; ``None`` where it is not importable."""
    return Converter(_tables(package)) if find_spec(package) is not None else None


def _tables(package: str) -> Iterator[Table]:
    """Generated tables, then those written by hand, which win."""
    modules = import_module(f"{package}.registry").GROUP_VERSIONS
    for stem in ("conversion", "hooks"):
        for folder in modules.values():
            name = f"{package}.{folder}.{stem}"
            if find_spec(name) is not None:
                yield getattr(import_module(name), "CONVERSIONS", {})


def converted(converter: Converter, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """A manifest at another version. Empty objects that only the form of a stored object demands are left out.

    Raises what ``Converter.convert`` does.
    """
    new = converter.convert(obj, api_version)
    added = {name for name in ("metadata", "status") if name not in obj and new.get(name) == {}}
    return {name: value for name, value in new.items() if name not in added}
