"""Numbers of custom resources as Go writes them, defaults of a status nobody may set, versions in dry runs, patterns
that are large: as kube-apiserver 1.36 answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.schema.test_pattern_verdicts import IN_NO_SET, LARGE
from tests.server.test_api import CRDS, CUPS, AssembledApi, ask, define, run

from apimachinery.http.messages import Request

MERGE, PATCH, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "i": {"type": "integer"},
                "n": {"type": "number"},
                "s": {"x-kubernetes-int-or-string": True},
                "u": {"x-kubernetes-preserve-unknown-fields": True},
                "d": {"type": "number", "default": 4.0},
                "host": {"type": "string", "pattern": IN_NO_SET},
                "word": {"type": "string", "pattern": LARGE},
            },
        },
        "status": {
            "type": "object",
            "default": {"observedGeneration": -1},
            "properties": {"observedGeneration": {"type": "integer"}},
        },
    },
}


def definition(schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"kind": "Cup", "plural": "cups"},
            "versions": [version],
        },
    }


async def send(api: AssembledApi, method: str, path: str, body: str, media: str = "application/json") -> Any:
    where, _, query = path.partition("?")
    answer = await api.handle(Request(method, where, query, {"content-type": media}, body.encode()))
    return answer.status, answer.body.decode()


def cup(spec: str, more: str = "") -> str:
    return f'{{"apiVersion":"x.io/v1","kind":"Cup","metadata":{{"name":"c"{more}}},"spec":{{{spec}}}}}'


SHOWN = [
    ("3.0", "3"),
    ("1e3", "1000"),
    ("1E3", "1000"),
    ("15.0e-1", "1.5"),
    ("3.10", "3.1"),
    ("1e20", "100000000000000000000"),
    ("1e21", "1e+21"),
    ("1e-7", "1e-7"),
    ("9223372036854775807", "9223372036854775807"),
    ("9223372036854775808", "9223372036854776000"),
    ("123456789012345678901", "123456789012345680000"),
    ("9007199254740993.0", "9007199254740992"),
    ('"a:1.0,[2.0"', '"a:1.0,[2.0"'),
]


def test_numbers_are_stored_as_go_writes_them() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        for sent, shown in SHOWN:
            for path in (CUPS + "?dryRun=All", CUPS):
                status, body = await send(api, "POST", path, cup(f'"u":{{"a":[{sent}]}},"n":3.0'))
                assert status == 201, body
                assert f'"u":{{"a":[{shown}]}}' in body and '"n":3,' in body and '"d":4' in body
            assert f'"u":{{"a":[{shown}]}}' in (await send(api, "GET", f"{CUPS}/c", ""))[1]
            await ask(api, "DELETE", f"{CUPS}/c")
        for field, sent, status in (
            ("i", "3.0", 201),
            ("i", "3.1", 422),
            ("i", "1e18", 422),
            ("s", "2.0", 201),
        ):
            assert (await send(api, "POST", CUPS + "?dryRun=All", cup(f'"{field}":{sent}')))[0] == status
        assert '"default":4}' in (await send(api, "GET", f"{CRDS}/cups.x.io", ""))[1]

    run(story)


def test_a_double_is_another_value_than_the_integer_it_is_stored_as() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        await send(api, "POST", CUPS, cup('"n":3,"d":4'))
        for media, body, generation in (
            (MERGE, '{"spec":{"n":3.0}}', 2),
            (PATCH, '[{"op":"replace","path":"/spec/n","value":3.0}]', 3),
            (PATCH, '[{"op":"test","path":"/spec/n","value":3}]', 3),
            (MERGE, '{"spec":{"n":3}}', 3),
        ):
            status, text = await send(api, "PATCH", f"{CUPS}/c", body, media)
            answer = json.loads(text)
            assert (status, answer["metadata"]["generation"], answer["spec"]["n"]) == (200, generation, 3)
        test = '[{"op":"test","path":"/spec/n","value":3.0}]'
        assert (await send(api, "PATCH", f"{CUPS}/c", test, PATCH))[0] == 422
        applied = await send(api, "PATCH", f"{CUPS}/c?fieldManager=a", cup('"n":3.0'), APPLY)
        assert (applied[0], json.loads(applied[1])["metadata"]["generation"]) == (200, 3)
        replaced = cup(
            '"n":3.0,"d":4', f',"resourceVersion":"{json.loads(applied[1])["metadata"]["resourceVersion"]}"'
        )
        status, text = await send(api, "PUT", f"{CUPS}/c", replaced)
        assert (status, json.loads(text)["metadata"]["generation"]) == (200, 4)

    run(story)


def test_a_status_that_its_creator_cannot_set_gets_its_default() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        asked = cup('"n":1').replace('"spec"', '"status":{"observedGeneration":5},"spec"')
        status, text = await send(api, "POST", CUPS, asked)
        made = json.loads(text)
        assert (status, made["status"]) == (201, {"observedGeneration": -1})
        assert "f:status" not in made["metadata"]["managedFields"][0]["fieldsV1"]
        assert json.loads((await send(api, "GET", f"{CUPS}/c", ""))[1]) == made
        await ask(api, "DELETE", f"{CUPS}/c")
        applied = await send(api, "PATCH", f"{CUPS}/c?fieldManager=a", cup('"n":1'), APPLY)
        assert (applied[0], json.loads(applied[1])["status"]) == (201, {"observedGeneration": -1})

    run(story)


@pytest.mark.parametrize(("spec", "owned"), [('"x"', 0), ('{"n":"s"}', 0), ("null", 2), ('{"i":1.5}', 2)])
def test_ownership_is_lost_with_a_status_whose_spec_fits_no_schema(spec: str, owned: int) -> None:
    """kube-apiserver's way too: it reads the whole object before it leaves the spec alone."""

    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        made = json.loads((await send(api, "POST", CUPS, cup('"n":1')))[1])
        version = made["metadata"]["resourceVersion"]
        body = cup("", f',"resourceVersion":"{version}"').replace(
            '"spec":{}', f'"spec":{spec},"status":{{"observedGeneration":2}}'
        )
        status, text = await send(api, "PUT", f"{CUPS}/c/status", body)
        found = json.loads(text)
        assert (status, found["spec"]) == (200, made["spec"])
        assert len(found["metadata"].get("managedFields", ())) == owned

    run(story)


