"""``kubewright editor``: what editors need to complete and check the manifests of a folder.

Writes the schemas of the kinds, and names them in ``.vscode/settings.json`` (VS Code, and whatever else asks
yaml-language-server) and ``.idea/jsonSchemas.xml`` (IntelliJ). Settings that are there stay; files are written whole or
not at all. With ``--modelines`` each manifest says itself which schema it is of. Exit codes: 0 written, 2 unusable
input, 3 the disk refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from kubewright.config import Config, KubernetesSource, Package, PathSource, Source, facts_of
from kubewright.diagnostics import Severity, printable
from kubewright.pipeline import generate

BUNDLE = "all.json"
_MODELINE = re.compile(r"^#[ \t]*yaml-language-server:\s*\$schema=[^\r\n]*", re.MULTILINE)
_NEXT_DOCUMENT = re.compile(r"^---[ \t]*(#[^\r\n]*)?\r?\n", re.MULTILINE)
_CONTENT = re.compile(r"^(?!---)[ \t]*[^#\s]", re.MULTILINE)


class UneditableError(Exception):
    """Why a file of settings is left alone."""


def run(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if not folder.is_dir():
        return _refused(f"{folder}: there is no such folder")
    sources: list[Source] = [PathSource(Path(path), path) for path in options.crds]
    if options.kubernetes:
        sources.append(KubernetesSource(options.kubernetes.removeprefix("v")))
    if not sources:
        return _refused("no kinds: name CRDs by --crds, or a release by --kubernetes")
    schemas = (options.schemas or folder / ".schemas").resolve()
    if not _make(sources, schemas):
        return 2
    try:
        settings = {path: edit(path, folder, schemas) for path, edit in _settings(folder).items()}
    except UneditableError as fault:
        return _refused(str(fault))
    for path, text in settings.items():
        _write(path, text)
    changed = _modelines(folder, schemas) if options.modelines else 0
    written = ", ".join(str(path) for path in settings)
    print(
        f"{schemas}: schemas of {_counted(_kinds(schemas), 'kind')}; wrote {written}"
        + (f"; named the schema in {_counted(changed, 'file')}" if options.modelines else "")
    )
    return 0


def _refused(why: str) -> int:
    print(f"kubewright editor: {printable(why)}", file=sys.stderr)
    return 2


def _make(sources: list[Source], schemas: Path) -> bool:
    built_in = tuple(source for source in sources if isinstance(source, KubernetesSource))
    package = Package(
        name="schemas",
        sources=tuple(sources),
        documentation=_documented(sources),
        facts=facts_of(built_in),
        language="jsonschema",
        folder=schemas,
    )
    with tempfile.TemporaryDirectory(prefix="kubewright-editor-") as stamps:
        outcome = generate(Config(output=Path(stamps), packages=(package,)), force=True)
    for item in outcome.diagnostics:
        if item.severity is Severity.ERROR:
            print(item, file=sys.stderr)
    return not outcome.diagnostics.has_errors


def _documented(sources: list[Source]) -> bool:
    """Whether there are descriptions of all: those of the built-in kinds are an extra."""
    from kubewright.source.kubernetes_validate import has_prose

    return all(has_prose(source.release) for source in sources if isinstance(source, KubernetesSource))


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _kinds(schemas: Path) -> int:
    return sum(path.name != BUNDLE for path in schemas.rglob("*.json"))


def _settings(folder: Path) -> dict[Path, Callable[[Path, Path, Path], str]]:
    """What makes the text of each file of settings, from its path, the folder and that of the schemas."""
    return {folder / ".vscode" / "settings.json": _vscode, folder / ".idea" / "jsonSchemas.xml": _intellij}


def _vscode(path: Path, folder: Path, schemas: Path) -> str:
    """``path`` with the schemas under ``yaml.schemas``, and everything else as it was."""
    bundle = _relative(schemas / BUNDLE, folder)
    given: object = {}
    if path.exists():
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            line = f'"yaml.schemas": {{{json.dumps(bundle)}: ["**/*.yaml", "**/*.yml"]}}'
            raise UneditableError(f"{path} is not plain JSON ({error}): add {line} to it yourself") from error
    if not isinstance(given, dict) or not isinstance(given.get("yaml.schemas", {}), dict):
        raise UneditableError(f"{path}: its `yaml.schemas` must map schemas to files")
    known = {**given.get("yaml.schemas", {}), bundle: ["**/*.yaml", "**/*.yml"]}
    return json.dumps({**given, "yaml.schemas": known}, indent=2, ensure_ascii=False) + "\n"


def _intellij(path: Path, folder: Path, schemas: Path) -> str:
    if path.exists() and "kubewright" not in path.read_text(encoding="utf-8"):
        raise UneditableError(
            f"{path} has mappings of yours: add one for {schemas / BUNDLE} in the settings of the editor"
        )
    bundle = quoteattr(_relative(schemas / BUNDLE, folder).removeprefix("./"))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<project version="4">
  <component name="JsonSchemaMappingsProjectConfiguration">
    <state>
      <map>
        <entry key="kubewright">
          <value>
            <SchemaInfo>
              <option name="name" value="kubewright" />
              <option name="relativePathToSchema" value={bundle} />
              <option name="schemaVersion" value="JSON Schema version 7" />
              <option name="patterns">
                <list>
                  <Item>
                    <option name="pattern" value="true" />
                    <option name="path" value="*.yaml" />
                    <option name="mappingKind" value="Pattern" />
                  </Item>
                </list>
              </option>
            </SchemaInfo>
          </value>
        </entry>
      </map>
    </state>
  </component>
</project>
"""


def _relative(path: Path, folder: Path) -> str:
    """``path`` as the settings of ``folder`` name it."""
    shown = Path(os.path.relpath(path, folder.resolve())).as_posix()
    return shown if shown.startswith("..") else f"./{shown}"


def _modelines(folder: Path, schemas: Path) -> int:
    """Names the schema in each document of each manifest that lacks it; gives how many files were changed."""
    changed = 0
    for path in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
        if not path.is_file() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        line = f"# yaml-language-server: $schema={_relative(schemas / BUNDLE, path.parent)}"
        new = "".join(_with_modeline(each, line) for each in _documents(text))
        if new != text:
            _write(path, new)
            changed += 1
    return changed


def _documents(text: str) -> list[str]:
    """The documents of a file, each from behind the line that separates it from the one before; comments that stand
    alone belong to what follows."""
    starts = [0]
    for found in _NEXT_DOCUMENT.finditer(text):
        if _CONTENT.search(text, starts[-1], found.start()):
            starts.append(found.end())
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _with_modeline(document: str, line: str) -> str:
    found = _MODELINE.search(document)
    if found:
        return f"{document[: found.start()]}{line}{document[found.end() :]}"
    ending = "\r\n" if "\r\n" in document else "\n"
    return f"{line}{ending}{document}" if _CONTENT.search(document) else document


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(text.encode("utf-8", "surrogateescape"))
    if path.exists():
        temporary.chmod(path.stat().st_mode & 0o7777)
    temporary.replace(path)
