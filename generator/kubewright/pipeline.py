"""The main path: read → fix → link → check → emit → write.

``build`` makes one package in memory; ``generate`` makes all of a configuration, several at a time, and puts them
on disk. A run whose inputs, compiler and outputs are what they were at the last one stops after hashing them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kubewright import output
from kubewright.config import NO_CONFIG, Config, KubernetesSource, Package, PathSource, specs_folder
from kubewright.diagnostics import Diagnostics
from kubewright.freshness import fingerprint, read_stamp, write_stamp
from kubewright.ir.api import Api
from kubewright.ir.known_types import KnownTypes
from kubewright.ir.shape_names import NamesError
from kubewright.ir.shapes import fold
from kubewright.location import Document, Location
from kubewright.processes import usable_processes
from kubewright.upstream import fix, judge

if TYPE_CHECKING:
    from kubewright.emit.interface import Form

Progress = Callable[[str], None]
LENIENT = frozenset({"K101", "K102", "K103", "K104", "K105", "K110", "K111", "K201", "K603"})
"""Faults of documents that a lenient run warns of: what is broken is left out, or stands for any value."""
BUILT_IN = "kubernetes_api"
"""The package of the built-in groups, installed with kubewright: other packages' models use its types."""


@dataclass(slots=True)
class Built:
    """One package in memory, and what is to be said about it: ``definitions`` were read, ``types`` are in the models
    that were made (classes and names for what is not an object)."""

    package: Package
    tree: output.Tree
    diagnostics: Diagnostics
    definitions: int = 0
    types: int = 0
    fresh: bool = False


@dataclass(slots=True)
class BuildOutcome:
    """What a run did. ``drift`` is the diff where it was only to check."""

    built: list[Built] = field(default_factory=list)
    changes: dict[str, output.Changes] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    drift: str = ""


def read_api(
    package: Package,
    diagnostics: Diagnostics,
    jobs: int = 1,
    *,
    library_prose: bool = False,
    operations: bool = False,
) -> Api:
    """The linked and checked API of a package's sources. ``library_prose`` asks for the descriptions of shared types
    that the sources refer to; what is generated must not depend on whether they are installed. ``operations`` asks for
    those of ordinary OpenAPI documents."""
    # Imported here: most commands use a part of the compiler, and start faster without the rest.
    from kubewright.ir.check import check
    from kubewright.ir.check_rules import check_rules
    from kubewright.ir.link import link
    from kubewright.source import reading
    from kubewright.source.catalog import past_kinds
    from kubewright.source.releases import add_kinds, fields_since

    paths = [source.path for source in package.sources if isinstance(source, PathSource)]
    built_in = [source for source in package.sources if isinstance(source, KubernetesSource)]
    catalog = specs_folder() / "kubernetes"
    fragments = []
    for source in built_in:
        document = _load_release(source.release, diagnostics, prose=package.is_documented)
        if document is not None:
            for release, kinds in past_kinds(catalog, source.release, source.served_since).items():
                past = _load_release(release, diagnostics, prose=package.is_documented)
                if past is not None:
                    add_kinds(document.value["$defs"], kinds, past.value["$defs"])
            fragments.append(
                reading.read_kubernetes(document, catalog, source.release, diagnostics, source.served_since)
            )
    found = reading.read_input(paths, diagnostics)
    reading.pass_over_built_in(found, fragments, diagnostics)
    for document in found.openapi:
        # The same document as a file: known errors of upstream are fixed there too.
        info = document.value.get("info")
        if isinstance(info, dict) and info.get("title") == "Kubernetes":
            fix(document, document.value.get("definitions", {}), str(info.get("version", "")), diagnostics)
    fragments += reading.read_fragments(found, diagnostics, operations=operations)
    api = link(
        package.name,
        fragments,
        diagnostics,
        # Called only if something refers to it, since loading a release takes long.
        library=lambda: reading.read_library(diagnostics, prose=library_prose),
        facts=(
            *reading.read_facts(package.facts, diagnostics),
            *(("since", tuple(fields_since(source.release).items())) for source in built_in),
        ),
    )
    check(api, diagnostics)
    check_rules(api, diagnostics)
    judge(found.openapi, diagnostics, jobs)
    return api


