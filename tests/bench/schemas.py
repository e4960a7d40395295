"""Schema logic, timed: what pruning, defaulting and validating cost beside decoding the same bytes.

    PYTHONPATH=generator:generated python tests/bench/schemas.py [--quick] [--json FILE]

Every number is the median of rounds that take turns, in microseconds, so that a busy machine slows all alike;
ratios are to the faster of msgspec and orjson. Objects: a 2 KB custom resource of an example schema (every string
new in each round, and again the same strings), a Deployment, a 190 KB CRD (of the ../shared folder, where it is
there). At the end the same custom resource through jsonschema and a Deployment through kubernetes-validate.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from tests.bench.measuring import installed

from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import compile_custom
from apimachinery.wire.strict import has_duplicate_fields

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
                "image": {"type": "string", "minLength": 1},
                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
                "policy": {"type": "string", "enum": ["Always", "OnFailure"], "default": "Always"},
                "paused": {"type": "boolean", "default": False},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "name": {
                                "type": "string",
                                "maxLength": 63,
                                "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
                            },
                            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                            "protocol": {"type": "string", "default": "TCP"},
                            "target": {"x-kubernetes-int-or-string": True},
                        },
                    },
                },
                "rules": {
                    "type": "array",
                    "maxItems": 64,
                    "items": {
                        "type": "object",
                        "properties": {
                            "host": {"type": "string", "maxLength": 253},
                            "path": {"type": "string", "default": "/"},
                            "weight": {"type": "integer", "default": 100},
                            "headers": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                                },
                            },
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {
                            "type": {"type": "string", "maxLength": 316},
                            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                            "reason": {"type": "string"},
                            "message": {"type": "string", "maxLength": 32768},
                            "lastTransitionTime": {"type": "string", "format": "date-time"},
                        },
                    },
                },
            },
        },
    },
}


def custom_resource(seed: int) -> Json:
    """A valid object of about 2 KB without any default filled in; its names hang on the seed."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": f"app-{seed}", "namespace": "default", "labels": {"app": f"app-{seed}"}},
        "spec": {
            "image": f"registry.example.com/team/app:{seed}",
            "replicas": seed % 50,
            "labels": {f"key{i}": f"value-{seed}-{i}" for i in range(6)},
            "ports": [{"name": f"p{seed}-{i}", "port": 8000 + i, "target": "http"} for i in range(5)],
            "rules": [
                {
                    "host": f"h{seed}-{i}.example.com",
                    "weight": 10,
                    "headers": [{"name": f"x-{seed}-{j}", "value": "yes"} for j in range(2)],
                }
                for i in range(6)
            ],
            "free": {"a": [1, 2, {"b": None}], "c": "d"},
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "reason": "AsExpected",
                    "message": f"{kind} since generation {seed}",
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                }
                for kind in ("Ready", "Available", "Progressing")
            ],
        },
    }


DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": f"c{i}",
                        "image": "nginx:1.27",
                        "ports": [{"containerPort": 8080 + i, "name": "http"}],
                        "env": [{"name": f"E{j}", "value": "v"} for j in range(6)],
                        "resources": {
                            "limits": {"cpu": "500m", "memory": "128Mi"},
                            "requests": {"cpu": "10m"},
                        },
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                    }
                    for i in range(3)
                ]
            },
        },
    },
}


