"""A folder as people keep it: manifests next to charts, kustomizations, patches and files that are no manifests.

``read_project`` gives the documents that are objects, and one note for each thing that is left out. A file that is
named by itself is always read as a manifest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubewright.diagnostics import Diagnostic, Diagnostics, Severity
from kubewright.location import Location
from kubewright.source.text import KUSTOMIZATIONS, files_in, read_bytes
from kubewright.tools.inputs.kustomize import Kustomization, Roles, is_kustomization, roles
from kubewright.tools.validate.inputs import Chunk, decoded, excluded, read_chunks, split

LEFT_OUT = "V040"
_KEY = re.compile(rb"""^[ ]?["']?(apiVersion|kind|metadata)["']?[ \t]*:""", re.MULTILINE | re.IGNORECASE)
_JSON_KEY = re.compile(rb'"(apiVersion|kind)"\s*:')
_MARKUP = re.compile(rb"\{\{|\{%|\$\{|\(\(|<[A-Za-z%]|\[\[- |@[A-Z_]+@|\$[A-Z_]{3}|\$\$\w|\{[A-Z_]{3,}\}")
_PLACEHOLDER = re.compile(r"\{\{|\$\{|\(\(|<[A-Za-z]|@[A-Z_]+@|\$[A-Z_]{3}|\$\$\w")
_PATCH = re.compile(r"^patch[-_.]|[-_.]patch$")
_ASSERTION = re.compile(r"\d+-(assert|errors?)\b.*\.ya?ml$")
"""Files of kuttl: parts of objects that a test waits for."""
_SOPS = re.compile(rb'^["\']?sops["\']?\s*:', re.MULTILINE)
_ANGLES = re.compile(rb"""<[\w -]+>["']?\s*$""", re.MULTILINE)
_TO_FILL_IN = re.compile(rb"""^[ -]*[\w.-]+\s*:\s*["']?<[\w -]+>["']?\s*$""", re.MULTILINE)
"""A value that is nothing but ``<what to put here>``."""
HELM_SECONDS = 60


@dataclass(slots=True)
class Project:
    """``chunks`` are the objects; ``notes`` say what was left out; ``others`` counts files that are no manifests."""

    chunks: list[Chunk] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    others: int = 0
    named: set[str] = field(default_factory=set)
    """Files that were named one by one."""
    kustomizations: dict[str, Kustomization] = field(default_factory=dict)

    def note(self, file: str, message: str, hint: str = "", line: int = 0) -> None:
        """Says that something was left out."""
        self.notes.append(Diagnostic(LEFT_OUT, Severity.NOTE, message, Location(file, "", line), hint))


def read_project(
    paths: Sequence[str], diagnostics: Diagnostics, exclude: Sequence[str] = (), *, helm: bool = False
) -> Project:
    """The objects of files, of folders and of ``-``, in that order. ``helm`` renders charts."""
    found = Project()
    for name in paths:
        folder = Path(name)
        if name == "-" or not folder.is_dir():
            given = read_chunks([name], diagnostics, exclude)
            found.chunks += given
            found.named |= {chunk.file for chunk in given}
        else:
            _read_folder(folder, found, diagnostics, exclude, helm=helm)
    return found


def _read_folder(
    folder: Path, found: Project, diagnostics: Diagnostics, exclude: Sequence[str], *, helm: bool
) -> None:
    files = [file for file in files_in(folder, diagnostics) if not (exclude and excluded(file, exclude))]
    charts = _charts(folder, files)
    contents: dict[Path, list[Chunk]] = {}
    for file in files:
        if _of_chart(file, charts) is None:
            contents[file] = _read(file, diagnostics)
    _read_kustomizations(folder, files, contents, found, diagnostics, exclude)
    used = roles(list(found.kustomizations.values()))
    aside = _Aside()
    before = len(found.chunks)
    known = _identities(contents, used)
    tested = _tested(contents)
    for file, chunks in contents.items():
        _sort(file, chunks, used, known, found, aside, tested)
    if len(found.chunks) == before and not charts:
        # With nothing else to say of a folder, what cannot be read in it is worth saying.
        broken = [each for chunks in contents.values() for each in chunks if decoded(each) is None]
        found.chunks += [each for each in broken if not is_template(each)]
    aside.note(found)
    for chart, number in charts.items():
        _read_chart(chart, number, found, diagnostics, helm=helm)


_ASIDE: Final = {
    "template": ("a template", "templates", "render them first, and pipe the result"),
    "assertion": ("assertions of a test", "files of assertions of tests", ""),
    "secret": ("encrypted by SOPS", "files encrypted by SOPS", "decrypt them first, and pipe the result"),
    "patch": ("a patch that no kustomization names", "patches that no kustomization names", ""),
    "part": ("a part of an object that a test found before", "parts of objects that a test found before", ""),
}
"""Why a file is put aside → in words for one, for several, and what to do."""


@dataclass(slots=True)
class _Aside:
    """Files that are not judged, by the reason and their folder."""

    files: dict[tuple[str, Path], list[Path]] = field(default_factory=dict)

    def put(self, reason: str, file: Path) -> None:
        """Puts a file aside."""
        files = self.files.setdefault((reason, file.parent), [])
        if file not in files:
            files.append(file)

    def note(self, found: Project) -> None:
        """Writes one note for each folder."""
        for (reason, folder), files in self.files.items():
            one, several, hint = _ASIDE[reason]
            said = f"{len(files)} {several}" if len(files) > 1 else one
            found.note(str(folder if len(files) > 1 else files[0]), f"{said}: not judged", hint)


Identity = tuple[str, str, str]
"""Group, kind and name of an object."""


def _identity(value: Any, unnamed: str | None = None) -> Identity | None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name", unnamed) if isinstance(metadata, dict) else None
    kind, api_version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else ("", "")
    if not (isinstance(name, str) and isinstance(kind, str) and isinstance(api_version, str)):
        return None
    return api_version.rpartition("/")[0], kind, name


def _identities(contents: dict[Path, list[Chunk]], used: Roles) -> set[Identity]:
    """The objects that kustomizations name as resources."""
    named = (chunk for file, chunks in contents.items() if used.is_resource(str(file)) for chunk in chunks)
    return {known for chunk in named if (known := _identity(decoded(chunk))) is not None}


@dataclass(slots=True)
class _Tested:
    """What tests of chainsaw say of files."""

    asserted: set[str] = field(default_factory=set)
    """The files that a cluster is compared with."""
    parts: set[tuple[str, Identity]] = field(default_factory=set)
    """File and object that a test applies after it found the object, which somebody else made: it may name a part of
    it, for chainsaw patches what exists."""


def _steps(value: Any) -> Iterator[tuple[str, str]]:
    """What a test does with files, in its order."""
    if isinstance(value, list):
        for item in value:
            yield from _steps(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ("apply", "assert", "create", "error", "patch") and isinstance(inner, dict):
                if isinstance(name := inner.get("file"), str):
                    yield key, name
            else:
                yield from _steps(inner)


def _tested(contents: dict[Path, list[Chunk]]) -> _Tested:
    """Reads the tests of chainsaw."""
    found = _Tested()
    for file in contents:
        if file.stem != "chainsaw-test":
            continue
        made: set[Identity] = set()
        seen: set[Identity] = set()  # a name is empty where an assertion finds its object by labels
        for verb, name in _steps([decoded(chunk) for chunk in contents[file]]):
            path = os.path.normpath(file.parent / name)
            known = (_identity(decoded(chunk), "") for chunk in contents.get(Path(path), ()))
            inside = {each for each in known if each is not None}
            if verb in ("assert", "error"):
                found.asserted.add(path)
                seen |= inside if verb == "assert" else set()
                continue
            if verb == "patch":
                found.parts |= {(path, each) for each in inside}
                continue
            before = {each for each in inside - made if each in seen or (each[0], each[1], "") in seen}
            found.parts |= {(path, each) for each in before}
            made |= inside
    return found


def _reason_aside(
    file: Path, chunk: Chunk, used: Roles, known: set[Identity], has_kustomization: bool
) -> str | None:
    """Why a document of a file is not judged, None where it is."""
    if _ASSERTION.match(file.name) or (
        file.name.startswith(("assert", "error")) and (file.parent / "chainsaw-test.yaml").is_file()
    ):
        return "assertion"
    is_called_so = has_kustomization and _PATCH.search(file.stem) is not None
    if (file.parent.name == "patches" or is_called_so) and not used.is_resource(str(file)):
        return "patch"  # of kubeadm, or switched off
    if is_template(chunk):
        return "template"
    if b"ENC[" in chunk.content and _SOPS.search(chunk.content):
        return "secret"
    # A part of an object that is whole elsewhere, next to a kustomization that does not name it: switched off.
    is_loose = has_kustomization and not used.is_resource(str(file)) and file.name not in KUSTOMIZATIONS
    return "patch" if is_loose and known and _identity(decoded(chunk)) in known else None


def _read(file: Path, diagnostics: Diagnostics) -> list[Chunk]:
    try:
        return split(read_bytes(file), str(file), diagnostics)
    except OSError as error:
        diagnostics.error("K001", f"cannot read: {error.strerror}", Location(str(file)))
        return []


def _read_kustomizations(
    folder: Path,
    files: Sequence[Path],
    contents: dict[Path, list[Chunk]],
    found: Project,
    diagnostics: Diagnostics,
    exclude: Sequence[str],
) -> None:
    """Reads the kustomizations below a folder, and what they name outside of it."""
    waiting = [file for file in files if file.name in KUSTOMIZATIONS and file in contents]
    if (folder / KUSTOMIZATIONS[2]).is_file():  # has no suffix, so it is none of ``files``
        contents[folder / KUSTOMIZATIONS[2]] = _read(folder / KUSTOMIZATIONS[2], diagnostics)
        waiting.append(folder / KUSTOMIZATIONS[2])
    while waiting:
        file = waiting.pop()
        chunks = contents.setdefault(file, []) or _read(file, diagnostics)
        contents[file] = chunks
        for chunk in chunks:
            value = decoded(chunk)
            if not is_kustomization(value, str(file)):
                continue
            each = Kustomization(chunk, value, file.parent)
            found.kustomizations[os.path.normpath(file.parent)] = each
            for path in each.paths("resources", "bases", "components", "crds"):
                path = Path(os.path.normpath(path))
                if exclude and excluded(path, exclude):
                    continue
                inner = path if path.is_file() else _kustomization_in(path)
                if inner is not None and inner not in contents and not inner.is_relative_to(folder):
                    contents[inner] = _read(inner, diagnostics)
                    if not path.is_file():
                        waiting.append(inner)


def _kustomization_in(folder: Path) -> Path | None:
    return next((folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()), None)


def _sort(
    file: Path,
    chunks: list[Chunk],
    used: Roles,
    known: set[Identity],
    found: Project,
    aside: _Aside,
    tested: _Tested,
) -> None:
    """Takes the objects among the documents of a file."""
    objects = [chunk for chunk in chunks if is_object(chunk)]
    if file.name in KUSTOMIZATIONS:
        objects = chunks
    elif not used.is_object(str(file)):
        return
    if not objects:
        found.others += 1
    has_kustomization = os.path.normpath(file.parent) in found.kustomizations
    for chunk in objects:
        path = os.path.normpath(file)
        reason = "assertion" if path in tested.asserted else None
        if tested.parts and (path, _identity(decoded(chunk))) in tested.parts:
            reason = "part"
        reason = reason or _reason_aside(file, chunk, used, known, has_kustomization)
        if reason is None:
            found.chunks.append(chunk)
        else:
            aside.put(reason, file)


def is_object(chunk: Chunk) -> bool:
    """Whether a document was meant as an object: it has two of apiVersion, kind and metadata."""
    content = chunk.content
    if content.lstrip()[:1] in (b"{", b"["):
        if len({key.lower() for key in _JSON_KEY.findall(content)}) < 2:
            return False
        value = decoded(chunk)
        return value is None or (isinstance(value, dict) and "kind" in value and "apiVersion" in value)
    keys: set[bytes] = set()
    for match in _KEY.finditer(content):  # usually the first lines say it
        keys.add(match[1].lower())
        if len(keys) > 1:
            return True
    return False


def is_template(chunk: Chunk) -> bool:
    """Whether a document is to be filled in before it is YAML, or before its names are."""
    # The first pattern begins with a letter, so it is many times faster, and most documents have none of these.
    if _ANGLES.search(chunk.content) and _TO_FILL_IN.search(chunk.content):
        return True
    if not _MARKUP.search(chunk.content):
        return False
    value = decoded(chunk)
    if not isinstance(value, dict):
        return value is None
    metadata = value.get("metadata")
    names = [value.get("kind"), value.get("apiVersion")]
    names += [metadata.get("name"), metadata.get("namespace")] if isinstance(metadata, dict) else []
    return any(isinstance(name, str) and _PLACEHOLDER.search(name) for name in names)


def _charts(folder: Path, files: Sequence[Path]) -> dict[Path, int]:
    """The Helm charts below a folder and how many templates each has: a folder with a Chart file, whatever precedes
    its suffix, and one called templates, or a folder of templates with a helper in it."""
    named = {file.parent for file in files if re.fullmatch(r"Chart(\..+)?\.ya?ml", file.name)}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        is_helper = any(name.startswith("_") and name.endswith(".tpl") for name in names)
        if is_helper and Path(root).name == "templates":
            named.add(Path(root).parent)
    outer = {chart for chart in named if not any(above in named for above in chart.parents)}
    return {
        chart: sum(1 for file in files if file.is_relative_to(chart) and "templates" in file.parts)
        for chart in sorted(outer)
    }


def _of_chart(file: Path, charts: dict[Path, int]) -> Path | None:
    """The chart that a file belongs to; CRDs of a chart are plain manifests, which Helm does not render."""
    chart = next((above for above in file.parents if above in charts), None)
    if chart is None or file.relative_to(chart).parts[0] == "crds":
        return None
    return chart


def _read_chart(chart: Path, templates: int, found: Project, diagnostics: Diagnostics, *, helm: bool) -> None:
    if not helm:
        said = f"a Helm chart ({templates} template{'s' * (templates != 1)}): not judged"
        found.note(str(chart), said, "--helm renders it, with the values of the chart")
        return
    if shutil.which("helm") is None:
        found.note(str(chart), "a Helm chart: not judged, for helm is not on PATH")
        return
    command = ["helm", "template", "release", str(chart)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=HELM_SECONDS)
    except subprocess.TimeoutExpired:
        found.note(str(chart), f"a Helm chart: not judged, helm took more than {HELM_SECONDS} s")
        return
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["helm says nothing"]
        diagnostics.error("K016", f"helm template: {lines[-1]}", Location(str(chart)))
        return
    found.chunks += split(done.stdout, str(chart), diagnostics)


def source_of(content: bytes) -> str:
    """The template that Helm made a document from, as its first comment says."""
    line = next(_comments(content), b"") if b"# Source: " in content[:500] else b""
    return line.removeprefix(b"# Source: ").decode("utf-8", "replace").strip() if line else ""


def _comments(content: bytes) -> Iterator[bytes]:
    for line in content[:500].splitlines():
        if line.startswith(b"# Source: "):
            yield line
        elif line.strip() and not line.startswith(b"#"):
            return