def _load_release(release: str, diagnostics: Diagnostics, *, prose: bool = False) -> Document | None:
    """The definitions of a release of Kubernetes without their known errors; ``None`` after a diagnostic."""
    from kubewright.source import reading

    document = reading.load_kubernetes(release, diagnostics, prose=prose)
    if document is not None:
        fix(document, document.value["$defs"], release, diagnostics)
    return document


def read_known(package: Package, diagnostics: Diagnostics) -> KnownTypes | None:
    """The types of the installed built-in groups, for a package whose models are to use them."""
    if package.is_alone or package.name == BUILT_IN:
        return None
    known, found = _known_types()
    for item in found:
        diagnostics.add(item)
    return known


@cache
def _known_types() -> tuple[KnownTypes | None, Diagnostics]:
    """Read once by a process: they take longer than most packages that are held against them."""
    from kubewright.emit.code.layout import definition_class_names
    from kubewright.emit.code.names import module_names
    from kubewright.ir.known_types import KnownTypes
    from kubewright.ir.link import link
    from kubewright.source import reading
    from kubewright.source.kubernetes_validate import NEWEST

    diagnostics = Diagnostics()
    document = _load_release(NEWEST, diagnostics)
    if document is None:
        return None, diagnostics
    fragment = reading.read_kubernetes(document, specs_folder() / "kubernetes", NEWEST, diagnostics)
    api = link(BUILT_IN, [fragment], diagnostics)
    pairs = {(d.group, d.version) for d in api.definitions} | {(r.group, r.version) for r in api.resources}
    modules, classes = module_names(pairs), definition_class_names(api)
    places = {d.name: (modules[d.group, d.version], classes[d.name]) for d in api.definitions}
    return KnownTypes(api, BUILT_IN, places), diagnostics


def build(package: Package, folder: Path, progress: Progress = lambda text: None, jobs: int = 1) -> Built:
    """All files of one package, in memory."""
    from kubewright.emit.interface import Form, Options
    from kubewright.emit.registry import load_language

    language = load_language(package.language)
    diagnostics = Diagnostics(lenient=LENIENT if package.lenient else frozenset())
    built = Built(package, output.Tree(folder), diagnostics)
    progress(f"{package.label}: reading")
    api = read_api(package, built.diagnostics, jobs, operations=True)
    options = Options(
        package=package.name,
        origins=origins(package),
        documentation=package.is_documented,
        models=package.models,
        enums=package.enums == "enum",
        only=package.only,
        settings=dict(package.settings),
    )
    if package.lenient and not (api.definitions or api.resources or api.interface):
        place = (
            Location(str(package.sources[0].path))
            if isinstance(package.sources[0], PathSource)
            else NO_CONFIG
        )
        diagnostics.error("K003", "nothing could be read", place, "each warning says what was left out")
    language.check(api, options, built.diagnostics)
    built.definitions = len(api.definitions)
    if built.diagnostics.has_errors:
        return built
    forms = _forms(package, api, language.forms, built.diagnostics)
    if forms is None:
        return built
    for made in language.emit(forms, options):
        progress(f"{package.label}: emitting {made.part}")
        built.tree.add([made.file], built.diagnostics, made.part)
    if package.language == "python" and (not package.only or "models" in package.only):
        _count_types(built, forms[Form.MODELS])
    return built


def _forms(
    package: Package, api: Api, wanted: frozenset[Form], diagnostics: Diagnostics
) -> dict[Form, Api] | None:
    """``api`` in the forms that are wanted; ``None`` where the names that were given cannot be used."""
    from kubewright.emit.interface import Form

    if any(isinstance(source, KubernetesSource) for source in package.sources):
        if package.names:
            diagnostics.error("K401", f"`names` of {package.name}: the built-in kinds have names", NO_CONFIG)
            return None
        return dict.fromkeys(wanted, api)
    ways: dict[Form, Callable[[], Api]] = {
        Form.READ: lambda: api,
        Form.FOLDED: lambda: fold(api),
        Form.NAMED: lambda: fold(api, names=named),
        Form.EXACT: lambda: fold(api, prose=True, names=named),
        Form.MODELS: lambda: fold(api, read_known(package, diagnostics), names=named),
    }
    named = dict(package.names)
    try:
        return {form: make() for form, make in ways.items() if form in wanted}
    except NamesError as fault:
        diagnostics.error("K401", f"`names` of {package.name}: {fault}", NO_CONFIG)
        return None


