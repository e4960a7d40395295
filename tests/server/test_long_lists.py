"""A long list in another form than JSON is encoded object by object, and is the same, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.test_api import ask, run

from apimachinery.server.answer import table, views
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

SECRETS = "/api/v1/namespaces/default/secrets"
FORMS = [
    "application/cbor",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [0, 1, 30])
def test_object_by_object_is_the_same(form: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(api: AssembledApi) -> None:
        for number in range(count):
            body: dict[str, Any] = {
                "metadata": {"name": f"s{number}", "labels": {"a": "b"}},
                "data": {"k": "aGVsbG8=", "empty": ""},
            }
            if number % 2:
                body["metadata"]["labels"] = {"b": "c", "a": "d"}
            assert (await ask(api, "POST", SECRETS, body))[0] == 201
        monkeypatch.setattr(table, "since", lambda stamp: "1s")  # a second may end between the two answers
        monkeypatch.setattr(views, "LONG_BYTES", 1 << 30)
        status, whole, _ = await ask(api, "GET", SECRETS, None, {"accept": form})
        monkeypatch.setattr(views, "LONG_BYTES", 1)
        _, pieces, _ = await ask(api, "GET", SECRETS, None, {"accept": form})
        assert status == 200 and pieces == whole

    run(story, ApiOptions(controllers=frozenset()))
