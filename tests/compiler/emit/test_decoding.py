"""Generated models tell the truth: what is set and what is not, unknown fields that are kept, one class a shape."""

from __future__ import annotations

import importlib
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import yaml

from kubewright.cli import main

Json = Any
TEXT, FLAG, COUNT = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
MOMENT = {**TEXT, "format": "date-time"}
KEEP = {"x-kubernetes-preserve-unknown-fields": True}


def struct(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def listed(items: Json) -> Json:
    return {"type": "array", "items": items}


PORT = struct(("port",), port=COUNT, protocol={**TEXT, "default": "TCP"})
SPEC = struct(
    ("auto", "cidr", "mode", "numbers"),
    auto={**FLAG, "default": True},
    cidr=TEXT,
    mode={**TEXT, "enum": ["Always", "Never"], "default": "Always"},
    numbers=listed(COUNT),
    size={**COUNT, "default": 26},
    maybe={**COUNT, "nullable": True, "default": 1},
    tags={**listed(TEXT), "default": ["a"]},
    limits={**struct(cpu=COUNT, memory={**TEXT, "default": "1Gi"}), "default": {"cpu": 1}},
    inner={**struct(deep={**FLAG, "default": True}), "default": {}},
    free={**struct(a=TEXT), **KEEP},
    items={**listed(struct(a=TEXT)), **KEEP},
    front=struct(listeners=listed(PORT)),
    back=struct(listeners=listed(PORT)),
    since={**MOMENT, "default": "2026-01-02T03:04:05Z"},
    moments={**listed(MOMENT), "default": ["2026-01-02T03:04:05Z"]},
    unreadable={**MOMENT, "default": "soon"},
    wrong={**struct(("must",), must=TEXT), "default": {"must": 3}},
)


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pools")
    schema = {"openAPIV3Schema": struct(spec=SPEC)}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Pool", "plural": "pools"},
            "scope": "Namespaced",
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema}
                for name in ("v1", "v1beta1")
            ],
        },
    }
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("wrong")
    (folder / "crd.yaml").write_text(yaml.safe_dump(crd))
    assert (
        main(["generate", str(folder / "crd.yaml"), "--package", "pools_api", "-q", "--output", str(folder)])
        == 0
    )
    sys.path.insert(0, str(folder))
    yield importlib.import_module("pools_api.scheme").SCHEME
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith("pools_api")]:
        del sys.modules[name]


def pool(**spec: Json) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Pool",
        "metadata": {"name": "a"},
        "spec": {"cidr": "10.0.0.0/8", "numbers": [], **spec},
    }


def test_fields_with_a_default_are_unset_until_somebody_sets_them(pools: Any) -> None:
    spec = pools.decode(json.dumps(pool())).spec
    assert (spec.auto, spec.mode, spec.size, spec.maybe, spec.tags) == (None, None, None, msgspec.UNSET, None)
    assert spec.limits is spec.inner is spec.since is None
    spec = pools.decode(
        json.dumps(pool(auto=False, size=1, maybe=None, front={"listeners": [{"port": 1}]}))
    ).spec
    assert (spec.auto, spec.size, spec.maybe) == (False, 1, None)
    assert spec.front.listeners[0].protocol is None


def test_times_are_datetimes(pools: Any) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    spec = pools.decode(json.dumps(pool(since="2026-01-02T03:04:05Z", moments=["2026-01-02T03:04:05Z"]))).spec
    assert (spec.since, spec.moments) == (moment, [moment])
    spec.since = moment + timedelta(days=1)
    assert msgspec.to_builtins(spec)["since"] == "2026-01-03T03:04:05Z"


def test_a_constructor_does_not_ask_for_what_has_a_default(pools: Any) -> None:
    models = importlib.import_module("pools_api.example_v1")
    made = models.Pool(spec=models.PoolSpec(cidr="x", numbers=[1]))
    assert pools.to_dict(made)["spec"] == {"cidr": "x", "numbers": [1]}


def test_what_equals_the_default_is_sent(pools: Any) -> None:
    models = importlib.import_module("pools_api.example_v1")
    made = models.PoolSpec(cidr="x", numbers=[], auto=True, mode="Always", size=26, maybe=1, tags=["a"])
    written = {
        "auto": True,
        "cidr": "x",
        "mode": "Always",
        "numbers": [],
        "size": 26,
        "maybe": 1,
        "tags": ["a"],
    }
    assert msgspec.to_builtins(made) == written
    assert msgspec.to_builtins(models.PoolSpec(cidr="x", numbers=[], maybe=None))["maybe"] is None


def test_null_is_unset_where_null_is_not_allowed(pools: Any) -> None:
    spec = pools.decode(json.dumps(pool(auto=None, size=None, tags=None, numbers=None, limits=None))).spec
    assert (spec.auto, spec.size, spec.tags, spec.numbers, spec.limits) == (None, None, None, [], None)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"auto": False},
        {"auto": True, "size": 26, "tags": []},
        {"auto": None},
        {"since": "2026-01-02T03:04:05.123456789Z", "moments": ["2026-01-02T03:04:05-0100"]},
        {"free": {"a": "1", "more": {"deep": [1]}}},
        {"items": [{"a": "1", "more": 1}, {"more": 2}]},
    ],
    ids=str,
)
def test_what_is_encoded_is_what_was_decoded(pools: Any, spec: Json) -> None:
    obj = pool(**spec)
    assert json.loads(pools.encode(pools.decode(json.dumps(obj)))) == obj
    assert pools.to_dict(pools.from_dict(obj)) == obj


def test_a_change_is_written_and_unknown_fields_stay(pools: Any) -> None:
    made = pools.decode(json.dumps(pool(free={"a": "1", "more": 2}, auto=False)))
    made.spec.free.a = "2"
    made.spec.auto = True
    made.spec.size = 3
    assert pools.to_dict(made)["spec"] == {
        "cidr": "10.0.0.0/8",
        "numbers": [],
        "free": {"a": "2", "more": 2},
        "auto": True,
        "size": 3,
    }


def test_equal_shapes_are_one_class(pools: Any) -> None:
    stable, beta = (
        importlib.import_module("pools_api.example_v1"),
        importlib.import_module("pools_api.example_v1beta1"),
    )
    assert [name for name in stable.__all__ if "Listener" in name] == ["BackListener"]
    assert not [name for name in beta.__all__ if "Listener" in name]
    assert beta.PoolSpec is stable.PoolSpec
    meta = importlib.import_module("kubernetes_api.meta_v1")
    assert importlib.import_module("pools_api.meta_v1").ObjectMeta is meta.ObjectMeta


def test_a_word_that_no_enum_has_is_refused(pools: Any) -> None:
    with pytest.raises(ValueError, match="Invalid enum value"):
        pools.decode(json.dumps(pool(mode="Sometimes")))
