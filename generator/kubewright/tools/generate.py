"""``kubewright generate``: specs in, packages out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from kubewright import config as configuration
from kubewright.config import Config, KubernetesSource, Package, PathSource
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.pipeline import BuildOutcome, generate, read_api


def run(options: argparse.Namespace) -> int:
    """0: made, or in order; 1: drift; 2: faults in specs or options."""
    diagnostics = Diagnostics()
    config = _configure(options, diagnostics)
    if config is None or diagnostics.has_errors:
        return _print(diagnostics) or 2
    if options.dump_ir:
        return _dump(config, diagnostics)
    started = time.perf_counter()
    outcome = generate(
        config,
        check=options.check,
        jobs=max(1, options.jobs),
        force=options.force,
        progress=(lambda text: None) if options.quiet else _show_progress,
    )
    _end_progress(options.quiet)
    failed = _print(outcome.diagnostics)
    if failed:
        return failed
    if not options.quiet:
        _summarize(outcome, options.check, time.perf_counter() - started)
    if options.check and any(outcome.changes.values()):
        print(outcome.drift)
        print("generated files are not what the specs say: run `kubewright generate`", file=sys.stderr)
        return 1
    return 0


def _configure(options: argparse.Namespace, diagnostics: Diagnostics) -> Config | None:
    config = _base_config(options, diagnostics)
    if config is None:
        return None
    if options.package and not options.specs:
        chosen = tuple(package for package in config.packages if package.name == options.package)
        if not chosen:
            known = ", ".join(package.name for package in config.packages)
            diagnostics.error(
                "K401", f"no package {options.package!r}", configuration.NO_CONFIG, f"there is: {known}"
            )
        config = Config(output=config.output, packages=chosen, origin=config.origin)
    if options.language and not options.specs:
        chosen = tuple(p for p in config.packages if p.language == options.language)
        if not chosen:
            diagnostics.error(
                "K401", f"the configuration makes nothing in {options.language}", configuration.NO_CONFIG
            )
        config = Config(output=config.output, packages=chosen, origin=config.origin)
    if options.output:
        config = Config(output=Path(options.output).resolve(), packages=config.packages, origin=config.origin)
    if options.kubernetes:
        config = config.with_release(options.kubernetes.removeprefix("v"))
    only = tuple(name for name in (options.only or "").split(",") if name) or None
    config = config.override(
        only=only,
        models=options.models,
        documentation=options.documentation,
        standalone=options.standalone,
        lenient=options.lenient,
        enums=options.enums,
    )
    _has_prose(config, diagnostics)
    return _known_emitters(config, diagnostics)


def _has_prose(config: Config, diagnostics: Diagnostics) -> None:
    from kubewright.source.kubernetes_validate import has_prose

    for package in config.packages:
        for source in package.sources:
            if not (package.is_documented and isinstance(source, KubernetesSource)):
                continue
            if not has_prose(source.release):
                diagnostics.error(
                    "K005",
                    f"no descriptions of Kubernetes {source.release}",
                    configuration.NO_CONFIG,
                    "pip install kubernetes-validate, or leave `documentation` out",
                )


def _known_emitters(config: Config, diagnostics: Diagnostics) -> Config:
    from kubewright.emit.registry import load_language

    for language in dict.fromkeys(package.language for package in config.packages):
        parts = load_language(language).parts
        wanted = (name for p in config.packages if p.language == language for name in p.only)
        for name in dict.fromkeys(wanted):
            if name not in parts:
                diagnostics.error(
                    "K401", f"no emitter {name!r}", configuration.NO_CONFIG, f"there is: {', '.join(parts)}"
                )
    return config


def _base_config(options: argparse.Namespace, diagnostics: Diagnostics) -> Config | None:
    here = Path()
    if options.specs:
        sources = tuple(_source(text) for text in options.specs)
        only_built_in = all(isinstance(source, KubernetesSource) for source in sources)
        name = options.package or ("kubernetes_api" if only_built_in else "generated_api")
        language = options.language or "python"
        if not configuration.is_package_name(name, language):
            called = "Python package" if language == "python" else "package"
            diagnostics.error("K401", f"{name!r} is no name of a {called}", configuration.NO_CONFIG)
            return None
        package = Package(
            name=name,
            sources=sources,
            facts=configuration.facts_of(sources),
            language=language,
            settings=(("module", options.module),) if options.module else (),
        )
        return Config(output=(here / "generated").resolve(), packages=(package,))
    path = Path(options.config) if options.config else configuration.find_config(here)
    if path is None:
        diagnostics.error(
            "K404",
            "neither specs nor a kubewright.yaml say what to make",
            configuration.NO_CONFIG,
            "kubewright generate crds/ --package NAME; for the built-in kinds: kubewright generate kubernetes:"
            + configuration.DEFAULT_RELEASE,
        )
        return None
    from kubewright.source.text import read_single

    document = read_single(path, diagnostics)
    return configuration.read_config(document, path.parent, diagnostics) if document else None


def _source(text: str) -> KubernetesSource | PathSource:
    head, separator, release = text.partition(":")
    if separator and head == "kubernetes":
        return KubernetesSource(release.removeprefix("v"))
    return PathSource(Path(text))


def _dump(config: Config, diagnostics: Diagnostics) -> int:
    from kubewright.ir.dump import dump

    for package in config.packages:
        api = read_api(package, diagnostics)
        if not diagnostics.has_errors:
            sys.stdout.write(dump(api))
    return _print(diagnostics)


def _print(diagnostics: Diagnostics) -> int:
    """Prints all of them; 2 where one is an error, else 0."""
    counts = dict.fromkeys(Severity, 0)
    for item in diagnostics:
        counts[item.severity] += 1
        print(item, file=sys.stderr)
    if counts[Severity.ERROR]:
        errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
        print(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}", file=sys.stderr)
        return 2
    return 0


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _end_progress(quiet: bool) -> None:
    if not quiet and sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _summarize(outcome: BuildOutcome, check: bool, seconds: float) -> None:
    for built in outcome.built:
        changes = outcome.changes[built.package.label]
        if built.fresh:
            print(f"{built.package.label}: nothing changed")
            continue
        verb = "would be " if check else ""
        types = f", {_count(built.types, 'type')} in the models" if built.types else ""
        print(
            f"{built.package.label}: {_count(built.definitions, 'definition')} read{types}; "
            f"{len(built.tree.files)} files: {verb}{len(changes.added)} added, "
            f"{len(changes.changed)} changed, {len(changes.removed)} removed"
        )
    print(f"{seconds:.2f} s")
