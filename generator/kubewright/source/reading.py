"""Which source reads what: from paths to fragments.

A path is a file or a folder. In a folder every ``*.yaml``, ``*.yml`` and ``*.json`` is read, below it too; a folder
with a ``kustomization.yaml`` names its own files under ``resources`` (and ``crds``), which may be folders again; where
these have no description, all files of the folder are read. What a document is, its first keys say: ``swagger``,
``openapi``, ``kind: CustomResourceDefinition``, ``kind: List``. Manifests of other kinds are passed over in folders and
next to descriptions, and refused in a file that the user named and that has nothing else. What tools leave among CRDs
in a folder (patches, definitions without a group) is passed over with a note. ``module:Class`` is a class of Python,
whose manifest is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.ir.packages import APIMACHINERY
from kubewright.ir.types import Json
from kubewright.location import Document, Location, escape_pointer
from kubewright.source import crd, kubernetes_validate, text
from kubewright.source.bundle import bundle, has_other_files
from kubewright.source.catalog import read_catalog
from kubewright.source.openapi_v2 import OpenApiV2
from kubewright.source.openapi_v3 import OpenApiV3
from kubewright.source.python_classes import TARGET, read_classes
from kubewright.source.rules import read_rules

_DEFINITION = re.compile(r"#/(?:definitions|components/schemas)/([^/]+)")
_NAMES = re.compile(rb"CustomResourceDefinition|openapi|swagger")


@dataclass(slots=True)
class Input:
    """The documents of some paths, by what they are. ``others`` are manifests of no interest here."""

    openapi: list[Document] = field(default_factory=list)
    crds: list[Document] = field(default_factory=list)
    others: int = 0

    @property
    def count(self) -> int:
        """How many descriptions there are."""
        return len(self.openapi) + len(self.crds)


def load_kubernetes(release: str, diagnostics: Diagnostics, *, prose: bool = False) -> Document | None:
    """The definitions of a release as they come, with descriptions where ``prose`` is wanted and installed; ``None``
    after a diagnostic."""
    return kubernetes_validate.load(release, diagnostics, with_prose=prose)


def read_kubernetes(
    document: Document, catalog: Path, release: str, diagnostics: Diagnostics, served_since: str = ""
) -> Fragment:
    """The definitions of a release with the resources of ``catalog``, also those of ``past_kinds``."""
    fragment = kubernetes_validate.KubernetesValidate().read(document, diagnostics)
    kinds = {kind: d.name for d in fragment.definitions if len(d.kinds) == 1 for kind in d.kinds}
    served = read_catalog(catalog, release, kinds, diagnostics, served_since)
    return replace(fragment, resources=served.resources, groups=served.groups)


def read_library(diagnostics: Diagnostics, *, prose: bool = False) -> Fragment | None:
    """What sources may refer to without bringing it: apimachinery's types of the newest release."""
    fragment, found = _library(prose)
    for item in found:
        diagnostics.add(item)
    return fragment


@cache
def _library(prose: bool) -> tuple[Fragment | None, Diagnostics]:
    diagnostics = Diagnostics()
    document = load_kubernetes(kubernetes_validate.NEWEST, diagnostics, prose=prose)
    if document is None:
        return None, diagnostics
    members = {
        name: schema for name, schema in document.value["$defs"].items() if name.startswith(APIMACHINERY)
    }
    document = replace(document, value={"$defs": members})
    fragment = kubernetes_validate.KubernetesValidate().read(document, diagnostics)
    definitions = tuple(replace(d, kinds=()) if len(d.kinds) > 1 else d for d in fragment.definitions)
    return Fragment(origin=fragment.origin, definitions=definitions), diagnostics


def read_facts(
    folder: Path | None, diagnostics: Diagnostics, only: tuple[str, ...] = ()
) -> tuple[tuple[str, Json], ...]:
    """The declared rules below ``folder``, by the name of their folder (``defaults``, ``conversions``, …) or file;
    ``only`` limits them to some names."""
    if folder is None:
        return ()
    if not folder.is_dir():
        diagnostics.error("K001", "cannot read: no such folder", Location(str(folder)))
        return ()
    return read_rules(folder, diagnostics, only)


