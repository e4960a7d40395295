"""Declared rules of the example groups, as far as they need no server."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.built_in import ROOT

Json = dict[str, Any]
MODULES = {
    "messaging.kubewright.dev/v1": "messaging_api.messaging_v1",
    "flags.kubewright.dev/v1": "flags_api.flags_v1",
    "flags.kubewright.dev/v1beta1": "flags_api.flags_v1beta1",
}


def default(obj: Json) -> Json:
    defaulters = import_module(f"{MODULES[obj['apiVersion']]}.defaults").DEFAULTERS
    if obj["kind"] in defaulters:
        defaulters[obj["kind"]](obj)
    return obj


def faults(obj: Json, old: Json | None = None) -> list[str]:
    validators = import_module(f"{MODULES[obj['apiVersion']]}.validation").VALIDATORS
    return [str(fault) for fault in validators[obj["kind"]](obj, old)]


def samples() -> list[Json]:
    return [
        document
        for group in ("messaging", "flags")
        for path in sorted((ROOT / f"specs/{group}/samples").glob("*.yaml"))
        for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
        if document
    ]


@pytest.mark.parametrize(
    "sample", samples(), ids=lambda sample: f"{sample['kind']} {sample['metadata']['name']}"
)
def test_samples_are_valid_and_defaulted_once(sample: Json) -> None:
    once = default(copy.deepcopy(sample))
    assert default(copy.deepcopy(once)) == once
    validators = import_module(f"{MODULES[once['apiVersion']]}.validation").VALIDATORS
    if once["kind"] in validators:
        assert faults(once) == []


def queue(**spec: Any) -> Json:
    return {
        "apiVersion": "messaging.kubewright.dev/v1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": spec,
    }


def test_defaults_that_depend_on_names_and_on_other_fields() -> None:
    ports = [{"name": "mqtt", "port": 1883}, {"name": "amqp", "port": 5672, "targetPort": "x"}]
    spec = default(queue(ports=ports, strategy={"type": "Recreate"}, ordering="Total"))["spec"]
    assert spec["ports"] == [
        {"name": "mqtt", "port": 1883, "targetPort": 1883, "protocol": "MQTT"},
        {"name": "amqp", "port": 5672, "targetPort": "x"},
    ]
    assert spec["strategy"] == {"type": "Recreate", "recreate": {}}
    assert spec["replicas"] == 1


def test_faults() -> None:
    refused = queue(
        ordering="Total",
        replicas=3,
        ports=[{"name": "UPPER", "port": 0}, {"name": "UPPER", "port": 1}],
        strategy={"type": "Rolling", "recreate": {}, "rolling": {"maxSurge": 0, "maxUnavailable": "0%"}},
    )
    assert faults(refused) == [
        'spec.ports[1].name: Duplicate value: "UPPER"',
        "spec.replicas: Invalid value: 3: a total order is kept by one replica",
        "spec.strategy.recreate: Forbidden: may not be specified when strategy `type` is 'Rolling'",
        'spec.ports[0].name: Invalid value: "UPPER": must contain only alpha-numeric characters (a-z, 0-9), '
        "and hyphens (-)",
        'spec.ports[0].name: Invalid value: "UPPER": must contain at least one letter (a-z)',
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        'spec.ports[1].name: Invalid value: "UPPER": must contain only alpha-numeric characters (a-z, 0-9), '
        "and hyphens (-)",
        'spec.ports[1].name: Invalid value: "UPPER": must contain at least one letter (a-z)',
        'spec.strategy.rolling.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
    ]
    assert faults(queue(ordering="Key"), queue(ordering="None")) == [
        'spec.ordering: Invalid value: "Key": field is immutable'
    ]


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 1)
    | st.sampled_from(["", "a", "Rolling", "Total", "boolean", "mqtt"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["ports", "name", "strategy", "type", "rolling", "ordering", "variants", "delivery", "port"]
            ),
            inner,
        )
    ),
    max_leaves=15,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(MODULES)), st.sampled_from(["Queue", "Subscription", "FeatureFlag"]), ANY)
def test_no_shape_of_an_object_makes_rules_fail(api_version: str, kind: str, spec: Any) -> None:
    """What clients send comes before any schema check: rules find nothing in what they do not expect."""
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    once = default(copy.deepcopy(obj))
    assert default(copy.deepcopy(once)) == once
    validators = import_module(f"{MODULES[api_version]}.validation").VALIDATORS
    if kind in validators:
        assert isinstance(validators[kind](once, obj), list)
