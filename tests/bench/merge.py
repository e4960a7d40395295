"""Merging, timed: create, update, apply and patches on objects from 3 KB to 380 KB, and set operations.

    PYTHONPATH=generator:generated python tests/bench/merge.py [--quick] [--json FILE]

Each number is the median of several rounds, in milliseconds. Beside the numbers for which Go's
structured-merge-diff is known (measured on a machine of this kind) stands the ratio to it. The last table shows
cost per byte on lists 1, 10 and 100 times as long: it should not grow.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apimachinery.merge import field_set, strategic, strategic_diff
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.merge.package import package_types

Json = Any
NOW = "2026-01-01T00:00:00Z"
GO = {
    ("pod 3 KB", "create"): 0.07,
    ("pod 3 KB", "apply"): 0.26,
    ("pod 3 KB", "apply twice"): 0.56,
    ("pod 3 KB", "update"): 0.17,
    ("crd 190 KB", "apply"): 1.3,
    ("crd 190 KB", "update"): 1.7,
}


def pod() -> Json:
    containers = [
        {
            "name": f"c{i}",
            "image": f"registry.example.com/team/app-{i}:1.2.{i}",
            "args": ["--verbose", "--port=8080"],
            "env": [{"name": f"VARIABLE_{j}", "value": f"value-{j}"} for j in range(6)],
            "ports": [{"containerPort": 8080 + i, "protocol": "TCP", "name": f"p{i}"}],
            "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "100m", "memory": "64Mi"},
            },
            "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/tmp"}],
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "livenessProbe": {
                "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
                "periodSeconds": 10,
            },
        }
        for i in range(3)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "n",
            "labels": {"app": "a", "tier": "b"},
            "annotations": {"x": "y"},
        },
        "spec": {
            "containers": containers,
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    }


def node() -> Json:
    conditions = [
        {"type": f"Condition{i}", "status": "False", "reason": "KubeletHasNo", "message": "m" * 60}
        for i in range(6)
    ]
    images = [
        {"names": [f"registry.example.com/image-{i}@sha256:{i:064d}"], "sizeBytes": i * 999}
        for i in range(70)
    ]
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {f"example.com/label-{i}": str(i) for i in range(20)}},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "cloud:///zone/i-123"},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": "n"},
            ],
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions,
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "kernelVersion": "6.1",
                "osImage": "Linux",
                "machineID": "m" * 32,
            },
        },
    }


def endpoints() -> Json:
    addresses = [
        {
            "ip": f"10.{i // 65536}.{i // 256 % 256}.{i % 256}",
            "nodeName": f"node-{i}",
            "targetRef": {"kind": "Pod", "namespace": "n", "name": f"pod-{i}", "uid": f"{i:08d}-uid"},
        }
        for i in range(1600)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "e", "labels": {"a": "b"}},
        "subsets": [{"addresses": addresses, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}],
    }


def crd() -> Json:
    def part(depth: int, count: int) -> Json:
        properties: Json = {
            f"field{i}": {
                "type": "string",
                "description": "What this field means, in a sentence or two of prose. " * 2,
            }
            for i in range(count)
        }
        if depth:
            properties["inner"] = part(depth - 1, count)
            properties["list"] = {
                "type": "array",
                "items": part(depth - 1, count),
                "x-kubernetes-list-type": "atomic",
            }
        return {
            "type": "object",
            "description": "An object of the kind that specs are full of.",
            "properties": properties,
        }

    schema = {"type": "object", "properties": {"spec": part(5, 16), "status": part(2, 16)}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com", "labels": {"a": "b"}},
        "spec": {
            "group": "example.com",
            "names": names,
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": False,
                    "schema": {"openAPIV3Schema": part(2, 10)},
                },
            ],
        },
    }


RULES_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "from": {
                                "type": "array",
                                "items": {"type": "string"},
                                "x-kubernetes-list-type": "set",
                            },
                            "ports": {"type": "array", "items": {"type": "integer"}},
                            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                            "weight": {"type": "integer"},
                            "note": {"type": "string"},
                        },
                    },
                },
            },
        }
    },
}


def rules(count: int) -> Json:
    items = [
        {
            "name": f"rule-{i}",
            "from": [f"10.0.{i % 256}.0/24", f"10.1.{i % 256}.0/24"],
            "ports": [80, 443, i],
            "labels": {"tier": "web", "number": str(i)},
            "weight": i,
            "note": "why this rule is here, at some length, so that it looks like a real one " * 2,
        }
        for i in range(count)
    ]
    return {
        "apiVersion": "example.com/v1",
        "kind": "Rules",
        "metadata": {"name": "r"},
        "spec": {"rules": items},
    }


class TwoVersions:
    """A resource whose second version is the first by another name."""

    def __init__(self, type_: Any, first: str, second: str) -> None:
        self.type, self.versions = type_, (first, second)

    def type_of(self, api_version: str) -> Any:
        return self.type

    def convert(self, value: Json, api_version: str) -> Json:
        return {**value, "apiVersion": api_version}


def timed(call: Callable[[], object], budget: float) -> float:
    """The median time of a call, in milliseconds."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    inner = max(1, int(0.004 / once))
    rounds = []
    gc.disable()
    try:
        end = time.perf_counter() + budget
        while time.perf_counter() < end or len(rounds) < 5:
            start = time.perf_counter()
            for _ in range(inner):
                call()
            rounds.append((time.perf_counter() - start) / inner * 1000)
    finally:
        gc.enable()
    return statistics.median(rounds)