def read_input(paths: Iterable[Path], diagnostics: Diagnostics) -> Input:
    """The documents of ``paths``, sorted out by kind. A path without any is an error."""
    found = Input()
    for path in paths:
        before = found.count
        files = _read_path(path, found, diagnostics)
        if found.count == before and not diagnostics.has_errors:
            diagnostics.error(
                "K003",
                "no OpenAPI document or CustomResourceDefinition here"
                if files
                else "the folder has no YAML or JSON files",
                Location(str(path)),
                "pass the file or folder that has them; `kubewright validate` checks other manifests",
            )
    return found


def read_crds(paths: Iterable[Path], diagnostics: Diagnostics) -> list[Document]:
    """The CustomResourceDefinitions of ``paths``, as ``read_input`` finds them. A path without any is an error."""
    found = Input()
    for path in paths:
        before, faults = len(found.crds), Diagnostics()
        _read_path(path, found, faults, among_others=True)
        for fault in faults:
            diagnostics.add(fault)
        if len(found.crds) == before and not faults.has_errors:
            diagnostics.error("K003", "holds no CustomResourceDefinition", Location(str(path)))
    return found.crds


def pass_over_built_in(found: Input, built_in: Iterable[Fragment], diagnostics: Diagnostics) -> None:
    """Takes out the definitions of kinds that are built in: a server that has both serves its own."""
    kinds = {kind for each in built_in for definition in each.definitions for kind in definition.kinds}
    kept = []
    for document in found.crds:
        names = crd.kinds_of(document.value)
        if names & kinds:
            said = "passed over: the kind is built in, and a server serves its own"
            diagnostics.note("K015", said, document.at("/spec"))
        else:
            kept.append(document)
    found.crds = kept


def _read_path(
    path: Path, found: Input, diagnostics: Diagnostics, *, among_others: bool = False
) -> list[Path]:
    """Sorts in what is at ``path`` and returns the files read. ``among_others``: a file without descriptions is no
    error."""
    before, first, first_openapi = found.count, len(found.crds), len(found.openapi)
    if is_python(path):
        found.crds += read_classes(str(path), diagnostics)
        return []
    files = list(_files(path, diagnostics))
    _read_files(files, found, diagnostics, named=not path.is_dir(), among_others=among_others)
    kustomization = _kustomization(path)
    if found.count == before and kustomization is not None and not diagnostics.has_errors:
        files = text.files_in(path, diagnostics)
        _read_files(files, found, diagnostics, named=False, among_others=True)
        if found.count > before:
            said = "names no description; all files of the folder are read"
            diagnostics.note("K015", said, Location(str(kustomization)))
    if path.is_dir() and not among_others:
        found.crds[first:] = _without_variants(found.crds[first:], diagnostics)
        described = bool(found.crds[first:])
        found.openapi[first_openapi:] = _without_parts(found.openapi[first_openapi:], described, diagnostics)
    return files


def _without_parts(documents: list[Document], described: bool, diagnostics: Diagnostics) -> list[Document]:
    """Takes out OpenAPI documents that refer to types which no document of the folder has: code generators keep parts
    of descriptions next to code. They stay where the folder describes nothing else, and are errors then."""
    names = {name for document in documents for name in _definitions(document.value)}
    missing = {id(document): _undefined(document.value, names) for document in documents}
    if not described and all(missing.values()):
        return documents
    for document in documents:
        if found := missing[id(document)]:
            place, name = min((document.at(pointer), name) for pointer, name in found)
            number = len({name for _, name in found})
            said = (
                f"passed over: {number} types are missing, such as" if number > 1 else "passed over: no type"
            )
            diagnostics.note("K015", f"{said} {name!r}", place)
    return [document for document in documents if not missing[id(document)]]


def _definitions(value: Json) -> Iterator[str]:
    components = value.get("components")
    for each in (
        value.get("definitions"),
        components.get("schemas") if isinstance(components, dict) else None,
    ):
        if isinstance(each, dict):
            yield from each


