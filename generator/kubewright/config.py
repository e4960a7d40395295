"""What a run of ``generate`` is to make: read from ``kubewright.yaml``, or from paths on the command line.

The file is next to the specs (``kubewright.yaml`` in the current folder, else ``specs/kubewright.yaml``);
paths in it are relative to it. It was chosen over pyproject.toml because specs travel without the Python
project around them. A configuration that cannot be understood is a list of diagnostics, never an exception::

    output: ../generated
    packages:
      kubernetes_api:
        sources:
          - kubernetes: "1.37"      # definitions of that release, with the catalog of resources
        facts: kubernetes           # folder of declared rules: defaults, conversions, …
      library_api:
        sources: [examples/library] # OpenAPI v2/v3 documents, CRD manifests, folders of them
        names:                      # classes of nested objects by their place, where the usual name is too long
          Book.spec.binding.cover: Cover
        typescript: {output: ../web/src/library}   # the same API in other languages, each in a folder of its own
        go: {output: ../go/library, module: example.com/library}
        jsonschema: {output: ../schemas}
        python: false               # unless it says so, a package is made for Python too
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.location import Document, Location

FILE_NAME = "kubewright.yaml"
FLAVOURS = ("msgspec", "pydantic", "dataclass", "typeddict")
_NAMED = re.compile(r"[^.]+(\.[^.]+)+")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")
ENUMS = ("literal", "enum")
LANGUAGES: dict[str, tuple[str, ...]] = {"python": (), "jsonschema": (), "typescript": (), "go": ("module",)}
"""The languages of ``emit.registry``, and what each may be told besides where its files go."""
_PACKAGE_KEYS = {
    "sources",
    "documentation",
    "models",
    "facts",
    "only",
    "standalone",
    "lenient",
    "enums",
    "names",
    *LANGUAGES,
}
DEFAULT_RELEASE = "1.37"


@dataclass(frozen=True, slots=True)
class PathSource:
    """A file or folder of specs; what it holds is found out by reading it. ``label`` is the path as it was
    written, which generated headers show: it says nothing of anyone's machine."""

    path: Path
    label: str = ""


@dataclass(frozen=True, slots=True)
class KubernetesSource:
    """The built-in definitions of a Kubernetes release, and of the versions gone by then that a release from
    ``served_since`` on served by default."""

    release: str
    served_since: str = ""


Source = PathSource | KubernetesSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One generated package. ``only`` limits the emitters, empty means all. A ``standalone`` one has classes of its own
    even for copies of built-in types; a ``lenient`` one is made of faulty documents as far as they can be read.
    ``enums`` says whether enums are ``Literal`` or classes. ``names`` are classes of nested objects by their place,
    ``Kind.field.field``. ``settings`` are those of the ``language``; ``folder`` is where the package goes if not
    below the configuration's output."""

    name: str
    sources: tuple[Source, ...]
    documentation: bool | None = None
    models: str = "msgspec"
    facts: Path | None = None
    only: tuple[str, ...] = ()
    standalone: bool = False
    lenient: bool = False
    enums: str = "literal"
    names: tuple[tuple[str, str], ...] = ()
    language: str = "python"
    settings: tuple[tuple[str, str], ...] = ()
    folder: Path | None = None

    @property
    def label(self) -> str:
        """The name of the package, with its language where that is not Python."""
        return self.name if self.language == "python" else f"{self.name}.{self.language}"

    @property
    def is_documented(self) -> bool:
        """Whether the specs' prose is kept: unless said otherwise, that of all but the built-in groups."""
        if self.documentation is not None:
            return self.documentation
        return not any(isinstance(source, KubernetesSource) for source in self.sources)

    @property
    def is_alone(self) -> bool:
        """Whether the models use no types of an installed package: asked for, or in a flavour that has none there."""
        built_in = any(isinstance(source, KubernetesSource) for source in self.sources)
        return self.standalone or self.models != "msgspec" or built_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything a run makes, and the folder it goes to."""

    output: Path
    packages: tuple[Package, ...]
    origin: str = ""

    def override(self, **changes: Any) -> Config:
        """Every package with the given fields replaced; ``None`` leaves a field alone."""
        given = {key: value for key, value in changes.items() if value is not None}
        return replace(self, packages=tuple(replace(package, **given) for package in self.packages))

    def with_release(self, release: str) -> Config:
        """Every built-in source at another release."""
        return replace(
            self,
            packages=tuple(
                replace(
                    package,
                    sources=tuple(
                        replace(source, release=release) if isinstance(source, KubernetesSource) else source
                        for source in package.sources
                    ),
                )
                for package in self.packages
            ),
        )


def specs_folder() -> Path:
    """The project's own specs: inside an installed wheel, or next to ``generator/`` in a checkout."""
    here = Path(__file__).resolve()
    installed = here.parent / "specs"
    return installed if installed.is_dir() else here.parents[2] / "specs"


