"""Public names of a package that are imported when they are first used: importing the package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """A package's ``__getattr__`` and ``__all__``, of the names that each module gives."""
    modules = {name: module for module, several in names.items() for name in several.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load, [*modules]