def _undefined(value: Json, names: set[str]) -> list[tuple[str, str]]:
    """Where a document refers to definitions that are neither among ``names`` nor apimachinery's, and to which."""
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        pointer, each = waiting.pop()
        if isinstance(each, list):
            waiting += ((f"{pointer}/{index}", item) for index, item in enumerate(each))
        elif isinstance(each, dict):
            target = _DEFINITION.fullmatch(ref) if isinstance(ref := each.get("$ref"), str) else None
            if target and target[1] not in names and not target[1].startswith(APIMACHINERY):
                found.append((pointer, target[1]))
            waiting += ((f"{pointer}/{escape_pointer(key)}", item) for key, item in each.items())
    return found


def _without_variants(documents: list[Document], diagnostics: Diagnostics) -> list[Document]:
    """Takes out all but one of the definitions that have one name and different schemas for one version: a folder for
    several kinds of clusters has them, and a cluster has one. The fullest reads the objects of most of the others."""
    variants: dict[str, list[Document]] = {}
    for document in documents:
        variants.setdefault(crd.name_of(document.value), []).append(document)
    dropped = set[int]()
    for name, several in variants.items():
        if not crd.are_variants([document.value for document in several]):
            continue
        taken = max(several, key=lambda document: crd.count_fields(document.value))
        dropped |= {id(document) for document in several if document is not taken}
        diagnostics.warning(
            "K209",
            f"{len(several)} different definitions of {name}, of which a cluster has one",
            taken.at("/metadata/name"),
            "this one has the most fields and is taken; name a file to take another",
        )
    return [document for document in documents if id(document) not in dropped]


def is_python(path: Path) -> bool:
    """Whether a path names classes of Python: ``module:Class``."""
    return not path.exists() and TARGET.match(str(path)) is not None


def _read_files(
    files: Iterable[Path], found: Input, diagnostics: Diagnostics, *, named: bool, among_others: bool
) -> None:
    for file in files:
        if not named and not _may_describe(file):
            found.others += 1
            continue
        documents = _read_documents(file, diagnostics, named=named)
        alone = named and not among_others and not any(map(_is_description, documents))
        for document in documents:
            _sort_in(document, found, diagnostics, named=named, alone=alone)


def _may_describe(file: Path) -> bool:
    """Whether a file of a folder names what a description is; the others of a repository need not even be YAML."""
    try:
        return _NAMES.search(text.read_bytes(file)) is not None
    except OSError:
        return True  # reading it says what is wrong with it


def _read_documents(file: Path, diagnostics: Diagnostics, *, named: bool) -> list[Document]:
    """The documents of a file. A template in a folder, such as a chart has, is passed over with a note."""
    faults = Diagnostics()
    documents = text.read_documents(file, faults)
    if faults.has_errors and not named and b"{{" in text.read_bytes(file):
        diagnostics.note("K015", "passed over: a template; render it first", Location(str(file)))
        return []
    for fault in faults:
        diagnostics.add(fault)
    return documents


def _is_description(document: Document) -> bool:
    value = document.value
    return isinstance(value, dict) and ("swagger" in value or "openapi" in value or crd.is_crd(value))


def read_fragments(found: Input, diagnostics: Diagnostics, *, operations: bool = False) -> Iterator[Fragment]:
    """The fragment of each document, with the operations of ordinary ones where they are asked for."""
    for document in found.openapi:
        source = OpenApiV2() if "swagger" in document.value else OpenApiV3()
        yield source.read(document, diagnostics, operations=operations)
    for document in found.crds:
        yield crd.Crd().read(document, diagnostics)


