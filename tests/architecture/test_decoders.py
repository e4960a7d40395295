"""Functions decode into classes by way of ``typed/decoders``, which is safe where several threads begin at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "generator/apimachinery"
EXEMPT = {"typed/decoders.py", "typed/dataclass_form.py"}  # the second converts scalars alone
DECODING = {"msgspec.json.decode", "msgspec.convert", "msgspec.json.Decoder"}
RACE = """
import json, sys, threading
from kubernetes_api.scheme import SCHEME
sys.setswitchinterval(1e-6)
kinds = [("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")]
begin, done = threading.Barrier(8), []
def read(kind, how):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = template["spec"] if kind[1] == "Pod" else {"selector": {}, "template": template}
    value = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}, "spec": spec}
    SCHEME.class_for(*kind)
    begin.wait(60)
    done.append(SCHEME.from_dict(value) if how else SCHEME.decode(json.dumps(value)))
threads = [threading.Thread(target=read, args=(kind, how), daemon=True) for kind in kinds for how in (0, 1)]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
print(len(done))
"""


def unprepared(path: Path) -> Iterator[int]:
    """The lines at which a function decodes into a class that may not be ready."""
    text = path.read_text()
    for function in ast.walk(ast.parse(text)) if "msgspec" in text else ():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        if any(ast.unparse(call.func) in ("prepare", "decoders.prepare") for call in calls):
            continue
        for call in calls:
            is_typed = len(call.args) > 1 or any(each.arg == "type" for each in call.keywords)
            if ast.unparse(call.func) in DECODING and (
                is_typed or ast.unparse(call.func).endswith("Decoder")
            ):
                yield call.lineno


def test_functions_prepare_the_classes_that_they_decode() -> None:
    paths = {path.relative_to(RUNTIME).as_posix(): path for path in RUNTIME.rglob("*.py")}
    found = {name: [*unprepared(path)] for name, path in paths.items() if name not in EXEMPT}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_threads_that_begin_with_a_class_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE], cwd=ROOT, capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr[-2000:]
