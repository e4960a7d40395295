"""Specs that were read, checked or created before: everything comes out as if they had not been."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.merge import apply
from apimachinery.meta.errors import ApiError
from apimachinery.schema import known_specs
from apimachinery.schema.known_specs import KnownSpecs
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.request.bodies import bring_into_form
from apimachinery.server.request.decoded import Decoded

NOW = "2026-01-01T00:00:00Z"
SPEC = {
    "containers": [
        {
            "name": "web",
            "image": "nginx",
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
            "env": [{"name": "A", "value": "b"}],
        }
    ],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "nodeSelector": {"a": "b"},
    "hostNetwork": True,
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from(
        [1.0, 2**64, "", "x", "1000m", "0.5", b"x", [], {}, [None], [""], {"x": 1}, {"name": "y"}]
    ),
)


@cache
def served(plural: str) -> Served:
    """A resource of the built-in kinds."""
    catalog = Catalog()
    add_package(catalog, ServedPackage("kubernetes_api"), ApiOptions())
    found = catalog.find("apps" if plural == "deployments" else "", "v1", plural)
    assert found is not None
    return found


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder in a value with each of its keys."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        found += [(value, key), *places(item)]
    return found


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A Pod or a Deployment, some of its values odd, some of its fields gone, some unknown."""
    spec: dict[str, Any] = deepcopy(SPEC)
    obj: dict[str, Any] = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": spec,
    }
    if draw(st.booleans()):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        whole = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 1, "template": template}
        obj |= {"kind": "Deployment", "apiVersion": "apps/v1", "spec": whole, "status": {}}
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(
            st.sampled_from([pair for pair in places(obj) if pair[1] not in ("kind", "apiVersion")])
        )
        match draw(st.sampled_from(["odd", "gone", "unknown"])):
            case "odd":
                holder[key] = deepcopy(draw(ODD))
            case "gone":
                del holder[key]
            case _ if isinstance(holder, dict):
                holder["unknown"] = deepcopy(draw(ODD))
    return f"{obj['kind'].lower()}s", obj


def outcome(of: Served, obj: dict[str, Any], validation: str) -> Any:
    """All that comes of reading an object and of giving it to its creator."""
    obj, warnings = deepcopy(obj), list[str]()
    try:
        empties = bring_into_form(obj, of, validation, Decoded(), warnings)
    except ApiError as error:
        return error.code, error.message
    owned = obj
    if isinstance(obj.get("metadata"), dict):
        owned = of.ownership("").update(None, obj, "test", now=NOW)
    faults = of.compiled.validator(obj, None) if of.compiled.validator else []
    changed = deepcopy(obj)
    of.form(changed)
    shown = [json.dumps(each) for each in (obj, owned, changed)]
    return shown, empties, warnings, [str(fault) for fault in faults]


def forget(of: Served) -> None:
    """Has a resource know no spec."""
    of.known_specs, of._formed_specs, of._ownership = KnownSpecs(), KnownSpecs(), {}


@given(st.lists(objects(), min_size=1, max_size=3), st.sampled_from(["Strict", "Warn", "Ignore"]))
def test_what_is_known_changes_nothing(drawn: list[tuple[str, dict[str, Any]]], validation: str) -> None:
    fresh = []
    for plural, obj in drawn:
        of = served(plural)
        forget(of)
        fresh.append(outcome(of, obj, validation))
    for _ in range(2):
        assert [outcome(served(plural), obj, validation) for plural, obj in drawn] == fresh


def test_a_spec_is_recognized() -> None:
    of = served("pods")
    forget(of)
    obj: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": SPEC}
    outcome(of, obj, "Strict")
    aside = of.known_specs.set_aside(same := deepcopy(obj))
    assert same["spec"] == {} and list(same) == list(obj)
    assert aside is not None
    aside.put_back(same)
    assert same == obj
    assert of.known_specs.set_aside({**obj, "spec": {**SPEC, "hostNetwork": 1}}) is not aside
    assert len(of.ownership("")._specs) == 1


def changed(**fields: Any) -> dict[str, Any]:
    """A Pod whose spec something changed after it was read."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "x"},
        "spec": {**deepcopy(SPEC), **fields},
    }


@pytest.mark.parametrize("fields", [{}, {"overhead": {"cpu": "0.5"}}, {"subdomain": ""}])
def test_what_changed_an_object_comes_out_in_form_each_time(fields: dict[str, Any]) -> None:
    of = served("pods")
    forget(of)
    outcomes = []
    for _ in range(3):
        of.form(pod := changed(**fields))
        outcomes.append(json.dumps(pod))
    to_form = of.compiled.to_form
    assert to_form is not None
    to_form(pod := changed(**fields))
    assert outcomes == [json.dumps(pod)] * 3
    assert bool(of._formed_specs._in_form) == (pod["spec"] == changed(**fields)["spec"])


def test_specs_without_anything_within_are_not_kept() -> None:
    of = served("pods")
    forget(of)
    for number in range(3):
        of.form({"metadata": {"name": "x"}, "spec": {"nodeName": f"n{number}", "hostNetwork": True}})
    assert not of._formed_specs._in_form


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_specs, "MOST", 3)
    monkeypatch.setattr(apply, "SPECS", 3)
    of = served("pods")
    forget(of)
    for number in range(10):
        spec = {**SPEC, "nodeName": f"n{number}"}
        outcome(of, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec}, "Strict")
    for known in (of.known_specs, of._formed_specs):
        assert 0 < len(known._in_form) <= 3
    assert 0 < len(of.ownership("")._specs) <= 3