def _files(path: Path, diagnostics: Diagnostics, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    if not path.is_dir():
        yield from text.paths_below(path, diagnostics)
        return
    kustomization = _kustomization(path)
    if kustomization is not None:
        yield from _kustomized(kustomization, diagnostics, (*above, path.resolve()))
        return
    yield from text.files_in(path, diagnostics)


def _kustomization(folder: Path) -> Path | None:
    return next((folder / name for name in text.KUSTOMIZATIONS if (folder / name).is_file()), None)


def _kustomized(file: Path, diagnostics: Diagnostics, above: tuple[Path, ...]) -> Iterator[Path]:
    document = text.read_single(file, diagnostics)
    if document is None:
        return
    value = document.value if isinstance(document.value, dict) else {}
    for key in ("resources", "crds", "bases"):
        entries = value.get(key, [])
        if not isinstance(entries, list):
            diagnostics.error("K013", f"`{key}` must be a list of paths", document.at(f"/{key}"))
            continue
        for index, entry in enumerate(entries):
            place = document.at(f"/{key}/{index}")
            if not isinstance(entry, str) or "://" in entry or entry.startswith("github.com/"):
                diagnostics.error(
                    "K013",
                    f"cannot read the kustomize resource {entry!r}",
                    place,
                    "only local paths are read",
                )
                continue
            target = file.parent / entry
            if target.resolve() in above:
                diagnostics.error("K013", f"kustomization {entry!r} includes itself", place)
            elif not target.exists():
                diagnostics.error("K001", f"cannot read: no such file or folder: {entry}", place)
            else:
                yield from _files(target, diagnostics, above)


def _sort_in(
    document: Document, found: Input, diagnostics: Diagnostics, *, named: bool, alone: bool = False
) -> None:
    """Adds a document to the inputs of its kind, or reports why it is none. ``named``: the user named the file, not a
    folder around it; ``alone``: and no document of it is a description."""
    value = document.value
    if not isinstance(value, dict):
        if named:
            diagnostics.error("K004", "a document must be an object", document.at(""))
        else:
            diagnostics.note("K015", "passed over: a document must be an object", document.at(""))
    elif "swagger" in value or "openapi" in value:
        _sort_in_openapi(document, found, diagnostics)
    elif crd.is_crd(value):
        _sort_in_crd(document, found, diagnostics, named=named)
    elif value.get("kind") == "List" and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            _sort_in(_inner(document, item, f"/items/{index}"), found, diagnostics, named=False)
    elif isinstance(value.get("$defs"), dict) or isinstance(value.get("definitions"), dict):
        diagnostics.error(
            "K004",
            "definitions without `swagger` or `openapi`",
            document.at(""),
            'an OpenAPI v2 document begins with `swagger: "2.0"`',
        )
    elif alone:
        what = (
            f"kind {value['kind']}: `kubewright validate` checks manifests"
            if isinstance(value.get("kind"), str)
            else "none of these"
        )
        diagnostics.error(
            "K004",
            "wanted an OpenAPI document or a CustomResourceDefinition",
            document.at("/kind"),
            f"this is {what}",
        )
    else:
        found.others += 1


def _sort_in_crd(document: Document, found: Input, diagnostics: Diagnostics, *, named: bool) -> None:
    incomplete = "" if named else crd.why_incomplete(document.value)
    if incomplete:
        diagnostics.note("K015", f"passed over: {incomplete}", document.at(""))
    elif document.value.get("apiVersion") == crd.API_VERSION:
        found.crds.append(document)
    else:
        problem = diagnostics.error if named else diagnostics.warning
        problem(
            "K004",
            f"CustomResourceDefinition of {document.value.get('apiVersion')!r}",
            document.at("/apiVersion"),
            f"only {crd.API_VERSION} is read; v1beta1 went with Kubernetes 1.22",
        )


def _sort_in_openapi(document: Document, found: Input, diagnostics: Diagnostics) -> None:
    value = document.value
    version = str(value.get("swagger") or value.get("openapi"))
    if ("swagger" in value and version == "2.0") or ("openapi" in value and version.startswith("3.")):
        several = str(document.file) != "<stdin>" and has_other_files(value)
        found.openapi.append(bundle(document, diagnostics) if several else document)
    else:
        key = "swagger" if "swagger" in value else "openapi"
        diagnostics.error(
            "K004", f"OpenAPI version {version!r}", document.at(f"/{key}"), "versions 2.0 and 3.x are read"
        )


def _inner(document: Document, value: Json, prefix: str) -> Document:
    """A document inside another, whose positions are those of the outer one."""

    def positions() -> dict[str, tuple[int, int]]:
        outer = document.find_positions() if document.find_positions else {}
        return {key[len(prefix) :]: spot for key, spot in outer.items() if key.startswith(prefix)}

    return Document(document.file, value, positions)
