"""Definitions that change below their objects: what was stored by the schema of before is read by the one of today, as
kube-apiserver 1.36 reads it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.test_api import CRDS, MERGE, ask, run, until

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

THINGS = "/apis/changed.example.com/v1/things"
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
TYPE = {"apiVersion": "v1", "kind": "X"}


def definition(spec: dict[str, Any], **version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec, "status": FREE}}
    shared = {"served": True, "schema": {"openAPIV3Schema": schema}, **version}
    versions = [{"name": name, "storage": name == "v1", **shared} for name in ("v1", "v2")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.changed.example.com"},
        "spec": {
            "group": "changed.example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": versions,
        },
    }


def thing(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "changed.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        **fields,
    }


async def change(api: AssembledApi, new: dict[str, Any], path: str) -> None:
    """Changes the definition, and waits until what is at a path is answered otherwise."""
    where = f"{CRDS}/things.changed.example.com"
    _, live, _ = await ask(api, "GET", where)
    new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    before = await ask(api, "GET", path)
    assert (await ask(api, "PUT", where, new))[0] == 200
    async with asyncio.timeout(60):
        while (await ask(api, "GET", path))[:2] == before[:2]:
            await asyncio.sleep(0.01)


EMBEDDED: list[tuple[Any, Any]] = [
    ({"metadata": {"labels": ["a"]}}, {**TYPE, "metadata": {}}),
    ({"metadata": {"labels": {"a": 1}}}, {**TYPE, "metadata": {}}),
    ({"metadata": {"labels": {"a": None}}}, {**TYPE, "metadata": {"labels": {"a": ""}}}),
    ({"metadata": {"annotations": "x", "name": "b"}}, {**TYPE, "metadata": {"name": "b"}}),
    ({"metadata": {"finalizers": 5}}, {**TYPE, "metadata": {}}),
    ({"metadata": {"finalizers": ["a", 5, None]}}, {**TYPE, "metadata": {}}),
    ({"metadata": {"finalizers": [None]}}, {**TYPE, "metadata": {"finalizers": [""]}}),
    ({"metadata": {"ownerReferences": {"a": 1}}}, {**TYPE, "metadata": {}}),
    ({"metadata": {"ownerReferences": [None, 3]}}, {**TYPE, "metadata": {}}),
    (
        {"metadata": {"name": 7, "generation": "a", "creationTimestamp": "yesterday"}},
        {**TYPE, "metadata": {}},
    ),
    ({"metadata": {"managedFields": [5], "foo": 1}}, {**TYPE, "metadata": {}}),
    ({"metadata": None}, {**TYPE, "metadata": {}}),
    ({"kind": 5, "apiVersion": [1]}, {}),
    # kube-apiserver can neither show, list nor delete these any more, nor their definition.
    ({"metadata": [1]}, TYPE),
    ({"metadata": "x"}, TYPE),
]


def test_what_becomes_an_embedded_resource_loses_what_cannot_be_decoded() -> None:
    async def story(api: AssembledApi) -> None:
        spec: dict[str, Any] = {"type": "object", "properties": {"t": FREE}}
        assert (await ask(api, "POST", CRDS, definition(spec)))[0] == 201
        await until(api, THINGS, 200)
        for number, (stored, _) in enumerate(EMBEDDED):
            sent = thing(f"t{number:02}", spec={"t": {**TYPE, **stored}})
            assert (await ask(api, "POST", THINGS, sent))[0] == 201
        spec["properties"]["t"] = {**FREE, "x-kubernetes-embedded-resource": True}
        await change(api, definition(spec), f"{THINGS}/t00")
        shown = [each for _, each in EMBEDDED]
        for path in (THINGS, THINGS.replace("v1", "v2")):
            code, listed, _ = await ask(api, "GET", path)
            assert (code, [each["spec"]["t"] for each in listed["items"]]) == (200, shown)
            assert (await ask(api, "GET", path, headers=TABLE))[0] == 200
        for number, expected in enumerate(shown):
            path = f"{THINGS}/t{number:02}"
            patch = {"metadata": {"labels": {"a": "b"}}}
            code, made, _ = await ask(api, "PATCH", path, patch, MERGE)
            if expected and not expected.get("metadata", {}).get("finalizers"):
                assert (code, made["spec"]["t"]) == (200, expected)
            else:  # both names are needed, and a finalizer has a name
                assert code == 422
            assert (await ask(api, "DELETE", path))[0] == 200

    run(story, ApiOptions(controllers=frozenset({"crds"})))


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        (
            {"n": {}},
            {},
            ".spec.n accessor error: map[] is of the type map[string]interface {}, expected int64",
        ),
        ({"n": [0, "a"]}, {}, ".spec.n accessor error: [0 a] is of the type []interface {}, expected int64"),
        ({"n": "5"}, {}, ".spec.n accessor error: 5 is of the type string, expected int64"),
        ({"n": 1}, {"n": "5"}, ".status.n accessor error: 5 is of the type string, expected int64"),
        ({}, {"n": True}, ".status.n accessor error: true is of the type bool, expected int64"),
        (
            {"n": 1},
            {"s": [7]},
            ".status.s accessor error: [7] is of the type []interface {}, expected string",
        ),
    ],
)
def test_a_scale_of_values_of_other_types_is_500(spec: Any, status: Any, text: str) -> None:
    async def story(api: AssembledApi) -> None:
        assert (await ask(api, "POST", CRDS, definition(FREE)))[0] == 201
        await until(api, THINGS, 200)
        assert (await ask(api, "POST", THINGS, thing("a", spec=spec, status=status)))[0] == 201
        paths = {
            "specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n",
            "labelSelectorPath": ".status.s",
        }
        await change(api, definition(FREE, subresources={"scale": paths}), f"{THINGS}/a/scale")
        patch = {"spec": {"replicas": 3}}
        for method, body, headers in (("GET", None, None), ("PATCH", patch, MERGE)):
            code, answer, _ = await ask(api, method, f"{THINGS}/a/scale", body, headers)
            assert (code, answer["message"]) == (500, text)
            assert "reason" not in answer

    run(story, ApiOptions(controllers=frozenset({"crds"})))
