"""Words that string fields of the built-in kinds take, and defaults: ``enums.py``, which the OpenAPI documents show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.emit.code.render import expression, module_of
from kubewright.emit.code.words import words_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File


def emitter(options: Options) -> Emitter:
    return Enums(options)


@dataclass(frozen=True, slots=True)
class Enums:
    """One table for the package; none where no check names words."""

    options: Options
    name: str = "enums"

    def emit(self, api: Api) -> Iterable[File]:
        """``enums.py``."""
        words = words_of(api)
        if words.fields:
            yield File(
                "enums.py",
                module_of(
                    "enums",
                    self.options.origins,
                    "Words that fields take, and their defaults, by definition and field.",
                    table=expression(words.fields, 0, 48),
                    defaults=expression(words.defaults, 0, 48),
                ),
            )
