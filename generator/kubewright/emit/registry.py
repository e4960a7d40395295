"""The emitters, by the name that ``--language`` calls them; ``interface`` is their contract. One is imported when it
runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from kubewright.emit.interface import Language

LANGUAGES = {
    "python": "kubewright.emit.python",
    "jsonschema": "kubewright.emit.jsonschema",
    "typescript": "kubewright.emit.typescript",
    "go": "kubewright.emit.go",
}


def load_language(name: str) -> Language:
    """The emitter called ``name``. Raises ``KeyError`` for an unknown name."""
    return cast(Callable[[], Language], import_module(LANGUAGES[name]).language)()
