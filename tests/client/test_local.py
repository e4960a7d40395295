"""Local apply says what the server then does; differences and extraction read as people need them."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from apimachinery.client.calls import PatchType
from apimachinery.client.config import Config
from apimachinery.client.errors import ApplyConflict, BadRequest, FieldConflict
from apimachinery.client.local import FieldChange, LocalApply
from apimachinery.client.resource import DynamicResource
from kubernetes_api.apps_v1 import Deployment, apply
from kubernetes_api.apps_v1.async_client import AsyncDeploymentClient
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import apply as core
from kubernetes_api.core_v1.client import ConfigMapClient
from kubernetes_api.meta_v1 import apply as meta


def configuration(image: str = "a:1", **spec: Any) -> apply.Deployment:
    return apply.Deployment(
        metadata=meta.ObjectMeta(name="web", labels={"team": "a"}),
        spec=apply.DeploymentSpec(
            selector=meta.LabelSelector(match_labels={"app": "web"}),
            template=core.PodTemplateSpec(
                metadata=meta.ObjectMeta(labels={"app": "web"}),
                spec=core.PodSpec(containers=[core.Container(name="web", image=image)]),
            ),
            **spec,
        ),
    )


def test_what_is_foretold_comes_true(config: Config) -> None:
    """Several managers, lists with keys, something given up: the same spec, owners and metadata as the server gives."""
    with Client(config) as client:
        api = client.apps_v1.deployments
        local = LocalApply(api)
        first = configuration(replicas=2, paused=True)
        api.apply(first, field_manager="one")
        sidecar = {"name": "log", "image": "log:1"}
        api.patch("web", {"spec": {"template": {"spec": {"containers": [sidecar]}}}}, PatchType.STRATEGIC)
        live = api.get("web")
        second = configuration("a:2", replicas=3)
        foretold = local.apply(live, second, field_manager="one")
        came = api.apply(second, field_manager="one")
        assert foretold.object.spec == came.spec
        assert came.metadata is not None and foretold.object.metadata is not None
        times = [{**e, "time": ""} for e in foretold.json["metadata"]["managedFields"]]
        assert times == [{**e, "time": ""} for e in _plain(came)["metadata"]["managedFields"]]
        assert foretold.changes == (
            FieldChange("removed", ".spec.paused", True, None),
            FieldChange("changed", ".spec.replicas", 2, 3),
            FieldChange("changed", '.spec.template.spec.containers[name="web"].image', "a:1", "a:2"),
        )
        assert str(foretold) == (
            "- .spec.paused: true\n"
            "~ .spec.replicas: 2 → 3\n"
            '~ .spec.template.spec.containers[name="web"].image: "a:1" → "a:2"'
        )
        assert local.apply(came, second, field_manager="one").changes == ()
        assert local.extract(came, field_manager="one") == {
            **_plain(second),
            "metadata": {"name": "web", "namespace": config.namespace, "labels": {"team": "a"}},
        }


def _plain(obj: Any) -> dict[str, Any]:
    import json

    from apimachinery.typed import lossless

    value: dict[str, Any] = json.loads(lossless.encode(obj))
    return value


def test_conflicts_are_the_servers(config: Config) -> None:
    with Client(config) as client:
        api = client.apps_v1.deployments
        api.apply(configuration(replicas=2), field_manager="one")
        api.patch("web", {"spec": {"replicas": 4}}, field_manager="scaler")
        live, wanted = api.get("web"), configuration(replicas=1)
        before = copy.deepcopy(live)
        local = LocalApply(api)
        with pytest.raises(ApplyConflict) as foretold:
            local.apply(live, wanted, field_manager="two")
        with pytest.raises(ApplyConflict) as came:
            api.apply(wanted, field_manager="two")
        assert foretold.value.conflicts == came.value.conflicts
        assert foretold.value.conflicts == (
            FieldConflict("scaler", ".spec.replicas", operation="Update", api_version="apps/v1"),
        )
        assert live == before
        forced = local.apply(live, wanted, field_manager="two", force=True)
        assert forced.object.spec == api.apply(wanted, field_manager="two", force=True).spec


def test_what_is_not_there_yet_is_all_new() -> None:
    local = LocalApply(ConfigMapClient)
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"k": "v", "é": "ü"},
    }
    preview = local.apply(None, wanted, field_manager="me")
    assert preview.object.data == {"k": "v", "é": "ü"}
    assert '+ .data: {"k": "v", "é": "ü"}' in str(preview)
    assert local.extract(preview.object, field_manager="me") == wanted
    nothing = local.extract(preview.object, field_manager="other")
    assert nothing == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_the_status_is_nobodys_to_apply() -> None:
    local = LocalApply(AsyncDeploymentClient)
    live = {**_plain(configuration()), "status": {"replicas": 1}}
    wanted = {**_plain(configuration()), "status": {"replicas": 9}}
    preview = local.apply(live, wanted, field_manager="me", force=True)
    assert preview.json["status"] == {"replicas": 1}
    assert "f:status" not in str(
        [e for e in preview.json["metadata"]["managedFields"] if e["manager"] == "me"]
    )


def test_differences_of_two_objects() -> None:
    old = {"metadata": {"name": "a", "labels": {"x": "1", "gone": "y"}}, "data": {"k": "v"}}
    new = {"metadata": {"name": "a", "labels": {"x": "2"}}, "data": {"k": "v"}, "immutable": True}
    assert list(map(str, LocalApply(ConfigMapClient).diff(old, new))) == [
        "+ .immutable: true",
        '- .metadata.labels.gone: "y"',
        '~ .metadata.labels.x: "1" → "2"',
    ]
    assert LocalApply(ConfigMapClient).diff(new, new) == []


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": 1}, r"\.data: expected map, got"),
        (7, "an object is needed, not int"),
    ],
)
def test_what_does_not_fit_is_refused(wanted: Any, text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        LocalApply(ConfigMapClient).apply(None, wanted, field_manager="me")


def test_a_dynamic_client_has_no_merge_types(config: Config) -> None:
    with Client(config) as client, pytest.raises(BadRequest, match="local apply needs a generated client"):
        LocalApply(DynamicResource.of(client, "v1", "ConfigMap"))


def test_a_live_object_made_here_can_be_compared() -> None:
    live = msgspec.convert(_plain(configuration()), Deployment)
    assert live.metadata is not None
    live.metadata.labels = None
    changes = (
        LocalApply(AsyncDeploymentClient).apply(live, configuration(), field_manager="me", force=True).changes
    )
    assert changes == (FieldChange("added", ".metadata.labels", None, {"team": "a"}),)
