"""Versions whose annotations hold fields of another one (``Hooks.annotated``): autoscaling/v1 keeps those of v2 so.

kube-apiserver has one form of a kind inside, so it reads such annotations whenever an object comes: what they cannot
mean is gone before anybody looks at the object, and what they do mean is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.kinds.hooks import Json
from apimachinery.meta.field_errors import FieldError
from apimachinery.wire.json import decode, encode

Validator = Callable[[Json, "Json | None"], list[FieldError]]


@dataclass(frozen=True, slots=True)
class Annotated:
    """What is done to objects with annotations that begin with ``prefix``; ``to_hub`` and ``to_spoke`` convert them to
    the version with the fields, and back."""

    prefix: str
    to_hub: Callable[[Json], Json]
    to_spoke: Callable[[Json], Json]

    def _has_fields(self, obj: Json) -> bool:
        metadata = obj.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        return isinstance(annotations, dict) and any(name.startswith(self.prefix) for name in annotations)

    def _at_hub(self, obj: Json) -> Json:
        copied: Json = decode(encode(obj))
        return self.to_hub(copied)

    def defaulter(self, declared: Callable[[Json], None] | None) -> Callable[[Json], None]:
        """Leaves in the annotations what can be read of them, and then fills in defaults."""

        def fill_in(obj: Json) -> None:
            if self._has_fields(obj):
                read = self.to_spoke(self._at_hub(obj))
                obj.clear()
                obj.update(read)
            if declared is not None:
                declared(obj)

        return fill_in

    def defaulter_of_hub(self, declared: Callable[[Json], None] | None) -> Callable[[Json], None]:
        """Drops the annotations, which mean nothing at the version that has the fields, and then fills in defaults."""

        def fill_in(obj: Json) -> None:
            if self._has_fields(obj):
                metadata = obj["metadata"]
                kept = {k: v for k, v in metadata["annotations"].items() if not k.startswith(self.prefix)}
                obj["metadata"] = {**metadata, "annotations": kept}
                if not kept:
                    del obj["metadata"]["annotations"]
            if declared is not None:
                declared(obj)

        return fill_in

    def validator(self, own: Validator | None, of_hub: Validator | None) -> Validator | None:
        """Judges objects with such annotations as the other version does."""
        if own is None or of_hub is None:
            return own

        def validate(obj: Json, old: Json | None) -> list[FieldError]:
            if self._has_fields(obj):
                return of_hub(self._at_hub(obj), None if old is None else self._at_hub(old))
            return own(obj, old)

        return validate
