"""The rows of a Table are in the order of names, but of kinds that have one of their own."""

from __future__ import annotations

from tests.differential.connection import Server

from kubewright.testing import ApiServer

PATH = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
ACCEPT = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def test_flow_schemas_are_shown_as_requests_are_matched() -> None:
    with ApiServer(controllers="none") as server:
        client = Server(server.url, {})
        rows = client.ask({"method": "GET", "path": PATH, "headers": ACCEPT})["body"]["rows"]
        items = client.ask({"method": "GET", "path": PATH})["body"]["items"]
        client.close()
    shown = [(row["cells"][2], row["cells"][0]) for row in rows]
    assert shown == sorted(shown) and len(shown) == len(items) > 5
    assert [each["metadata"]["name"] for each in items] == sorted(name for _, name in shown)
