"""What the built-in kinds want of their stored objects: what is read as a struct has the types of its fields.

Rules and loops read fields of built-in kinds without asking what they are, since no request stores anything else.
Storage may hold what no request stored.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.storage.interface import Record
from apimachinery.storage.judging import record_fault
from apimachinery.wire.json import decode, encode


class StoredForms:
    """Judges records of built-in kinds; what it needs for that is made when the first one comes."""

    def __init__(self, options: ApiOptions) -> None:
        self._options = options

    @cached_property
    def _served(self) -> dict[str, dict[str, Served]]:
        options, found = self._options, defaultdict[str, dict[str, Served]](dict)
        catalog = Catalog(options.emulated_version)
        for name in options.packages:
            add_package(catalog, ServedPackage(name, options.emulated_version), options)
        for served in catalog:
            if served.prefix:
                found[served.prefix][served.api_version] = served
        return found

    def fault(self, record: Record) -> str:
        """Why a record is no object of its key and kind; empty of a good one. An object of a built-in kind is brought
        into form."""
        if reason := record_fault(record):
            return reason
        versions = self._served.get(record.key[: record.key.index("/", record.key.index("/", 1) + 1) + 1])
        if versions is None:
            return ""
        obj = decode(record.value)
        served = versions.get(obj["apiVersion"])
        if served is None or served.kind != obj["kind"]:
            return f"it is a {obj['kind']} of {obj['apiVersion']}, which is not kept here"
        if fault := served.compiled.schema.decode_fault(obj):
            return fault
        if served.compiled.to_form is not None:
            formed: dict[str, Any] = decode(record.value)
            served.compiled.to_form(formed)
            if formed != obj:
                # As Go reads it: fields that a struct always has are there, and nulls are not.
                record.value = encode(served.family.in_order(formed))
        return ""
