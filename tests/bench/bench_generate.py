"""The compiler: a whole Kubernetes release, cold, and a run in which nothing changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.measuring import ROOT, Peer, Row, compare, installed, limit, python

NAME = "generate Kubernetes 1.37, cold, all emitters"
CONFIG = """\
output: out
packages:
  kubernetes_api:
    sources: [{{kubernetes: "1.37"}}]
    facts: {specs}/kubernetes
"""

FOREIGN = """\
import json, pathlib, sys, warnings
warnings.simplefilter("ignore")
from datamodel_code_generator import DataModelType, InputFileType, generate
generate(
    pathlib.Path(sys.argv[1]),
    input_file_type=InputFileType.JsonSchema,
    output=pathlib.Path(sys.argv[2]),
    output_model_type=DataModelType.MsgspecStruct,
    use_union_operator=True,
    use_standard_collections=True,
)
"""

CLOUDCOIL = """\
[project]
name = "peer"
version = "0"
[[tool.cloudcoil.codegen.models]]
namespace = "peer"
input = "definitions.json"
output = "out"
"""


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="bench-generate-"))
    try:
        return [*_cold(folder), _unchanged(folder)]
    finally:
        shutil.rmtree(folder)


def _cold(folder: Path) -> list[Row]:
    (folder / "kubewright.yaml").write_text(CONFIG.format(specs=ROOT / "specs"))
    definitions = folder / "definitions.json"
    definitions.write_text(json.dumps({"definitions": _definitions()}))
    peers = [
        Peer(
            "datamodel-code-generator, models alone",
            _clean(folder / "foreign", python("-c", FOREIGN, str(definitions), str(folder / "foreign"))),
            target=1.0,
        )
    ]
    ours = _ours(folder, cold=True)
    rows = compare(NAME, ours, peers, repeat=2)
    if installed("cloudcoil"):
        # Half a minute a run: once is enough. 0.6.0 fails on these definitions in its last step, its own lint of
        # what it made; what it does before that is what is timed.
        (folder / "pyproject.toml").write_text(CLOUDCOIL)
        start = time.perf_counter()
        _cloudcoil(folder)
        theirs = time.perf_counter() - start
        rows.append(
            Row(bench=NAME, peer="cloudcoil-model-codegen", ours=rows[0].ours, theirs=theirs, target=0.2)
        )
    return rows


def _unchanged(folder: Path) -> Row:
    run = _ours(folder, cold=False)
    run()
    return limit("generate with nothing changed", run, 0.5)


def _ours(folder: Path, cold: bool) -> Callable[[], object]:
    run = python("-m", "kubewright", "generate", cwd=folder)
    return _clean(folder / "out", run) if cold else run


def _clean(output: Path, run: Callable[[], object]) -> Callable[[], object]:
    def fresh() -> object:
        shutil.rmtree(output, ignore_errors=True)
        return run()

    return fresh


def _cloudcoil(folder: Path) -> None:
    tools = Path(sys.executable).parent
    subprocess.run(
        [str(tools / "cloudcoil-model-codegen")],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        check=False,
        capture_output=True,
    )


def _definitions() -> object:
    """The definitions of 1.37 as upstream's OpenAPI v2 document has them: references below ``definitions``."""
    import kubernetes_validate

    root = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    text = (root / "v1.37.0-local" / "_definitions.json").read_text()
    return json.loads(text.replace('"#/$defs/', '"#/definitions/'))["$defs"]
