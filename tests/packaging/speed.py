"""CPU time of what is compiled, in microseconds by case, as JSON: one build's side of ``make bench-compiled``."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable

from apimachinery.merge.package import package_types
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import compile_custom
from tests.bench import cel_packages, merge, schemas

LONG = (
    "self.items.all(x, x.name.size() < 64) && self.items.exists(x, x.name.startsWith('ab'))"
    " && self.items.map(x, x.name + '-' + string(x.name.size())).filter(y, y.contains('f')).size() == 100"
)


def median(call: Callable[[], object]) -> float:
    """The median of many measured batches of calls, in microseconds of CPU a call."""
    call()
    start = time.process_time()
    call()
    batch = max(1, int(0.005 / max(time.process_time() - start, 1e-6)))
    taken = []
    for _ in range(15):
        start = time.process_time()
        for _ in range(batch):
            call()
        taken.append((time.process_time() - start) / batch * 1e6)
    return statistics.median(taken)


def cel_cases() -> dict[str, Callable[[], object]]:
    """Compile and evaluate of three expressions over typed values."""
    (scale, of_scale, scaled), (matches, of_items, items) = cel_packages.CASES
    cases: dict[str, Callable[[], object]] = {}
    for name, source, schema, value in (
        ("of three numbers", scale, of_scale, scaled),
        ("of 100 names with a pattern", matches, of_items, items),
        ("of 100 names in three loops", LONG, of_items, items),
    ):
        compiling, evaluating = cel_packages.ours(source, schema, value)
        cases[f"CEL compile, an expression {name}"] = compiling
        cases[f"CEL evaluate, an expression {name}"] = evaluating
    return cases


def schema_cases() -> dict[str, Callable[[], object]]:
    """What schemas ask of a custom resource of 2 KB, and the types of a Deployment."""
    custom, obj = compile_custom(schemas.SCHEMA), schemas.custom_resource(7)
    custom.default(obj)
    wrong = {**obj, "spec": {**obj["spec"], "replicas": -1}}
    definitions = json.loads((schemas.ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    deployments = compile_builtin("io.k8s.api.apps.v1.Deployment", definitions)
    return {
        "validation of a custom resource": lambda: custom.validate(obj),
        "validation of a custom resource with a fault": lambda: custom.validate(wrong),
        "decoding of a Deployment": lambda: deployments.read(schemas.DEPLOYMENT),
    }


def merge_cases() -> dict[str, Callable[[], object]]:
    """Writes of a Pod of three containers."""
    timed = merge.operations(package_types("kubernetes_api"), merge.pod())
    names = {
        "create": "SSA, create of a Pod",
        "apply": "SSA, first apply of a Pod",
        "apply changed": "SSA, apply of a Pod that changes",
        "update": "SSA, update of a Pod",
        "strategic apply": "strategic merge patch of a Pod",
        "three-way": "three-way patch of a Pod",
    }
    return {words: timed[name] for name, words in names.items()}


if __name__ == "__main__":
    gc.disable()
    cases = {**cel_cases(), **merge_cases(), **schema_cases()}
    print(json.dumps({name: median(call) for name, call in cases.items()}))
