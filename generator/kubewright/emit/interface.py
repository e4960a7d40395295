"""The contract of an emitter: what makes the files of one language, or format, from an API.

*What it gets.* The linked and checked API in the forms it asks for (``Form``), and ``Options``. It reads nothing else:
no disk, no clock, no other emitter's output.

*What it gives.* ``File``s, each with the part that made it (``--only`` chooses parts); paths are relative to
a folder of its own, and no two are alike. The same input gives the same bytes. ``output`` puts them on disk as a whole,
with a manifest; so ``generate --check`` finds drift in every language alike.

*How names are chosen.* ``code.layout`` decides which types there are and what they are called, for every language from
the same folding. A language brings a ``Naming``: which words it reserves, and what a member is called; clashes, lengths
and numbers are the layout's. What a language cannot express is a diagnostic of ``check``.

*Text is data.* Strings of a spec reach a file only through the language's own functions for literals and comments;
``tests/compiler/languages/test_hostile.py`` runs hostile specs through every emitter of ``registry.LANGUAGES``.

*How it is held.* ``tests/compiler/languages/golden`` has a folder of what each makes of one small API (of Python, a
folder a part, in ``tests/compiler/emit/golden``). To add a language, write ``emit/<language>/`` with ``language()`` in
``__init__.py``, and add a line to ``registry``, to ``config.LANGUAGES`` and a floor to ``floors.yaml``. No emitter
imports another: what two need is in ``emit/code``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api, File


class Form(Enum):
    """In which form an emitter gets the API: as it was read; with equal inline objects folded; the same with the names
    that were given to some; only those folded whose prose and rules are alike too; folded, with copies of built-in
    types taken from the package that has them (``ir.shapes``). Built-in kinds are in all forms as they were read."""

    READ = "read"
    FOLDED = "folded"
    NAMED = "named"
    EXACT = "exact"
    MODELS = "models"


Forms = Mapping[Form, Api]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an emitter may depend on besides the API. ``package`` is the name of the package made; ``origins`` are its
    sources as headers name them; ``only`` are the parts wanted, empty for all; ``settings`` those of the language.
    ``models`` is the flavour of the typed models of Python, and with ``enums`` they are classes there."""

    package: str
    origins: tuple[str, ...] = ()
    documentation: bool = False
    models: str = "msgspec"
    enums: bool = False
    only: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """A file, and the part of the emitter that made it."""

    part: str
    file: File


class Language(Protocol):
    """An emitter."""

    @property
    def name(self) -> str:
        """What ``--language`` calls it."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What ``--only`` may choose."""

    @property
    def forms(self) -> frozenset[Form]:
        """The forms that it asks for; the others need not be made."""

    def check(self, api: Api, options: Options, diagnostics: Diagnostics) -> None:
        """Says what of ``api`` this language cannot express, or only by another name."""

    def emit(self, forms: Forms, options: Options) -> Iterator[Made]:
        """All files, or those of the parts in ``options.only``."""
