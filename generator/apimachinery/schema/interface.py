"""What an OpenAPI schema means for an object: its defaults, its unknown fields, its faults.

Theory. A schema (a plain dict, as a CRD or a definition states it) is compiled once into functions over
plain JSON values; requests then only call them. They make up the write path of an object, in this order:

1. ``decode_fault``: can the body be read as this kind at all (400);
2. ``prune`` drops what the schema does not know and says what it dropped (the text of Warn and Strict);
3. ``default`` fills in what is missing;
4. ``validate`` says what is wrong, after admission had its turn (422).

Each has a fast pass for the usual object (nothing unknown, nothing missing, nothing wrong) and a slow one
that explains. ``prune`` and ``default`` change the object in place; the others never do.

Built-in kinds are decoded into typed structs by kube-apiserver, so for them a value of a wrong type is no
fault of a field but a failed decode, worded as Go's JSON decoder does, and unknown fields come in the order
of the document.
"""

from __future__ import annotations

from typing import Any, Protocol

from apimachinery.meta.field_errors import FieldError


class CompiledSchema(Protocol):
    """The behaviour of one schema: immutable, safe to share between threads."""

    def default(self, value: Any) -> None:
        """Fill in the schema's defaults, in place. Doing it twice changes nothing more.

        As CRD defaulting: below an object that is missing nothing is defaulted, unless a default puts the
        object there; a null for a field that is not nullable and has a default is dropped before; items of
        lists and values of maps count.
        """
        ...

    def prune(self, value: Any) -> list[str]:
        """Drop the fields that the schema does not have, in place; the paths dropped, as warnings name them.

        A path reads ``spec.l[0].m.key.x``. For a resource, ``metadata`` is pruned to what object metadata
        has.
        """
        ...

    def repair(self, value: Any) -> None:
        """Drop what ``prune`` cannot read, in place: of stored objects that were accepted by another schema."""
        ...

    def binary_fields(self) -> tuple[tuple[str, ...], ...]:
        """The paths of fields that hold bytes (base64 in JSON); ``*`` is any key of a map and any index."""
        ...

    def unknown_fields(self, value: Any) -> list[str]:
        """The paths that ``prune`` would drop; the value stays as it is."""
        ...

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Every fault in kube-apiserver's order (by field where that is random); empty for a valid value.

        With ``old`` (the stored object) values that did not change keep their old faults unreported:
        ratcheting. Faults of ``apiVersion``, ``kind`` and ``metadata`` at the root are not among them
        (``validate_object_meta`` has those), those of embedded resources are. CEL rules are not run here:
        ``apimachinery.cel.schemas.crd`` does.
        """
        ...

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        """``decode_fault`` and, where there is none, ``prune``: one pass for the usual value."""
        ...

    def restore(self, value: Any) -> None:
        """Makes of values that cannot be decoded what the converter does that reads strategic patches and applies, in
        place."""
        ...

    def restore_fault(self, value: Any) -> str | None:
        """``decode_fault`` in the words that strategic patches fail with."""
        ...

    def decode_fault(self, value: Any) -> str | None:
        """Why the value cannot be decoded, or None.

        What follows ``cannot be handled as a KIND: `` in the 400.

        For a built-in the first value of a wrong type (``json: cannot unmarshal string into Go struct field
        DeploymentSpec.spec.replicas of type int32``); for a custom resource malformed object metadata.
        """
        ...
