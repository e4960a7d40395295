"""What the other languages make of real projects: steps of ``projects`` (``--steps languages``).

TypeScript is compiled strictly (tests/compiler/languages/node), with every sample as a value of its type. Go is built
within the module that KUBEWRIGHT_GO_VENDOR names, and every sample is read and written. JSON Schemas judge the samples.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
from tests.compiler.languages.drawn import definitions, schemas
from tests.compiler.languages.node_tools import MODULES, NODE, compile_strictly
from tests.compiler.languages.node_tools import project as compiled
from tests.compiler.languages.test_go import GO, MAIN, VENDOR, run

from apimachinery.meta.quantity import canonical
from kubewright.emit.go.types import QUANTITY

Json = Any
Run = Callable[..., tuple[subprocess.CompletedProcess[str], float]]
_NAME = re.compile(
    r"^(?:export (?:interface|type|const)|type|func|func \(\w+ \*?\w+\)) (\w+)|^\t(\w+) +\w+ += ",
    re.MULTILINE,
)
COLUMNS = {
    "longest_name": "longest name",
    "typescript_s": "TypeScript s",
    "typescript": "TS samples",
    "go_s": "Go s",
    "go": "Go samples",
    "jsonschema_s": "schemas s",
    "jsonschema": "schema samples",
}


def measure(
    folder: Path,
    run_python: Run,
    samples: list[tuple[str, Json]],
    values: dict[str, Any],
    notes: list[str],
) -> None:
    """Generates each language of the definitions in ``folder/new``, and tries it."""
    homes = {}
    for language in ("typescript", "go", "jsonschema"):
        place = (
            VENDOR / f"measured_{folder.name.replace('-', '_')}" if language == "go" else folder / language
        )
        shutil.rmtree(place, ignore_errors=True)
        module = ("--module", f"{_module()}/{place.name}/apis") if language == "go" else ()
        made = (
            "new",
            "--language",
            language,
            "--package",
            "apis",
            "--output",
            str(place),
            "-q",
            "-j1",
            *module,
        )
        done, values[f"{language}_s"] = run_python("-m", "kubewright", "generate", *made)
        if done.returncode:
            notes.append(f"{language}: {done.stderr[-300:]}")
            continue
        homes[language] = place / "apis"
    texts = [p.read_text() for home in homes.values() for p in home.rglob("*") if p.suffix in (".ts", ".go")]
    names = ["".join(found) for text in texts for found in _NAME.findall(text)]
    values["longest_name"] = max(map(len, names), default=0)
    if NODE and (MODULES / "typescript").is_dir() and "typescript" in homes:
        values["typescript"] = _typescript(folder / "compiled", homes["typescript"], samples, notes)
    if GO and (VENDOR / "vendor").is_dir() and "go" in homes:
        try:
            values["go"] = _go(homes["go"], folder / "new", samples, notes)
        finally:
            shutil.rmtree(homes["go"].parent, ignore_errors=True)
    if "jsonschema" in homes:
        values["jsonschema"] = _schemas(homes["jsonschema"], samples, notes)


def _module() -> str:
    return (VENDOR / "go.mod").read_text().split()[1] if (VENDOR / "go.mod").is_file() else "example.com"


def _typescript(folder: Path, home: Path, samples: list[tuple[str, Json]], notes: list[str]) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    src = compiled(folder)
    shutil.copytree(home, src / "apis")
    places = {}
    for path in home.glob("*.ts"):
        for name, api_version, kind in re.findall(
            r'^export interface (\w+) \{(?:\n(?!\}).*?)*?\n  apiVersion: (".*?");(?:\n(?!\}).*?)*?\n  kind: (".*?");',
            path.read_text(), re.MULTILINE,
        ):  # fmt: skip
            places[json.loads(api_version), json.loads(kind)] = f"apis.{path.stem}.{name}"
    lines = ['import type * as apis from "./apis/index.js";']
    for number, (_, value) in enumerate(samples):
        name = places[value["apiVersion"], value["kind"]]
        lines.append(f"export const o{number}: {name} = {json.dumps(bare(value))};")
    (src / "samples.ts").write_text("\n".join(lines) + "\n")
    said = compile_strictly(folder)
    wrong = {int(found[1]) for line in said if (found := re.match(r"src/samples\.ts\((\d+),", line))}
    notes += [f"typescript: {line[:300]}" for line in said if line.startswith("src/")]
    return f"{len(samples) - len(wrong)}/{len(samples)}"


def _go(home: Path, crds: Path, samples: list[tuple[str, Json]], notes: list[str]) -> str:
    module = f"{_module()}/{home.parent.name}/apis"
    packages = sorted(path.parent.relative_to(home).as_posix() for path in home.rglob("register.go"))
    imports = "".join(f'\tp{i} "{module}/{each}"\n' for i, each in enumerate(packages))
    adds = "".join(
        f"\tif p{i}.AddToScheme(scheme) != nil {{\n\t\tpanic({i})\n\t}}\n" for i in range(len(packages))
    )
    (home.parent / "main.go").write_text(MAIN % (imports, adds))
    run(VENDOR, GO, "vet", f"./{home.parent.name}/...")
    text = "".join(json.dumps(value) + "\n" for _, value in samples)
    back = run(VENDOR, GO, "run", f"./{home.parent.name}", text=text).splitlines()
    judged = {place[:2]: place[2] for crd in definitions(crds) for place in schemas(crd)}
    alike, rewritten = 0, 0
    for (name, value), line in zip(samples, back, strict=True):
        given, got = bare(value), bare(json.loads(line))
        schema = judged[value["apiVersion"], value["kind"]]
        same = _go_form(given, schema) == _go_form(got, schema)
        alike += same
        rewritten += same and given != got
        if not same:
            notes.append(f"go: {name}: not alike")
    if rewritten:
        notes.append(
            f"go: {rewritten} samples have quantities or an empty namespace that Go writes otherwise"
        )
    return f"{alike}/{len(samples)}"


def _go_form(value: Json, schema: Json) -> Json:
    """``value`` as Go's own types of Kubernetes write it: canonical quantities, no empty namespace."""
    if isinstance(value, dict):
        fields, extra = schema.get("properties", {}), schema.get("additionalProperties")
        kept = {name: item for name, item in value.items() if (name, item) != ("namespace", "")}
        return {
            name: _go_form(item, fields.get(name, extra if isinstance(extra, dict) else {}))
            for name, item in kept.items()
        }
    if isinstance(value, list):
        return [_go_form(item, schema.get("items", {})) for item in value]
    return canonical(value) if schema.get("pattern") == QUANTITY and value is not None else value


def _schemas(home: Path, samples: list[tuple[str, Json]], notes: list[str]) -> str:
    validators: dict[Path, jsonschema.Draft7Validator] = {}
    valid = 0
    for name, value in samples:
        group, _, version = value["apiVersion"].rpartition("/")
        path = home / (group or "core") / f"{value['kind'].lower()}_{version}.json"
        validator = validators.setdefault(path, jsonschema.Draft7Validator(json.loads(path.read_text())))
        error = next(validator.iter_errors(value), None)
        valid += error is None
        if error is not None:
            notes.append(f"jsonschema: {name}: {error.json_path}: {error.message[:200]}")
    return f"{valid}/{len(samples)}"


def bare(value: Json) -> Json:
    """``value`` without nulls, which mean absent."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value