def touched(obj: Json) -> Json:
    """The object with one leaf, deep in it, changed."""
    obj = copy.deepcopy(obj)
    place = obj
    for step in {
        "Pod": ("spec", "containers", 1, "image"),
        "Node": ("status", "conditions", 3, "status"),
        "Endpoints": ("subsets", 0, "addresses", 800, "ip"),
        "CustomResourceDefinition": (
            *("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties"),
            *("inner", "properties", "inner", "properties", "field3", "description"),
        ),
        "Rules": ("spec", "rules", len(obj.get("spec", {}).get("rules", "")) // 2, "note"),
    }[obj["kind"]]:
        holder, key, place = place, step, place[step]
    holder[key] = "another value"
    return obj


def apiserver(types: MergeTypes, obj: Json) -> tuple[Any, Any]:
    """The merge type and patch type of an object."""
    names = {
        "Pod": "io.k8s.api.core.v1.Pod",
        "Node": "io.k8s.api.core.v1.Node",
        "Endpoints": "io.k8s.api.core.v1.Endpoints",
        "CustomResourceDefinition": (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
        ),
    }
    if obj["kind"] == "Rules":
        return custom_resource(RULES_SCHEMA), None
    name = names[obj["kind"]]
    return types.named(name), types.patch_type(name)


def operations(types: MergeTypes, obj: Json) -> dict[str, Callable[[], object]]:
    type_, patch_type = apiserver(types, obj)
    version = obj["apiVersion"]
    own = FieldOwnership(api_version=version, kind=obj["kind"], type=type_)
    other = f"{version}other"
    two = FieldOwnership(
        api_version=version, kind=obj["kind"], type=type_, converter=TwoVersions(type_, version, other)
    )
    changed = touched(obj)
    created = own.update(None, obj, "creator", now=NOW)
    applied = own.apply(None, obj, "applier", now=NOW)
    both = own.update(applied, {**changed, "metadata": applied["metadata"]}, "updater", now=NOW)
    elsewhere = copy.deepcopy(both)
    for entry in elsewhere["metadata"]["managedFields"]:
        if entry["operation"] == "Apply":
            entry["apiVersion"] = other
    wanted = {**changed, "metadata": {**created["metadata"]}}
    out: dict[str, Callable[[], object]] = {
        "create": lambda: own.update(None, obj, "creator", now=NOW),
        "apply": lambda: own.apply(created, obj, "applier", now=NOW),
        "apply changed": lambda: own.apply(applied, changed, "applier", now=NOW),
        "apply twice": lambda: own.apply(own.apply(None, obj, "a", now=NOW), changed, "a", now=NOW),
        "update": lambda: own.update(created, wanted, "updater", now=NOW),
        "update 2 versions": lambda: two.update(
            elsewhere, {**obj, "metadata": elsewhere["metadata"]}, "u", now=NOW
        ),
    }
    if patch_type is not None:
        patch = strategic_diff.create_two_way(obj, changed, patch_type)
        out["strategic apply"] = lambda: strategic.apply(obj, patch, patch_type)
        out["two-way"] = lambda: strategic_diff.create_two_way(obj, changed, patch_type)
        out["three-way"] = lambda: strategic_diff.create_three_way(obj, changed, obj, patch_type)
    return out


def sets(budget: float) -> dict[str, dict[int, float]]:
    out: dict[str, dict[int, float]] = {}
    for size in (20, 50, 100, 200, 500, 1000):
        a = field_set.from_paths([("spec", f"part{i % 20}", f"field{i}") for i in range(size)])
        b = field_set.from_paths(
            [("spec", f"part{i % 20}", f"field{i}") for i in range(size // 2, size * 3 // 2)]
        )
        for name in ("union", "intersection", "difference", "recursive_difference", "leaves"):
            call = getattr(field_set, name)
            run = (lambda c=call, x=a: c(x)) if name == "leaves" else (lambda c=call, x=a, y=b: c(x, y))
            out.setdefault(name, {})[size] = timed(run, budget)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    budget = 0.05 if options.quick else 0.4
    types = package_types("kubernetes_api")
    objects = {
        "pod 3 KB": pod(),
        "node 11 KB": node(),
        "endpoints 190 KB": endpoints(),
        "crd 190 KB": crd(),
        "rules 380 KB": rules(1320),
    }
    numbers: dict[str, Any] = {}
    print(f"{'object':<18}{'bytes':>8}  {'operation':<18}{'ms':>9}{'of Go':>8}")
    for title, obj in objects.items():
        size = len(json.dumps(obj, separators=(",", ":")))
        for name, call in operations(types, obj).items():
            took = timed(call, budget)
            go = GO.get((title, name))
            numbers[f"{title}: {name}"] = took
            print(f"{title:<18}{size:>8}  {name:<18}{took:>9.3f}{f'{took / go:.1f}x' if go else '':>8}")
    print("\nset operations, µs by number of members")
    for name, by_size in sets(budget).items():
        numbers[f"set {name}"] = by_size
        print(f"{name:<22}" + "".join(f"{size:>6}:{took * 1000:>8.1f}" for size, took in by_size.items()))
    print("\nnanoseconds a byte, by number of list items")
    for name in ("create", "apply", "apply changed", "update"):
        shown = []
        for count in (50, 500, 5000):
            obj = rules(count)
            size = len(json.dumps(obj, separators=(",", ":")))
            took = timed(operations(types, obj)[name], budget)
            numbers[f"{name} ns a byte, {count} items"] = took * 1e6 / size
            shown.append(f"{count:>6}:{took * 1e6 / size:>7.1f}")
        print(f"{name:<22}" + "".join(shown))
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