def find_config(folder: Path) -> Path | None:
    """The configuration that applies in ``folder``."""
    for candidate in (folder / FILE_NAME, folder / "specs" / FILE_NAME):
        if candidate.is_file():
            return candidate
    return None


def facts_of(sources: tuple[Source, ...]) -> Path | None:
    """The declared rules that come with kubewright, where ``sources`` are the built-in kinds of the release that they
    are about."""
    is_newest = all(
        isinstance(each, KubernetesSource) and each.release == DEFAULT_RELEASE for each in sources
    )
    return specs_folder() / "kubernetes" if sources and is_newest else None


def read_config(document: Document, folder: Path, diagnostics: Diagnostics) -> Config | None:
    """The configuration in ``document``, paths relative to ``folder``; ``None`` after faults."""
    return _Reader(document, folder, diagnostics).read()


def is_package_name(name: str, language: str = "python") -> bool:
    """Whether ``name`` can be imported (dots allowed); in other languages, whether it can be that of a folder."""
    if language != "python":
        return _FOLDER.fullmatch(name) is not None
    return all(
        part.isidentifier() and part.isascii() and not keyword.iskeyword(part) for part in name.split(".")
    )


@dataclass(slots=True)
class _Reader:
    document: Document
    folder: Path
    diagnostics: Diagnostics
    faults: int = field(default=0)

    def fault(self, message: str, pointer: str, hint: str = "") -> None:
        self.faults += 1
        self.diagnostics.error("K401", message, self.document.at(pointer), hint)

    def read(self) -> Config | None:
        value = self.document.value
        if not isinstance(value, dict):
            self.fault("a configuration must be a mapping", "", "it has the keys `output` and `packages`")
            return None
        for key in sorted(value.keys() - {"output", "packages"}, key=str):
            self.fault(f"unknown key {key!r}", f"/{key}", "known: output, packages")
        output = value.get("output", "generated")
        if not isinstance(output, str):
            self.fault("`output` must be the path of a folder", "/output")
            output = "generated"
        packages = value.get("packages")
        if not isinstance(packages, dict) or not packages:
            self.fault("`packages` must name at least one package", "/packages")
            packages = {}
        read = tuple(each for name, body in packages.items() for each in self._languages(name, body))
        if self.faults:
            return None
        return Config(output=(self.folder / output).resolve(), packages=read, origin=self.document.file)

    def _languages(self, name: Any, body: Any) -> Iterator[Package]:
        """A package in each language that it is wanted in."""
        package = self._package(name, body)
        sections = {
            language: body[language] for language in LANGUAGES if isinstance(body, dict) and language in body
        }
        python = sections.pop("python", True)
        if not isinstance(python, bool):
            self.fault("`python` must be true or false", f"/packages/{name}/python")
        if python is not False:
            yield package
        elif not sections:
            self.fault(f"package {name} is made in no language", f"/packages/{name}/python")
        for language, section in sections.items():
            yield self._section(package, language, section, f"/packages/{name}/{language}")

    def _section(self, package: Package, language: str, section: Any, place: str) -> Package:
        known = ("output", *LANGUAGES[language])
        if not isinstance(section, dict) or not isinstance(section.get("output"), str):
            self.fault(f"`{language}` must be a mapping with `output`, the path of a folder", place)
            section = {}
        for key, value in section.items():
            if key not in known:
                self.fault(f"unknown key {key!r}", f"{place}/{key}", f"known: {', '.join(known)}")
            elif not isinstance(value, str):
                self.fault(f"`{key}` must be text", f"{place}/{key}")
        return replace(
            package,
            language=language,
            folder=(self.folder / str(section.get("output", ""))).resolve(),
            settings=tuple((str(key), str(value)) for key, value in section.items() if key != "output"),
            models="msgspec",
            enums="literal",
            only=(),
        )

    def _package(self, name: Any, body: Any) -> Package:
        place = f"/packages/{name}"
        if not isinstance(name, str) or not is_package_name(name):
            self.fault(f"{name!r} is no name of a Python package", place)
        if not isinstance(body, dict):
            self.fault(f"package {name} must be a mapping with `sources`", place)
            body = {}
        for key in sorted(body.keys() - _PACKAGE_KEYS, key=str):
            self.fault(
                f"unknown key {key!r}",
                f"{place}/{key}",
                f"known: {', '.join(sorted(_PACKAGE_KEYS))}",
            )
        models = self._word(body, "models", FLAVOURS, "msgspec", place)
        documentation = self._flag(body, "documentation", place)
        standalone, lenient = self._flag(body, "standalone", place), self._flag(body, "lenient", place)
        enums = self._word(body, "enums", ENUMS, "literal", place)
        names = self._names(body, place)
        facts = body.get("facts")
        if facts is not None and not isinstance(facts, str):
            self.fault("`facts` must be the path of a folder", f"{place}/facts")
            facts = None
        only = body.get("only", [])
        if not isinstance(only, list) or not all(isinstance(item, str) for item in only):
            self.fault("`only` must be a list of emitters", f"{place}/only")
            only = []
        sources = body.get("sources")
        if not isinstance(sources, list) or not sources:
            self.fault(f"package {name} needs `sources`", f"{place}/sources", "a list of paths")
            sources = []
        return Package(
            name=str(name),
            sources=tuple(
                source
                for index, item in enumerate(sources)
                if (source := self._source(item, f"{place}/sources/{index}"))
            ),
            documentation=documentation,
            models=models,
            standalone=standalone is True,
            lenient=lenient is True,
            enums=enums,
            names=tuple((str(path), str(chosen)) for path, chosen in names.items()),
            facts=self.folder / facts if facts else None,
            only=tuple(only),
        )

    def _word(self, body: dict[str, Any], key: str, words: Sequence[str], usual: str, place: str) -> str:
        word = body.get(key, usual)
        if word not in words:
            self.fault(f"unknown {key} {word!r}", f"{place}/{key}", f"one of: {', '.join(words)}")
        return str(word)

    def _flag(self, body: dict[str, Any], key: str, place: str) -> bool | None:
        flag = body.get(key)
        if isinstance(flag, bool) or (flag is None and (key not in body or key == "documentation")):
            return flag
        self.fault(f"`{key}` must be true or false", f"{place}/{key}")
        return None

    def _names(self, body: dict[str, Any], place: str) -> dict[Any, Any]:
        names: dict[Any, Any] = body.get("names", {})
        if not isinstance(names, dict):
            self.fault("`names` must map places to class names", f"{place}/names", "Book.spec.shelf: Shelf")
            names = {}
        for path, chosen in names.items():
            if not (isinstance(path, str) and _NAMED.fullmatch(path)):
                self.fault(f"`names`: {path!r} is no place", f"{place}/names", "write Kind.field.field")
            elif not (isinstance(chosen, str) and _CLASS.fullmatch(chosen) and not keyword.iskeyword(chosen)):
                self.fault(f"`names`: {chosen!r} is no name of a class", f"{place}/names/{path}")
        return names

    def _source(self, item: Any, place: str) -> Source | None:
        if isinstance(item, str):
            return PathSource(self.folder / item, item)
        known = (
            isinstance(item, dict) and "kubernetes" in item and item.keys() <= {"kubernetes", "served_since"}
        )
        if known and all(isinstance(value, str) for value in item.values()):
            return KubernetesSource(item["kubernetes"], item.get("served_since", ""))
        self.fault('a source is a path, or `kubernetes: "1.37"` (quoted)', place)
        return None


NO_CONFIG = Location("<command line>")
