"""Every built-in kind: objects of its schema go through typed form, defaults, admission and validation."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kubernetes_api.registry import GROUP_VERSIONS
from kubewright.emit.code.names import attribute_name
from tests.rules.built_in import create, default, generated
from tests.rules.test_conversion import definition_of, kinds_of

Json = dict[str, Any]


def stored_kinds() -> list[tuple[str, str]]:
    """(apiVersion, kind) of all resources."""
    found = set()
    for api_version, module in GROUP_VERSIONS.items():
        try:
            resources = import_module(f"kubernetes_api.{module}.resources").RESOURCES
        except ModuleNotFoundError:
            continue
        found |= {
            (api_version, r.kind)
            for r in resources
            if definition_of("kubernetes_api", api_version, r.kind) is not None
        }
    return sorted(found)


@pytest.mark.parametrize(("api_version", "kind"), stored_kinds(), ids=str)
def test_defaulting_twice_is_defaulting_once_and_no_valid_shape_makes_rules_fail(
    api_version: str, kind: str
) -> None:
    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(kinds_of("kubernetes_api", api_version, kind))
    def run(obj: Json) -> None:
        once = default(copy.deepcopy(obj))
        assert default(copy.deepcopy(once)) == once
        created = create(copy.deepcopy(obj), "ns")
        module = generated(api_version, "validation")
        validator = module.VALIDATORS.get(kind) if module else None
        if validator:
            first = [str(fault) for fault in validator(created, None)]
            assert first == [str(fault) for fault in validator(copy.deepcopy(created), None)]
            validator(created, once)
            # What an object must obey by itself, it obeys when it replaces itself, or it does not: the same faults,
            # but for those that are of new objects only.
            kept = [str(fault) for fault in validator(created, copy.deepcopy(created))]
            of_new = getattr(module, f"check_{attribute_name(kind)}_create", None)
            kept += [str(fault) for fault in of_new(created)] if of_new else []
            assert [fault for fault in first if fault not in kept] == [] or api_version == "events.k8s.io/v1"

    run()
