"""What every generated model class derives from.

``Part`` is any struct of an API; ``Object`` is a Kind: a struct with apiVersion, kind and metadata. Objects
can be weakly referenced, so that the client can keep, beside an object it decoded, the bytes it came from,
and write back what the model does not know (apimachinery.client.lossless).
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Part(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of an object. Fields are snake case, their JSON keys camel case; what is unset is not written."""


class Object(Part, kw_only=True, weakref=True):
    """A Kind. Generated subclasses set both class variables, which say what it is without an instance."""

    API_VERSION: ClassVar[str]
    KIND: ClassVar[str]
