"""Which writes need a conversion webhook, and what is refused before one is asked: with a webhook that nobody reaches,
as kube-apiserver 1.36 answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/{}/namespaces/default/things"
NOBODY = {"url": "https://127.0.0.1:1/convert"}
WEBHOOK = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": NOBODY}}
MERGE = "application/merge-patch+json"


def definition(stored: str, conversion: Json) -> Json:
    spec = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": schema} for name in ("v1", "v2")
    ]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    whole: Json = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "things.example.com"}, "spec": {**whole, "conversion": conversion}}


def thing(version: str, name: str, n: int = 1, **metadata: str) -> Json:
    head = {"apiVersion": f"example.com/{version}", "kind": "Thing"}
    return {**head, "metadata": {"name": name, **metadata}, "spec": {"n": n}}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """Objects ``v1-a`` and ``v2-a`` are stored at these versions, ``v1-b`` with owners at both; v1 is stored now."""
    with ApiServer(controllers="none") as server:
        made = server.request("POST", CRDS, definition("v1", {"strategy": "None"}))
        server._wait_until_served(made)
        server.request("POST", THINGS.format("v1"), thing("v1", "v1-a"))
        server.request("POST", THINGS.format("v1"), thing("v1", "v1-b"))
        server.request("PATCH", THINGS.format("v2") + "/v1-b", {"spec": {"n": 2}}, MERGE)
        for stored, conversion in (("v2", {"strategy": "None"}), ("v1", WEBHOOK)):
            at = f"{CRDS}/things.example.com"
            change = {"spec": definition(stored, conversion)["spec"]}
            server.request("PATCH", at, change, MERGE)
            if stored == "v2":
                server.request("POST", THINGS.format("v2"), thing("v2", "v2-a"))
        yield server


def refused(server: ApiServer, *request: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        server.request(*request)
    return caught.value


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        # What is stored at the version of the request is judged before it is converted to be stored.
        ("PUT", "v2/v2-a", thing("v2", "v2-a", 2, resourceVersion="1"), 409),
        ("PUT", "v2/v2-a", thing("v2", "v2-a", -2), 422),
        ("PATCH", "v2/v2-a", {"spec": {"n": -1}}, 422),
        ("PATCH", "v2/v2-a", {"metadata": {"resourceVersion": "1"}, "spec": {"n": 3}}, 409),
        ("PATCH", "v2/v2-a", {"spec": {"n": 3}}, 500),
        ("PATCH", "v2/v2-a", b"{", 400),
        ("POST", "v2", thing("v2", "new", -1), 422),
        ("POST", "v2?dryRun=All", thing("v2", "v2-a"), 409),
        ("POST", "v2", thing("v2", "v2-a"), 500),
        ("DELETE", "v2/v2-a", {"preconditions": {"uid": "other"}}, 409),
        # What is stored at another one cannot even be read.
        ("PUT", "v2/v1-a", thing("v2", "v1-a", -2), 500),
        ("PATCH", "v2/v1-a", b"{", 500),
        ("PATCH", "v2/none", b"{", 404),
        ("POST", "v1?dryRun=All", thing("v1", "v1-a"), 409),
        ("DELETE", "v1/v2-a", None, 500),
    ],
)
def test_refusals_come_in_their_order(
    server: ApiServer, method: str, path: str, body: Json | bytes | None, code: int
) -> None:
    version, _, rest = path.partition("/")
    version, mark, query = version.partition("?")
    at = THINGS.format(version) + (f"/{rest}" if rest else "") + mark + query
    error = refused(server, method, at, body, *([MERGE] if method == "PATCH" else []))
    assert error.code == code, error
    assert (code == 500) == ("conversion webhook for example.com/v" in error.message), error


def test_a_dry_run_takes_a_name_that_it_cannot_read_for_free(server: ApiServer) -> None:
    made = server.request("POST", THINGS.format("v1") + "?dryRun=All", thing("v1", "v2-a", 5))
    assert made["spec"]["n"] == 5


def test_owners_at_a_version_that_nobody_converts_to_are_forgotten(server: ApiServer) -> None:
    at = THINGS.format("v1") + "/v1-b"
    versions = [entry["apiVersion"] for entry in server.request("GET", at)["metadata"]["managedFields"]]
    assert sorted(versions) == ["example.com/v1", "example.com/v2"]
    assert refused(server, "PATCH", at, {"spec": {"n": -1}}, MERGE).code == 422
    assert refused(server, "PUT", at, thing("v1", "v1-b", 3, resourceVersion="1")).code == 409
    assert "managedFields" not in server.request("PATCH", at, {"spec": {"n": 3}}, MERGE)["metadata"]


def test_an_object_is_deleted_as_it_is_stored(server: ApiServer) -> None:
    at = THINGS.format("v2") + "/v2-a"
    assert server.request("DELETE", at + "?dryRun=All")["status"] == "Success"
    uid = server.request("GET", at)["metadata"]["uid"]
    assert server.request("DELETE", at)["details"]["uid"] == uid
    assert refused(server, "GET", at).code == 404
