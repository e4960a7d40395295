"""The emitters, by the name that ``--only`` calls them. To add one: write ``emit/<name>.py`` with
``def emitter(options: Options) -> Emitter`` and add its line here.

Emitters are imported when they run. Each gets the linked ``Api`` and gives ``File``s whose paths are relative
to the package's folder; it reads nothing else, writes nothing, and no two give the same path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import cast

from kubewright.ir.api import Emitter

EMITTERS = {
    "models": "kubewright.emit.models",
    "resources": "kubewright.emit.resources",
    "scheme": "kubewright.emit.scheme",
    "registry": "kubewright.emit.group_versions",
    "definitions": "kubewright.emit.definitions",
    "defaults": "kubewright.emit.defaults",
    "validation": "kubewright.emit.validation",
    "conversion": "kubewright.emit.conversion",
    "strategies": "kubewright.emit.strategies",
    "zero_values": "kubewright.emit.zero_values",
    "protobuf": "kubewright.emit.protobuf",
    "go_types": "kubewright.emit.go_types",
    "since": "kubewright.emit.since",
    "enums": "kubewright.emit.enums",
    "apply": "kubewright.emit.apply",
    "client": "kubewright.emit.client",
    "operations": "kubewright.emit.operations",
    "merge_schema": "kubewright.emit.merge_schema",
}


class Form(Enum):
    """In which form an emitter gets the API: as it was read, with equal inline objects folded, or folded with copies
    of the built-in types taken from the package that has them (``ir.shapes``)."""

    READ = "read"
    FOLDED = "folded"
    MODELS = "models"


_FORMS = {
    "models": Form.MODELS,
    "apply": Form.MODELS,
    "scheme": Form.MODELS,
    "client": Form.MODELS,
    "operations": Form.MODELS,
    "merge_schema": Form.FOLDED,
}


def form_of(name: str) -> Form:
    """The form in which the emitter called ``name`` gets the API."""
    return _FORMS.get(name, Form.READ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an emitter may depend on besides the API. ``package`` is the import name of the package made;
    ``origins`` are its sources as headers name them; ``models`` is the flavour of the typed models; with
    ``enums`` they are classes there."""

    package: str
    origins: tuple[str, ...] = ()
    documentation: bool = False
    models: str = "msgspec"
    enums: bool = False


def load_emitter(name: str, options: Options) -> Emitter:
    """The emitter called ``name``. Raises ``KeyError`` for an unknown name."""
    factory = cast(Callable[[Options], Emitter], import_module(EMITTERS[name]).emitter)
    return factory(options)