_TYPE = re.compile(rb"^(?:class (\w+)[(:]|(\w+)(?:: TypeAlias)? = )", re.MULTILINE)


def _count_types(built: Built, api: Api) -> None:
    """Counts the types in the files that were made, and holds the definitions against them."""
    from kubewright.emit.code.class_order import is_class
    from kubewright.emit.code.layout import definition_class_names
    from kubewright.emit.code.names import module_names

    made = {
        (path.partition("/")[0], (match[1] or match[2]).decode())
        for path, content in built.tree.files.items()
        if path.endswith("/models.py")
        for match in _TYPE.finditer(content)
    }
    built.types = len(made)
    pairs = {(d.group, d.version) for d in api.definitions} | {(r.group, r.version) for r in api.resources}
    modules, classes = module_names(pairs), definition_class_names(api)
    for definition in api.definitions:
        if built.package.models != "msgspec" and not is_class(definition.value.type):
            continue  # the other flavours write out what is not an object
        if (modules[definition.group, definition.version], classes[definition.name]) not in made:
            built.diagnostics.error(
                "K605",
                f"no type was made of {definition.name}",
                definition.value.location,
                "this is a fault of kubewright: please report it with the spec",
            )


def generate(
    config: Config,
    *,
    check: bool = False,
    jobs: int = 1,
    force: bool = False,
    progress: Progress = lambda text: None,
) -> BuildOutcome:
    """Makes every package of ``config``. With ``check`` nothing is written, and the differences are shown."""
    outcome = BuildOutcome()
    stale: list[tuple[Package, str]] = []
    for package in config.packages:
        folder = _folder(config, package)
        output.recover(folder)
        stamp = fingerprint(package)
        if not force and read_stamp(config, package) == stamp and output.is_intact(folder):
            outcome.built.append(Built(package, output.Tree(folder), Diagnostics(), fresh=True))
        else:
            stale.append((package, stamp))
    for built in _build_all(config, [package for package, _ in stale], jobs, progress):
        outcome.built.append(built)
        for item in built.diagnostics:
            outcome.diagnostics.add(item)
    outcome.built.sort(key=lambda built: built.package.label)
    # Nothing is written where any package has an error.
    if outcome.diagnostics.has_errors:
        return outcome
    for built in outcome.built:
        if built.fresh:
            outcome.changes[built.package.label] = output.Changes()
            continue
        # A partial run leaves the files of the other emitters.
        if built.package.only:
            built.tree.keep_others()
        changes = built.tree.compare(outcome.diagnostics)
        outcome.changes[built.package.label] = changes
        if check:
            outcome.drift += built.tree.diff(changes)
    if check or outcome.diagnostics.has_errors:
        return outcome
    stamps = {package.label: stamp for package, stamp in stale}
    for built in outcome.built:
        if built.fresh:
            continue
        if outcome.changes[built.package.label]:
            progress(f"{built.package.label}: writing")
            built.tree.write(outcome.changes[built.package.label])
        # A partial run says nothing about the freshness of the whole.
        if not built.package.only:
            write_stamp(config, built.package, stamps[built.package.label])
    return outcome


def origins(package: Package) -> tuple[str, ...]:
    """The sources of a package as generated headers name them: without the path of anyone's machine."""
    return tuple(
        f"Kubernetes {source.release}"
        if isinstance(source, KubernetesSource)
        else source.label or source.path.name
        for source in package.sources
    )


def _build_all(config: Config, packages: list[Package], jobs: int, progress: Progress) -> Iterator[Built]:
    # One package is built in this process: starting others takes longer.
    if len(packages) <= 1 or usable_processes(jobs) <= 1:
        for package in packages:
            yield build(package, _folder(config, package), progress, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor  # most runs have one package, and need no processes

    with ProcessPoolExecutor(max_workers=min(jobs, len(packages))) as pool:
        started = [pool.submit(build, package, _folder(config, package)) for package in packages]
        # In the order of the configuration, whatever ends first.
        for package, future in zip(packages, started, strict=True):
            built = future.result()
            progress(f"{package.label}: built")
            yield built


def _folder(config: Config, package: Package) -> Path:
    """Where a package goes: dots in the name of one for Python are folders."""
    if package.folder is not None:
        return package.folder
    parts = package.name.split(".") if package.language == "python" else [package.name]
    return config.output.joinpath(*parts)
