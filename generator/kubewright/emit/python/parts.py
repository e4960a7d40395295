"""The parts of a Python package, by the name that ``--only`` calls them. To add one: write ``python/<name>.py`` with
``def emitter(options: Options) -> Emitter`` and add its line here.

Parts are imported when they run. Each gets the linked ``Api`` and gives ``File``s; no two give the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import cast

from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.names import check_names
from kubewright.emit.interface import Form, Forms, Made, Options
from kubewright.ir.api import Api, Emitter

PARTS = {
    "models": "kubewright.emit.python.models",
    "resources": "kubewright.emit.python.resources",
    "scheme": "kubewright.emit.python.scheme",
    "registry": "kubewright.emit.python.group_versions",
    "definitions": "kubewright.emit.python.definitions",
    "defaults": "kubewright.emit.python.defaults",
    "validation": "kubewright.emit.python.validation",
    "conversion": "kubewright.emit.python.conversion",
    "strategies": "kubewright.emit.python.strategies",
    "zero_values": "kubewright.emit.python.zero_values",
    "protobuf": "kubewright.emit.python.protobuf",
    "go_types": "kubewright.emit.python.go_types",
    "since": "kubewright.emit.python.since",
    "enums": "kubewright.emit.python.enums",
    "apply": "kubewright.emit.python.apply",
    "client": "kubewright.emit.python.client",
    "operations": "kubewright.emit.python.operations",
    "merge_schema": "kubewright.emit.python.merge_schema",
}
_FORMS = {
    "models": Form.MODELS,
    "apply": Form.MODELS,
    "scheme": Form.MODELS,
    "client": Form.MODELS,
    "operations": Form.MODELS,
    "merge_schema": Form.FOLDED,
}


class Python:
    """The Python emitter."""

    name = "python"
    parts = tuple(PARTS)
    forms = frozenset({Form.READ, Form.FOLDED, Form.MODELS})

    def check(self, api: Api, options: Options, diagnostics: Diagnostics) -> None:
        """Warns of names that meet when turned into Python; refuses those that msgspec takes for none."""
        check_names(api, diagnostics, options.models)

    def emit(self, forms: Forms, options: Options) -> Iterator[Made]:
        """The files of every part that is wanted."""
        for name in PARTS:
            if not options.only or name in options.only:
                for file in load_part(name, options).emit(forms[_FORMS.get(name, Form.READ)]):
                    yield Made(name, file)


def load_part(name: str, options: Options) -> Emitter:
    """The part called ``name``. Raises ``KeyError`` for an unknown name."""
    factory = cast(Callable[[Options], Emitter], import_module(PARTS[name]).emitter)
    return factory(options)