def test_a_large_pattern_is_taken_and_objects_are_checked() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        for spec, wanted in (
            ('"host":"a.example.org","word":"é"', 201),
            ('"host":"日本.example.org","word":"日本"', 201),
            ('"host":"-a.example.org"', 422),
            ('"word":"1"', 422),
            ('"word":"日本1"', 422),
        ):
            status, body = await send(api, "POST", CUPS + "?dryRun=All", cup(spec))
            assert status == wanted, body

    run(story)


@pytest.mark.parametrize(
    ("version", "created", "applied"),
    [("1", 201, 201), ("0", 201, 201), ("x", 201, 500), ("9" * 23, 201, 500), ("", 201, 201)],
)
def test_a_dry_run_does_not_ask_storage_about_versions(version: str, created: int, applied: int) -> None:
    async def story(api: AssembledApi) -> None:
        maps = "/api/v1/namespaces/default/configmaps"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": version},
        }
        status, shown, _ = await ask(api, "POST", maps + "?dryRun=All", body)
        assert (status, shown["metadata"].get("resourceVersion", "")) == (created, version)
        path = f"{maps}/a?dryRun=All&fieldManager=b"
        status, shown, _ = await ask(api, "PATCH", path, body, {"content-type": APPLY})
        assert status == applied
        if applied == 201:
            assert shown["metadata"].get("resourceVersion", "") == version
        assert (await ask(api, "GET", f"{maps}/a"))[0] == 404

    run(story)
