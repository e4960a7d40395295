"""What a generated package knows of its kinds, as answers to reviews: conversion, defaulting, validation.

So the rules that were declared once for a group also hold on somebody else's kube-apiserver, where CRDs store it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import invalid
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.write.rules import check_object
from apimachinery.webhook.reviews import difference
from apimachinery.wire.json import decode, encode

Json = dict[str, Any]


class PackageReviews:
    """The answers of some packages. Raises OptionError for one that cannot be used."""

    def __init__(self, names: list[str]) -> None:
        options = ApiOptions(packages=tuple(names))
        self.catalog = Catalog(options.emulated_version)
        for name in names:
            add_package(self.catalog, ServedPackage(name), options)
        self._kinds = {(served.api_version, served.kind): served for served in self.catalog}

    def resources(self) -> Iterator[Served]:
        """All resources that the packages have rules for: those that are stored."""
        return (served for served in self.catalog if served.prefix)

    def convert(self, request: Json) -> Json:
        """The response to a ConversionReview: all objects, or why one cannot be converted."""
        wanted = str(request.get("desiredAPIVersion") or "")
        converted = []
        for number, obj in enumerate(request.get("objects") or ()):
            try:
                converted.append(self._at(obj, wanted))
            except _Unknown as fault:
                status = {"status": "Failure", "message": f"object {number}: {fault}", "reason": "Invalid"}
                return {"result": status}
        return {"convertedObjects": converted, "result": {"status": "Success"}}

    def _at(self, obj: Any, wanted: str) -> Json:
        if not isinstance(obj, dict):
            raise _Unknown("is no object")
        given, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        source, target = self._kinds.get((given, kind)), self._kinds.get((wanted, kind))
        if source is None or target is None or source.prefix != target.prefix:
            raise _Unknown(f"{kind or 'it'} cannot be converted from {given or 'no version'} to {wanted}")
        new: Json = decode(encode(obj))
        if given == wanted:
            return new
        if source.to_storage is not None:
            new = source.to_storage(new)
        if target.from_storage is not None:
            new = target.from_storage(new)
        return new

    def default(self, request: Json) -> Json:
        """The response to an AdmissionReview that may change the object: a patch with its defaults."""
        obj, served = request.get("object"), self._about(request)
        if served is None or not isinstance(obj, dict) or request.get("subResource"):
            return {"allowed": True}
        new: Json = decode(encode(obj))
        compiled = served.compiled
        if fault := compiled.schema.decode_fault(new):
            # Nothing can be filled in; the schema of the CRD says what is wrong.
            return {"allowed": True, "warnings": [fault[:250]]}
        if compiled.defaulter is not None:
            compiled.defaulter(new)
        else:
            compiled.schema.default(new)
        operations = list(difference(obj, new, ""))
        if not operations:
            return {"allowed": True}
        patch = base64.b64encode(encode(operations)).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": patch}

    def validate(self, request: Json) -> Json:
        """The response to an AdmissionReview that only looks: every fault of the object, as a Status."""
        obj, served = request.get("object"), self._about(request)
        if served is None or not isinstance(obj, dict):
            return {"allowed": True}
        subresource = str(request.get("subResource") or "")
        if subresource not in ("", "status"):
            return {"allowed": True}
        old = request.get("oldObject")
        warnings: list[str] = []
        new: Json = decode(encode(obj))
        if fault := served.compiled.schema.decode_fault(new):
            return {"allowed": False, "status": {"code": 400, "reason": "BadRequest", "message": fault}}
        before: Json | None = decode(encode(old)) if isinstance(old, dict) else None
        faults = check_object(served, new, before, [], warnings, subresource=subresource)
        response: Json = {"allowed": not faults}
        if warnings:
            response["warnings"] = warnings
        if faults:
            name = str((obj.get("metadata") or {}).get("name") or request.get("name") or "")
            status = invalid(served.kind, served.said_group, name, faults).status()
            response["status"] = {key: status[key] for key in ("message", "reason", "details", "code")}
        return response

    def _about(self, request: Json) -> Served | None:
        kind = request.get("kind") or {}
        group, version = kind.get("group") or "", kind.get("version") or ""
        return self._kinds.get((f"{group}/{version}" if group else version, kind.get("kind") or ""))


class _Unknown(Exception):
    """An object that cannot be converted; the text says why."""
