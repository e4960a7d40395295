"""``kubewright sdk``: an installable, typed client package from CRDs, an OpenAPI document or a live cluster.

The result is a project of its own: ``pyproject.toml``, ``README.md`` with examples that run, and the generated package
below ``src/``. The first two are written once and then yours; the package is regenerated as a whole, as ``generate``
does. Exit codes: 0 made, 2 unusable input, 3 the cluster or the disk refused.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from kubewright.config import Config, KubernetesSource, Package, PathSource, is_package_name
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.emit.code.names import attribute_name, class_name, module_names
from kubewright.emit.code.render import render, string_literal
from kubewright.emit.python.operations import readme_example
from kubewright.ir.api import Api, Resource
from kubewright.ir.versions import join_api_version
from kubewright.pipeline import generate, read_api


def run(options: argparse.Namespace) -> int:
    python = options.language == "python"
    if not is_package_name(options.package, options.language) or "." in options.package:
        called = "Python package" if python else "package"
        print(f"kubewright sdk: {options.package!r} is no name of a {called}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kubewright-sdk-") as folder:
        sources = _sources(options, Path(folder))
        if sources is None:
            return 3
        package = Package(
            name=options.package,
            sources=sources,
            documentation=False if options.no_documentation else None,
            language=options.language,
        )
        return _make(package, options.output)


def _make(package: Package, out: Path) -> int:
    diagnostics = Diagnostics()
    api = read_api(package, diagnostics, operations=True)
    if not diagnostics.has_errors and not any(r.served for r in api.resources) and api.has_kinds:
        print(
            "kubewright sdk: the specs define no resource and no operation: nothing to call", file=sys.stderr
        )
        return 2
    if package.language != "python" and not api.resources:
        print("kubewright sdk: clients of ordinary HTTP APIs are for Python alone", file=sys.stderr)
        return 2
    outcome = None
    if not diagnostics.has_errors:
        outcome = generate(Config(output=(out / "src").resolve(), packages=(package,)), force=True)
        diagnostics = outcome.diagnostics
    for item in diagnostics:
        print(item, file=sys.stderr)
    if diagnostics.has_errors or outcome is None:
        errors = sum(d.severity is Severity.ERROR for d in diagnostics)
        print(f"kubewright sdk: nothing written: {errors} error{'s' * (errors != 1)}", file=sys.stderr)
        return 2
    written = [name for name, text in _project(package, api).items() if _write_once(out / name, text)]
    changes = outcome.changes[package.label]
    count = len(api.interface.operations) if api.interface and not api.resources else len(api.resources)
    what = "resources" if api.resources else "operations"
    what = what if count != 1 else what.removesuffix("s")
    print(f"{out}: {count} {what}; package {package.name} in src/: {len(changes.added)} files added,"
          f" {len(changes.changed)} changed, {len(changes.removed)} removed"
          + (f"; wrote {' and '.join(written)}" if written else ""))  # fmt: skip
    # `pip install shop` means a project of the index; a folder has to look like one.
    shown = out if out.is_absolute() or out.parts[:1] == ("..",) else f".{os.sep}{out}"
    print(
        f"next: pip install {shown}"
        if package.language == "python"
        else f"next: npm --prefix {shown} install-test"
    )
    return 0


def _sources(options: argparse.Namespace, folder: Path) -> tuple[PathSource | KubernetesSource, ...] | None:
    found: list[PathSource | KubernetesSource] = []
    for number, text in enumerate(options.sources):
        head, colon, rest = text.partition(":")
        if head == "kubernetes" and colon:
            found.append(KubernetesSource(rest.removeprefix("v")))
        elif head == "cluster":
            into = folder / f"cluster{number}"
            into.mkdir()
            if not _fetch(options, rest, into):
                return None
            found.append(PathSource(into))
        else:
            found.append(PathSource(Path(text)))
    return tuple(found)


def _fetch(options: argparse.Namespace, context: str, into: Path) -> bool:
    from apimachinery.client.config import Config as Kubeconfig
    from apimachinery.client.connection import Client
    from apimachinery.client.errors import ApiError, ConfigError, TransportError
    from kubewright.tools.inputs.cluster import fetch

    def show(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        with Client(Kubeconfig.load(options.kubeconfig, context=context)) as client:
            count = fetch(client, into, groups=tuple(options.group), progress=show)
    except (ApiError, ConfigError, TransportError) as error:
        print(f"kubewright sdk: {error}", file=sys.stderr)
        return False
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if not count:
        print("kubewright sdk: the cluster serves no such group; --group names one", file=sys.stderr)
    return count > 0


def _project(package: Package, api: Api) -> dict[str, str]:
    """The files around the package, by name."""
    return _python(package.name, api) if package.language == "python" else _typescript(package.name, api)


def _typescript(package: str, api: Api) -> dict[str, str]:
    from kubewright.emit.typescript.text import constant_name, literal

    example = _example(api)
    modules = _modules(api)
    place = f"apis/{example.group}" if example.group else "api"
    data = {
        "package": package,
        "name": literal(package.lower()),
        "module": modules[example.group, example.version],
        "constant": constant_name(example.plural, {"client"}),
        "kind": literal(example.kind),
        "path": literal(f"/{place}/{example.version}/{example.plural}"),
        "has_apply": "patch" in example.verbs,
        "has_watch": "watch" in example.verbs,
    }
    return {
        "package.json": render("sdk_package_json", **data),
        "tsconfig.json": render("sdk_tsconfig", **data),
        "README.md": render("sdk_readme_typescript", **data),
        "src/client.test.ts": render("sdk_test_typescript", **data),
    }


def _modules(api: Api) -> dict[tuple[str, str], str]:
    return module_names(
        {(d.group, d.version) for d in api.definitions} | {(r.group, r.version) for r in api.resources}
    )


def _python(package: str, api: Api) -> dict[str, str]:
    if api.interface is not None and not api.resources:
        words = {
            "package": package,
            "project": package.replace("_", "-"),
            **readme_example(api.interface),
        }
        return {
            "pyproject.toml": render("sdk_pyproject", **words),
            "README.md": render("sdk_readme_operations", **words),
        }
    modules, example = _modules(api), _example(api)
    data = {
        "package": package,
        "project": package.replace("_", "-"),
        "module": modules[example.group, example.version],
        "plural": attribute_name(example.plural),
        "kind": class_name(example.kind),
        "namespaced": example.namespaced,
        "has_apply": "patch" in example.verbs,
        "api_version": string_literal(join_api_version(example.group, example.version)),
    }
    return {"pyproject.toml": render("sdk_pyproject", **data), "README.md": render("sdk_readme", **data)}


def _example(api: Api) -> Resource:
    """The resource whose calls the README shows: one that can be listed and watched, a namespaced one first."""
    return min(
        (r for r in api.resources if r.served),
        key=lambda r: (not {"list", "watch"} <= set(r.verbs), r.deprecated, not r.namespaced, r.plural),
    )


def _write_once(path: Path, text: str) -> bool:
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return True
