"""The webhooks on a server for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from website_hooks import webhook

from apimachinery.client import Client as AnyClient
from apimachinery.client import Forbidden, Invalid
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer
from website_api.example_v1 import Website, WebsiteSpec


@pytest.fixture(scope="module")
def client() -> Iterator[AnyClient]:
    with (
        ApiServer(crds=[Path(__file__).parents[1] / "operator/crds"]) as server,
        server.client() as made,
        webhook.serve(made, url="https://127.0.0.1:PORT", host="127.0.0.1", port=0),
    ):
        yield made


def site(name: str, image: str, replicas: int = 1, **labels: str) -> Website:
    metadata = ObjectMeta(name=name, namespace="default", labels=labels)
    return Website(metadata=metadata, spec=WebsiteSpec(image=image, replicas=replicas))


def test_what_is_unset_is_filled_in_and_checked(client: AnyClient) -> None:
    sites = client.api(Website)
    made = sites.create(site("a", "web:1", 9))
    assert made.spec.image == "registry.example.com/web:1"
    with pytest.raises(Invalid, match="must name a version") as refused:
        sites.create(site("b", "web"))
    assert [cause.field for cause in refused.value.causes] == ["spec.image"]
    warned: list[str] = []
    client.on_warning = warned.append
    made.spec.replicas = 1
    sites.replace(made)
    assert warned == ["more than five copies end at once"]


def test_what_is_to_be_kept_stays(client: AnyClient) -> None:
    sites = client.api(Website)
    sites.create(site("kept", "web:1", keep="yes"))
    with pytest.raises(Forbidden, match="admin has to take the label keep away first"):
        sites.delete("kept", namespace="default")
    sites.patch("kept", {"metadata": {"labels": None}}, namespace="default")
    sites.delete("kept", namespace="default")
