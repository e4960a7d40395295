"""OpenAPI documents that are kept: within a weight, and none of definitions that came and went."""

from __future__ import annotations

import pytest
from tests.server.test_openapi_answers import JSON, V2, V3, ask
from tests.server.test_tunnels import held

from apimachinery.server.describe import kept_forms
from apimachinery.server.describe.kept_forms import ENTRY_BYTES, KeptForms
from kubewright.testing import ApiServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(group: str, fields: int) -> dict:
    properties = {f"field{number}": {"type": "string", "description": "x" * 50} for number in range(fields)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_the_longest_unused_go(monkeypatch):
    monkeypatch.setattr(kept_forms, "FORMS_BYTES", 4 * (1000 + ENTRY_BYTES))
    kept = KeptForms()
    for name in "abcd":
        kept.keep(name, JSON, name.encode() * 1000)
    assert kept.get("a", JSON) is not None
    kept.keep("e", JSON, b"e" * 1000)
    assert [name for name in "abcde" if kept.get(name, JSON)] == ["a", "c", "d", "e"]
    kept.keep("f", JSON, b"f" * 100_000)
    assert kept.get("f", JSON) is None
    kept.keep("a", V3, b"")
    assert kept.weight <= kept_forms.FORMS_BYTES
    for name in "abcdef":
        kept.drop(name)
    assert kept.weight == 0


@pytest.fixture
def server():
    with ApiServer(controllers="none") as running:
        yield running


def test_documents_stay_within_their_weight_and_are_right_all_the_same(server, monkeypatch):
    limit = 300_000
    monkeypatch.setattr(kept_forms, "FORMS_BYTES", limit)
    paths = [f"/openapi/v3/{root}" for root in ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/policy/v1")]
    first = {(path, kind): ask(server, path, accept=kind)[2] for path in paths for kind in (JSON, V3)}
    assert sum(map(len, first.values())) > limit
    for (path, kind), body in first.items():
        assert ask(server, path, accept=kind)[2] == body
        assert held(server, "openapi") <= limit
    ask(server, "/openapi/v2", accept=V2)
    assert held(server, "openapi") <= limit


def test_definitions_made_again_and_again_leave_no_documents(server):
    document = "/openapi/v3/apis/churn.example.com/v1"

    def turn(fields: int) -> None:
        server.request("POST", CRDS, definition("churn.example.com", fields))
        for kind in (JSON, V3):
            for _ in range(200):
                status, _, body = ask(server, document, accept=kind)
                if status == 200:
                    break
            assert status == 200 and (kind != JSON or f"field{fields - 1}" in body.decode())
        server.request("DELETE", f"{CRDS}/things.churn.example.com")
        while ask(server, document)[0] == 200:
            pass

    ask(server, "/openapi/v3")
    before = held(server, "openapi")
    for number in range(1, 9):
        turn(number)
        assert held(server, "openapi") == before
