"""CEL here and in the other Python packages, in one run: compile and evaluate three expressions.

    python -m tests.bench.cel_packages

Prints medians of compilations and evaluations a second, and each package's ratio to the fastest. Packages that
are not installed, or cannot run an expression, are left out of its table. The third case needs ../shared.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.cel.values import types as t

SHARED = Path(__file__).parents[2] / "../shared"
INTEGER = {"type": "integer"}
SCALE = {"type": "object", "properties": dict.fromkeys(("minReplicas", "replicas", "maxReplicas"), INTEGER)}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
ITEMS = {"type": "object", "properties": {"items": {"type": "array", "items": NAMED}}}
CASES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
        SCALE,
        {"minReplicas": 1, "replicas": 3, "maxReplicas": 5},
    ),
    (
        "self.items.all(x, x.name.matches('^[a-z]+$'))",
        ITEMS,
        {"items": [{"name": "abcdef"} for _ in range(100)]},
    ),
]
# compile and evaluate, each a function of nothing
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def ours(source: str, schema: dict[str, Any], value: Any) -> Pair:
    """This package, typed by a schema, counting costs."""
    types = SchemaTypes(schema)
    assert types.root is not None
    env = Environment.kubernetes("1.36").extend(variables={"self": types.root.type}, provider=types)
    program = env.compile(source)
    return lambda: env.compile(source), lambda: program.evaluate({"self": value})


def ours_untyped(source: str, schema: dict[str, Any], value: Any) -> Pair:
    """This package without types, as the others run."""
    env = Environment.kubernetes("1.36").extend(variables={"self": t.DYN})
    program = env.compile(source)
    return lambda: env.compile(source), lambda: program.evaluate({"self": value})


def google(source: str, schema: dict[str, Any], value: Any) -> Pair:
    """cel-expr-python: Google's C++."""
    from cel_expr_python import cel  # type: ignore[import-untyped]

    env = cel.NewEnv(variables={"self": cel.Type.DYN})
    program = env.compile(source)
    return lambda: env.compile(source), lambda: program.eval(data={"self": value}).value()


def rust(source: str, schema: dict[str, Any], value: Any) -> Pair:
    """common-expression-language: a Rust interpreter."""
    import cel

    program = cel.compile(source)
    return lambda: cel.compile(source), lambda: program.execute({"self": value})


def celpy(source: str, schema: dict[str, Any], value: Any) -> Pair:
    """cel-python."""
    import celpy as package
    from celpy.adapter import json_to_cel

    env = package.Environment()
    program = env.program(env.compile(source))
    bound = {"self": json_to_cel(value)}
    return lambda: env.program(env.compile(source)), lambda: program.evaluate(bound)


PACKAGES: dict[str, Callable[[str, dict[str, Any], Any], Pair]] = {
    "ours, typed": ours,
    "ours, untyped": ours_untyped,
    "cel-expr-python": google,
    "common-expression-language": rust,
    "cel-python": celpy,
}


def rate(function: Callable[[], Any], seconds: float = 0.3) -> float:
    """The median of five measured rates, in calls a second."""
    start = time.perf_counter()
    function()
    batch = max(1, int(0.02 / max(time.perf_counter() - start, 1e-7)))
    rates = []
    for _ in range(5):
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / 5:
            for _ in range(batch):
                function()
            calls += batch
        rates.append(calls / (time.perf_counter() - start))
    return statistics.median(rates)


def table(title: str, rows: dict[str, tuple[float, float]]) -> None:
    """Print one case."""
    print(f"\n{title}")
    best = [max(row[i] for row in rows.values()) for i in (0, 1)]
    for name, (compiles, runs) in rows.items():
        print(
            f"  {name:28} compile {compiles:12,.0f}/s ({best[0] / compiles:5.1f}x)   "
            f"evaluate {runs:12,.0f}/s ({best[1] / runs:5.1f}x)"
        )


def route() -> None:
    """All rules of gateway-api's HTTPRoute on a route."""
    import yaml

    path = SHARED / "data/crds/gateway-api/httproutes.gateway.networking.k8s.io.yaml"
    if not path.exists():
        print("\nHTTPRoute: the ../shared folder is absent")
        return
    document = next(d for d in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if d)
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    matches = [{"path": {"type": "PathPrefix", "value": f"/api/{i}"}, "method": "GET"} for i in range(4)]
    rule = {
        "matches": matches,
        "filters": [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}
        ],
        "backendRefs": [{"name": "svc", "port": 80, "kind": "Service", "group": "", "weight": 1}],
    }
    value = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r"},
        "spec": {
            "parentRefs": [{"name": "gw", "kind": "Gateway", "group": "g", "sectionName": "a"}],
            "hostnames": ["a.example.com"],
            "rules": [rule] * 4,
        },
    }
    rules = compile_rules(schema)
    outcome = rules.validate(value)
    compiles, runs = rate(lambda: compile_rules(schema)), rate(lambda: rules.validate(value))
    print(
        f"\nall rules of HTTPRoute on a route of 4 rules ({len(outcome.violations)} violations, cost {outcome.cost})"
    )
    print(f"  ours                         compile {compiles:12,.1f}/s            evaluate {runs:12,.0f}/s")


def main() -> int:
    """Run all."""
    warnings.simplefilter("ignore")
    for source, schema, value in CASES:
        rows = {}
        for name, make in PACKAGES.items():
            try:
                compiles, runs = make(source, schema, value)
                assert runs() in (True, 1) or bool(runs())
            except Exception as error:
                print(f"  ({name}: {type(error).__name__}: {error})", file=sys.stderr)
                continue
            rows[name] = (rate(compiles), rate(runs))
        table(source, rows)
    route()
    return 0


if __name__ == "__main__":
    sys.exit(main())
