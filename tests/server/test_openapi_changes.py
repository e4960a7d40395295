"""The version 2 document is put together of parts that are kept: always what fresh parts would give."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apimachinery.server.describe.openapi import OpenApi
from apimachinery.server.describe.openapi_documents import DocumentPart
from kubewright.testing import ApiServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(number: int, words: str) -> dict[str, Any]:
    group, plural = f"g{number % 3}.example.com", f"things{number}"
    spec = {"type": "object", "description": words, "properties": {"size": {"type": "integer"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if number % 2 else "Cluster",
            "names": {"plural": plural, "kind": f"Thing{number}"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == "v1",
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
                for version in (("v1", "v2") if number % 3 == 1 else ("v1",))
            ],
        },
    }


def test_kept_parts_give_what_fresh_ones_would(monkeypatch: pytest.MonkeyPatch) -> None:
    put_together = OpenApi._fragments
    compared: list[int] = []

    def both(self: OpenApi) -> list[DocumentPart]:
        kept = put_together(self)
        parts, self._parts = self._parts, {}
        assert put_together(self) == kept
        self._parts = parts
        compared.append(len(kept))
        return kept

    monkeypatch.setattr(OpenApi, "_fragments", both)
    chance = random.Random(5)
    there: dict[int, str] = {}
    with ApiServer() as server:
        for step in range(14):
            number = chance.randrange(6)
            name = definition(number, "")["metadata"]["name"]
            if number in there and chance.random() < 0.4:
                server.request("DELETE", f"{CRDS}/{name}")
                del there[number]
            elif number in there:
                there[number] = f"words {step}"
                changed = definition(number, there[number])
                stored = server.request("GET", f"{CRDS}/{name}")
                changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
                server.request("PUT", f"{CRDS}/{name}", changed)
            else:
                there[number] = f"words {step}"
                server.request("POST", CRDS, definition(number, there[number]))
            server.request("GET", "/openapi/v2")
        for number in sorted(there):
            server._wait_until_served(definition(number, ""))
        document = server.request("GET", "/openapi/v2")
    assert len(compared) > 3
    shown = {name for name in document["definitions"] if ".Thing" in name and not name.endswith("List")}
    assert {name.rpartition("Thing")[2] for name in shown} == {str(number) for number in there}