def median_times(works: dict[str, Callable[[], Any]], rounds: int, each: int) -> dict[str, float]:
    """The median time of one call of every work, in microseconds; the works take turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            for _ in range(each):
                work()
            times[name].append((time.perf_counter() - start) / each * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def report(title: str, size: int, times: dict[str, float], results: dict[str, Any]) -> None:
    decode = min(taken for name, taken in times.items() if name.endswith(" decode"))
    print(f"\n{title}, {size:,} bytes")
    for name, value in times.items():
        print(f"  {name:34} {value:10.1f} us  {value / decode:8.2f} x decode")
    results[title] = {name: round(value / decode, 3) for name, value in times.items()}


def decoders(data: bytes) -> dict[str, Callable[[], Any]]:
    out: dict[str, Callable[[], Any]] = {"msgspec decode": lambda: msgspec.json.decode(data)}
    if installed("orjson"):
        import orjson

        out["orjson decode"] = lambda: orjson.loads(data)
    return out


def bench_custom(rounds: int, each: int, results: dict[str, Any]) -> None:
    compiled = compile_custom(SCHEMA)
    obj = custom_resource(7)
    data = msgspec.json.encode(obj)
    settled = copy.deepcopy(obj)
    compiled.prune(settled)
    compiled.default(settled)
    fresh = itertools.cycle([msgspec.json.encode(custom_resource(1000 + i)) for i in range(500)])
    once = itertools.cycle([data])

    def through(stream: Iterator[bytes]) -> Callable[[], Any]:
        def work() -> None:
            value = msgspec.json.decode(next(stream))
            assert not compiled.prune(value)
            compiled.default(value)
            assert not compiled.validate(value)

        return work

    works = decoders(data) | {
        "duplicate fields": lambda: has_duplicate_fields(data, obj),
        "prune": lambda: compiled.prune(settled),
        "default": lambda: compiled.default(settled),
        "validate": lambda: compiled.validate(settled),
        "decode and all, the same strings": through(once),
        "decode and all, new strings": through(fresh),
    }
    report("custom resource", len(data), median_times(works, rounds, each), results)
    bench_jsonschema(settled, compiled, rounds, results)


def bench_jsonschema(obj: Json, compiled: Any, rounds: int, results: dict[str, Any]) -> None:
    from jsonschema import Draft7Validator

    validator = Draft7Validator(SCHEMA)
    works: dict[str, Callable[[], Any]] = {
        "ours": lambda: compiled.validate(obj),
        "jsonschema": lambda: list(validator.iter_errors(obj)),
    }
    times = median_times(works, rounds, 20)
    factor = times["jsonschema"] / times["ours"]
    print(
        f"  validate against jsonschema: {times['ours']:.1f} us to {times['jsonschema']:.1f} us, {factor:.0f} x"
    )
    results["jsonschema factor"] = round(factor, 1)


def bench_deployment(rounds: int, each: int, results: dict[str, Any]) -> None:
    definitions = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    compiled = compile_builtin("io.k8s.api.apps.v1.Deployment", definitions)
    data = msgspec.json.encode(DEPLOYMENT)

    def fits() -> None:
        assert compiled.read(DEPLOYMENT) == (None, [])

    works = decoders(data) | {"types and unknown fields": fits}
    report("Deployment", len(data), median_times(works, rounds, each), results)
    import kubernetes_validate

    against: dict[str, Callable[[], Any]] = {
        "ours": fits,
        "kubernetes-validate": lambda: kubernetes_validate.validate(DEPLOYMENT, "1.36", strict=True),
    }
    kubernetes_validate.validate(DEPLOYMENT, "1.36", strict=True)
    times = median_times(against, max(3, rounds // 3), 1)
    ours, theirs = times["ours"], times["kubernetes-validate"]
    factor = theirs / ours
    print(f"  against kubernetes-validate: {ours:.1f} us to {theirs:.0f} us, {factor:.0f} x")
    results["kubernetes-validate factor"] = round(factor, 1)


def bench_crd(rounds: int, results: dict[str, Any]) -> None:
    import yaml

    path = ROOT / "../shared/data/crds/external-secrets/secretstores.external-secrets.io.yaml"
    if not path.exists():
        print("\nCRD: the ../shared folder is not there")
        return
    definitions = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    compiled = compile_builtin(name, definitions)
    crd = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    crd.pop("status", None)
    default_crd(crd)
    prepare_crd_for_create(crd)
    data = msgspec.json.encode(crd)

    def fits() -> None:
        assert compiled.read(crd) == (None, [])

    works = decoders(data) | {
        "types and unknown fields": fits,
        "every rule of CRDs": lambda: check_crd(crd),
    }
    report("CRD", len(data), median_times(works, max(3, rounds // 3), 1), results)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run at all")
    parser.add_argument("--json", type=Path, help="write the ratios to FILE")
    options = parser.parse_args()
    rounds, each = (3, 50) if options.quick else (15, 300)
    results: dict[str, Any] = {}
    bench_custom(rounds, each, results)
    bench_deployment(rounds, each, results)
    bench_crd(rounds, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
