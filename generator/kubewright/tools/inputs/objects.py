"""Objects on the command line, and how they merge: read from files, looked up, written back.

The kind of an object decides: a built-in one merges as the generated package ``kubernetes_api`` says (or
another package that ``--package`` names), any other by the CRD that ``--crds`` gives.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from apimachinery.merge.compile import MergeTypes, SchemaError
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.package import package_types
from apimachinery.merge.patch_type import PatchType
from apimachinery.merge.typed import MergeType
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.wire import yaml
from kubewright.diagnostics import Diagnostics, escaped
from kubewright.source.text import STDIN, parse_documents, read_single
from kubewright.tools.inputs import crds

OK, REFUSED, MISUSED = 0, 1, 2


class InputFault(Exception):
    """The command cannot go on with what it was given; the text says what and what to do."""


@dataclass(frozen=True, slots=True)
class ObjectTypes:
    """How one kind merges, at all its versions; a converter for ``FieldOwnership`` that changes nothing but
    the apiVersion. ``patch`` is None where the kind knows no strategic merge patch (custom resources)."""

    kind: str
    types: Mapping[str, MergeType]
    patch: PatchType | None
    definition: str = ""

    def type_of(self, api_version: str) -> MergeType:
        """The merge type at a version. Raises ``UnknownVersion``."""
        if api_version not in self.types:
            raise UnknownVersion(api_version)
        return self.types[api_version]

    def convert(self, value: dict[str, Any], api_version: str) -> dict[str, Any]:
        """The same object under another apiVersion. Raises ``UnknownVersion``."""
        self.type_of(api_version)
        return {**value, "apiVersion": api_version}


def read_object(path: Path, diagnostics: Diagnostics, *, what: str) -> Any:
    """The one document of a file. Raises ``InputFault`` where it holds none that can be read, after a
    diagnostic."""
    document = read_single(path, diagnostics)
    if document is None:
        raise InputFault(f"{what} {path} cannot be used")
    return document.value


def read_patch(given: str, diagnostics: Diagnostics) -> Any:
    """A patch, as a file, ``-``, or the text itself, as kubectl's ``-p`` takes it. Raises ``InputFault``."""
    if given != STDIN and not Path(given).exists() and given.lstrip()[:1] in ("{", "["):
        documents = parse_documents(given.encode("utf-8", "surrogateescape"), "-p", diagnostics)
        if len(documents) != 1:
            raise InputFault("the patch given by -p cannot be used")
        return documents[0].value
    return read_object(Path(given), diagnostics, what="patch")


def require_object(value: Any, path: Path, what: str) -> dict[str, Any]:
    """``value`` as a Kubernetes object. Raises ``InputFault`` where it is none."""
    if not isinstance(value, dict):
        raise InputFault(f"{what} {path}: an object is wanted, with apiVersion and kind")
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise InputFault(f"{what} {path}: .{name} is missing")
    if not isinstance(value.get("metadata", {}), dict):
        raise InputFault(f"{what} {path}: .metadata must be an object")
    return value


def find_types(obj: Mapping[str, Any], options: argparse.Namespace, diagnostics: Diagnostics) -> ObjectTypes:
    """How objects of the kind of ``obj`` merge. Raises ``InputFault`` for a kind nobody describes."""
    if options.crds:
        custom = _custom_types(obj, options.crds, diagnostics)
        if custom is not None:
            return custom
    try:
        types = package_types(options.package)
        kinds = _kinds(options.package)
    except ModuleNotFoundError as missing:
        raise InputFault(
            f"the package {options.package!r} of built-in kinds is not importable ({missing}); put the folder that "
            "`kubewright generate` writes on PYTHONPATH, or give the kind's CRD by --crds"
        ) from None
    return _builtin_types(obj, types, kinds)


def _kinds(package: str) -> dict[tuple[str, str], str]:
    """(apiVersion, kind) → definition."""
    out: dict[tuple[str, str], str] = {}
    for api_version, module in import_module(f"{package}.registry").GROUP_VERSIONS.items():
        try:
            resources = import_module(f"{package}.{module}.resources").RESOURCES
        except ModuleNotFoundError:
            continue
        for resource in resources:
            out[api_version, resource.kind] = resource.definition
    return out


def _builtin_types(
    obj: Mapping[str, Any], types: MergeTypes, kinds: Mapping[tuple[str, str], str]
) -> ObjectTypes:
    kind, group = obj["kind"], obj["apiVersion"].rpartition("/")[0]
    definition = kinds.get((obj["apiVersion"], kind))
    if definition is None:
        versions = sorted(version for version, name in kinds if name == kind)
        hint = (
            f"it is served as {', '.join(versions)}"
            if versions
            else "give the CRD of a custom resource by --crds"
        )
        raise InputFault(f"no kind {kind} in {obj['apiVersion']}: {hint}")
    same = {v: d for (v, name), d in kinds.items() if name == kind and v.rpartition("/")[0] == group}
    return ObjectTypes(
        kind,
        {version: types.named(name) for version, name in same.items()},
        types.patch_type(definition),
        definition,
    )


def _custom_types(
    obj: Mapping[str, Any], paths: Sequence[Path], diagnostics: Diagnostics
) -> ObjectTypes | None:
    """How a kind merges that one of the CRDs defines; ``None`` where none of them does."""
    for crd in crds.read_crds(paths, diagnostics):
        spec = crd.value["spec"]
        names, versions = spec.get("names"), spec.get("versions")
        if not isinstance(names, dict) or names.get("kind") != obj["kind"] or not isinstance(versions, list):
            continue
        types = {
            f"{spec.get('group')}/{version.get('name')}": _custom_type(version, spec, crd.file)
            for version in versions
            if isinstance(version, dict)
        }
        if obj["apiVersion"] not in types:
            raise InputFault(f"the CRD has no version {obj['apiVersion']}, only {', '.join(sorted(types))}")
        return ObjectTypes(obj["kind"], types, None)
    if diagnostics.has_errors:
        raise InputFault("the CRDs cannot be used")
    return None


def _custom_type(version: dict[str, Any], spec: dict[str, Any], file: str) -> MergeType:
    schema = version.get("schema")
    declared = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
    try:
        return custom_resource(
            declared if isinstance(declared, dict) else None,
            preserve_unknown=spec.get("preserveUnknownFields") is True,
        )
    except SchemaError as error:
        raise InputFault(
            f"{file}: the schema of version {version.get('name')} cannot be used: {error}"
        ) from None


def empty_object(package: str, definition: str) -> dict[str, Any]:
    """What an object of a built-in kind holds that nobody set anything in (``spec: {}``)."""
    try:
        zero_values = import_module(f"{package}.zero_values").ZERO_VALUES
    except ModuleNotFoundError:
        return {}
    folder = Path(str(import_module(package).__file__)).parent
    definitions = json.loads((folder / "definitions.json").read_text(encoding="utf-8"))
    out: dict[str, Any] = {}
    compile_typed_form(definition, definitions, zero_values)(out)
    return out


def write(value: Any, form: str) -> None:
    """Writes an answer to standard output."""
    as_json = form == "json"
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n" if as_json else yaml.encode(value).decode()
    sys.stdout.write(text)


def complain(command: str, text: str, diagnostics: Diagnostics) -> None:
    """Says on standard error why there is no answer: the faults of files by their place, then ``text``."""
    for item in diagnostics:
        print(item, file=sys.stderr)
    print(f"kubewright {command}: {escaped(text)}", file=sys.stderr)
