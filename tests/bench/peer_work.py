"""The same work by this package and by the other Python packages that are installed: microseconds of CPU, by turns."""

from __future__ import annotations

import copy
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench import cel_packages, merge, schemas
from tests.bench.measuring import installed

TURNS = 9
Work = Callable[[], object]


def measured() -> Iterator[tuple[str, float, float]]:
    """What is done and by whom, and the microseconds of ours and theirs."""
    for label, ours, theirs in pairs():
        works = (ours, theirs)
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(TURNS + 1):
            for work, taken in zip(works, times, strict=True):
                took = _cpu(work)
                if turn:
                    taken.append(took)
        yield label, statistics.median(times[0]), statistics.median(times[1])


def _cpu(work: Work) -> float:
    """Microseconds of CPU of one call, by as many calls as take 20 ms."""
    calls, start = 0, time.process_time()
    while (took := time.process_time() - start) < 0.02:
        work()
        calls += 1
    return took / calls * 1e6


def pairs() -> Iterator[tuple[str, Work, Work]]:
    """The work of each line, by peers that are installed."""
    if installed("jsonschema"):
        yield _custom_resource()
    if installed("kubernetes_validate"):
        yield _deployment()
    if installed("kubernetes"):
        yield _pods()
    if installed("jsonpatch"):
        yield _json_patch()
    yield from _expressions()


def _custom_resource() -> tuple[str, Work, Work]:
    from jsonschema import Draft7Validator

    from apimachinery.schema.custom import compile_custom

    compiled, obj = compile_custom(schemas.SCHEMA), schemas.custom_resource(7)
    compiled.prune(obj)
    compiled.default(obj)
    validator = Draft7Validator(schemas.SCHEMA)
    return (
        "a custom resource of 2 KB: jsonschema",
        lambda: compiled.validate(obj),
        lambda: list(validator.iter_errors(obj)),
    )


def _deployment() -> tuple[str, Work, Work]:
    import kubernetes_validate

    from apimachinery.schema.builtin import compile_builtin

    definitions = json.loads((schemas.ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    compiled = compile_builtin("io.k8s.api.apps.v1.Deployment", definitions)
    return (
        "types of a Deployment: kubernetes-validate",
        lambda: compiled.read(schemas.DEPLOYMENT),
        lambda: kubernetes_validate.validate(schemas.DEPLOYMENT, "1.36", strict=True),
    )


def _pods() -> tuple[str, Work, Work]:
    import msgspec
    from kubernetes.client import ApiClient
    from tests.bench.bench_models import pod_list

    from kubernetes_api.core_v1 import PodList

    data = json.dumps(pod_list(100)).encode()
    decode = msgspec.json.Decoder(PodList).decode
    client, text = ApiClient(), data.decode()
    return (
        "100 Pods as typed objects: kubernetes",
        lambda: decode(data),
        lambda: client.deserialize(text, "V1PodList", "application/json"),
    )


def _json_patch() -> tuple[str, Work, Work]:
    import jsonpatch

    from apimachinery.merge import json_patch

    pod = merge.pod()
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/spec/containers/0/name", "value": "c0"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "other:1"},
        {"op": "add", "path": "/metadata/labels/new", "value": "yes"},
        {"op": "remove", "path": "/spec/containers/2"},
    ]
    return (
        "a JSON patch of a Pod: jsonpatch",
        lambda: json_patch.apply(copy.copy(pod), patch),
        lambda: jsonpatch.apply_patch(pod, patch),
    )


def _expressions() -> Iterator[tuple[str, Work, Work]]:
    for source, schema, value in cel_packages.CASES:
        own = cel_packages.ours(source, schema, value)
        for name, make in cel_packages.PACKAGES.items():
            if name.startswith("ours"):
                continue
            try:
                pair = make(source, schema, value)
                pair[1]()
            except Exception:
                continue  # not installed, or cannot run this
            for word, ours, theirs in zip(("compile", "evaluate"), own, pair, strict=True):
                yield f"CEL {word} {source[:18]}…: {name}", ours, theirs
