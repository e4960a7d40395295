"""Forms of OpenAPI documents: what ``Accept`` gets, how they are kept, and their protobuf, read without our encoder."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.differential.protobuf import _message

from apimachinery.server.describe.openapi_merge import part_of
from apimachinery.server.describe.openapi_protobuf import encode_v2, encode_v3
from apimachinery.server.describe.openapi_schemas import _published
from kubewright.testing import ApiServer

CRDS = Path(__file__).parents[2] / "specs/backup/crds"
POLICY = "/openapi/v3/apis/policy/v1"
V2, V3 = (f"application/com.github.proto-openapi.spec.{version}.v1.0+protobuf" for version in ("v2", "v3"))
OLD_V2, OLD_V3 = (f"application/com.github.proto-openapi.spec.{v}@v1.0+protobuf" for v in ("v2", "v3"))
JSON = "application/json"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(crds=[CRDS]) as running:
        yield running


def ask(
    server: ApiServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    host = server.url.rpartition("/")[2]
    connection = http.client.HTTPConnection(host, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=sent)
    answer = connection.getresponse()
    found = answer.status, answer.getheaders(), answer.read()
    connection.close()
    return found


def one(headers: list[tuple[str, str]], name: str) -> str:
    """The only field of a name."""
    values = [value for key, value in headers if key.lower() == name]
    assert len(values) <= 1, values
    return values[0] if values else ""


@pytest.mark.parametrize(
    ("path", "accept", "expected"),
    [  # as kube-apiserver 1.36 answers
        (POLICY, "", JSON),
        (POLICY, "*/*", JSON),
        (POLICY, "application/*", JSON),
        (POLICY, f"{JSON};as=Table;g=meta.k8s.io;v=v1", JSON),
        (POLICY, "application/xml, application/json", JSON),
        (POLICY, V3, V3),
        (POLICY, OLD_V3, V3),
        (POLICY, f"{JSON};q=0.1, {V3}", V3),
        (POLICY, V2, None),
        (POLICY, "application/yaml", None),
        (POLICY, "text/html", None),
        (POLICY, "application/vnd.kubernetes.protobuf", None),
        (POLICY, "application/cbor", None),
        ("/openapi/v2", "*/*", JSON),
        ("/openapi/v2", OLD_V2, V2),
        ("/openapi/v2", V3, None),
        ("/openapi/v2", f"{JSON};q=0.1, {V3}", JSON),
        ("/openapi/v2", "application/yaml", None),
        ("/openapi/v2", "garbage", None),
        ("/openapi/v3", "application/yaml", "text/plain; charset=utf-8"),
        ("/openapi/v3", JSON, "text/plain; charset=utf-8"),
    ],
)
def test_the_media_type_that_is_asked_for(
    server: ApiServer, path: str, accept: str, expected: str | None
) -> None:
    status, headers, body = ask(server, path, Accept=accept)
    assert (status, one(headers, "content-type")) == ((200, expected) if expected else (406, ""))
    assert bool(body) is bool(expected)


def test_a_document_with_its_hash_may_be_kept_for_ever(server: ApiServer) -> None:
    index = json.loads(ask(server, "/openapi/v3")[2])["paths"]
    url = index["apis/policy/v1"]["serverRelativeURL"]
    status, headers, _ = ask(server, url)
    # One field: of two, clients heed the first.
    assert (status, one(headers, "cache-control")) == (200, "public, immutable")
    etag = one(headers, "etag")
    assert url.endswith(f"?hash={etag.strip(chr(34))}")
    _, headers, _ = ask(server, POLICY)
    assert one(headers, "cache-control") == "no-cache, private"
    status, headers, body = ask(server, f"{POLICY}?hash=x", Accept=V3)
    assert (status, one(headers, "location"), one(headers, "content-type")) == (301, url, V3)
    assert (one(headers, "etag"), body) == (etag, b"")
    assert ask(server, f"{POLICY}?hash=x", Accept="text/html")[0] == 406
    for known in (etag, f"W/{etag}", f'"a", {etag}', "*"):
        status, headers, body = ask(server, POLICY, If_None_Match=known)
        assert (status, one(headers, "etag"), body) == (304, etag, b"")
    assert ask(server, POLICY, If_None_Match='"a"')[0] == 200
    assert ask(server, POLICY, "POST", If_None_Match="*")[0] == 412


def test_the_index_names_a_document_for_every_part(server: ApiServer) -> None:
    index = json.loads(ask(server, "/openapi/v3")[2])["paths"]
    assert {"api", "apis", "version", "api/v1", "apis/apps", "apis/apps/v1", "openid/v1/jwks"} < index.keys()
    assert "apis/backup.kubewright.dev" not in index  # of a CRD's group there is no document
    for name in ("api", "version", "apis/apps"):
        document = json.loads(ask(server, index[name]["serverRelativeURL"])[2])
        assert [path.strip("/") for path in document["paths"]] == [name]


def test_paths_of_a_built_in_and_of_a_custom_resource(server: ApiServer) -> None:
    document = json.loads(ask(server, "/openapi/v3/apis/apps/v1")[2])
    assert document["info"] == {"title": "Kubernetes", "version": "1.36"}
    assert "BearerToken" in document["components"]["securitySchemes"]
    item = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["name", "namespace", "pretty"]
    patch = item["patch"]
    assert (patch["operationId"], patch["tags"]) == ("patchAppsV1NamespacedDeploymentScale", ["apps_v1"])
    assert patch["x-kubernetes-group-version-kind"]["group"] == "autoscaling"
    assert [each["name"] for each in patch["parameters"]] == [
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    ]
    assert set(patch["responses"]) == {"200", "201", "401"}
    assert "/apis/apps/v1/watch/namespaces/{namespace}/deployments/{name}" in document["paths"]
    replicas = document["components"]["schemas"]["io.k8s.api.autoscaling.v1.ScaleStatus"]["properties"]
    assert replicas["replicas"]["default"] == 0
    core = json.loads(ask(server, "/openapi/v3/api/v1")[2])["paths"]
    item = core["/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path}"]
    assert item["head"]["operationId"] == "connectCoreV1HeadNamespacedPodProxyWithPath"
    assert core["/api/v1/namespaces/{namespace}/pods/{name}/log"]["get"]["responses"]["200"]["content"][
        "text/plain"
    ] == {"schema": {"type": "string"}}
    custom = json.loads(ask(server, "/openapi/v3/apis/backup.kubewright.dev/v1")[2])
    assert custom["info"]["title"] == "Kubernetes CRD Swagger"
    assert "securitySchemes" not in custom["components"]
    assert not [path for path in custom["paths"] if "/watch/" in path or path.endswith("/v1/")]


EITHER = [{"type": "integer"}, {"type": "string"}]
NUMBER_OR_TEXT = {"x-kubernetes-int-or-string": True}
OF_OBJECTS = {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize(
    ("field", "published"),
    [  # as kube-apiserver 1.36 publishes them in version 3
        (NUMBER_OR_TEXT, {**NUMBER_OR_TEXT, "anyOf": EITHER}),
        ({**NUMBER_OR_TEXT, "anyOf": EITHER}, {**NUMBER_OR_TEXT, "anyOf": EITHER}),
        (
            {**NUMBER_OR_TEXT, "anyOf": [{"minimum": 1}]},
            {**NUMBER_OR_TEXT, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": EITHER}]},
        ),
        (
            {**NUMBER_OR_TEXT, "allOf": [{"anyOf": EITHER}, {"minimum": 3}]},
            {**NUMBER_OR_TEXT, "allOf": [{"anyOf": EITHER}, {"minimum": 3}]},
        ),
        (
            {**NUMBER_OR_TEXT, "allOf": [{"minimum": 3}]},
            {**NUMBER_OR_TEXT, "allOf": [{"minimum": 3}], "anyOf": EITHER},
        ),
    ],
)
def test_a_number_or_a_text_in_version_3(field: Any, published: Any) -> None:
    assert _published({"properties": {"a": field}}, v2=False) == {"properties": {"a": published}}
    assert _published(field, v2=True) == field


def test_embedded_objects_are_objects() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["spec"]}
    for v2 in (False, True):
        made = _published({"items": embedded}, v2=v2)["items"]
        assert (made["properties"].keys(), made["required"]) == (OF_OBJECTS, ["spec", "kind", "apiVersion"])
    anything = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    assert _published(anything, v2=True) == anything
    assert _published(anything, v2=False)["properties"].keys() == OF_OBJECTS


TWO = {"title": "T", "version": "1"}


def test_protobuf_of_version_3() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "nullable": True,
        "minimum": 1,
        "exclusiveMinimum": True,
        "required": ["a"],
        "enum": ["x"],
        "default": {},
        "additionalProperties": True,
        "x-kubernetes-a": [1],
        "properties": {
            "a": {"$ref": "#/components/schemas/B"},
            "n": {"type": "number", "default": 0},
            "s": {"type": "string", "default": ""},
            "b": {"type": "boolean", "default": False},
        },
    }
    document = {
        "openapi": "3.0.0",
        "info": TWO,
        "paths": {"/a/": {"get": {"operationId": "o", "responses": {"200": {"description": "OK"}}}}},
        "components": {"schemas": {"A": schema}},
    }
    read: Any = _message(encode_v3(document))
    assert (read["1"], read["2"]) == (["3.0.0"], [{"1": ["T"], "6": ["1"]}])
    operation = read["4"][0]["1"][0]["2"][0]["4"][0]
    assert operation["5"] == ["o"]
    assert operation["8"][0]["2"][0] == {"1": ["200"], "2": [{"1": [{"1": ["OK"]}]}]}
    named = read["5"][0]["1"][0]["1"][0]
    written = named["2"][0]["1"][0]
    assert (named["1"], written["25"], written["34"], written["1"]) == (["A"], ["object"], ["d"], [1])
    assert (written["14"], written["23"], written["24"]) == ([1], ["a"], [{"2": ['"x"']}])
    assert written["32"] == [{"2": [1]}]  # whether there may be others
    assert written["36"] == [{"1": ["x-kubernetes-a"], "2": [{"2": ["[1]"]}]}]
    fields = {each["1"][0]: each["2"][0] for each in written["31"][0]["1"]}
    assert fields["a"] == {"2": [{"1": ["#/components/schemas/B"]}]}
    # The reader leaves out zeros; but that a default is zero is written.
    number, boolean = b"\x8a\x02\x09\x09" + struct.pack("<d", 0), b"\x8a\x02\x02\x10\x00"
    assert number in encode_v3(document) and boolean in encode_v3(document)


def test_protobuf_of_version_2() -> None:
    body = {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/A"}}
    query = {"name": "q", "in": "query", "type": "string", "uniqueItems": True}
    document = {
        "swagger": "2.0",
        "info": TWO,
        "paths": {"/a": {"post": {"operationId": "o", "parameters": [body, {"$ref": "#/parameters/q"}]}}},
        "definitions": {"A": {"type": "object", "example": {"a": 1}, "maxItems": 3}},
        "parameters": {"q": query},
        "security": [{"BearerToken": []}],
    }
    read: Any = _message(encode_v2(document))
    operation = read["8"][0]["2"][0]["2"][0]["4"][0]
    assert operation["8"] == [
        {"1": [{"1": [{"2": ["body"], "3": ["body"], "4": [1], "5": [{"1": ["#/definitions/A"]}]}]}]},
        {"2": [{"1": ["#/parameters/q"]}]},
    ]
    assert read["9"][0]["1"][0]["2"][0] == {"22": [{"1": ["object"]}], "30": [{"2": ['{"a":1}']}], "14": [3]}
    assert read["10"][0]["1"][0]["2"] == [
        {"2": [{"3": [{"4": ["q"], "2": ["query"], "6": ["string"], "20": [1]}]}]}
    ]
    assert read["12"][0]["1"][0]["1"] == ["BearerToken"]


def test_every_document_has_a_protobuf_form(server: ApiServer) -> None:
    index = json.loads(ask(server, "/openapi/v3")[2])["paths"]
    for name in ("api/v1", "apis/apiextensions.k8s.io/v1", "apis/backup.kubewright.dev/v1", "version"):
        written = _message(ask(server, index[name]["serverRelativeURL"], Accept=V3)[2])
        assert written["1"] == ["3.0.0"]
    assert _message(ask(server, "/openapi/v2", Accept=V2)[2])["1"] == ["2.0"]


def test_parameters_that_another_document_has_once_are_merged() -> None:
    given = {"name": "q", "in": "query", "type": "string"}
    other = {
        "paths": {
            "/apis/x/v1/a": {"parameters": [{"$ref": "#/parameters/q"}, {"$ref": "#/parameters/none"}]}
        },
        "parameters": {"q": given},
    }
    part = part_of(other, ("/apis/x/v1",))
    assert part["paths"]["/apis/x/v1/a"]["parameters"] == [given, {"$ref": "#/parameters/none"}]
