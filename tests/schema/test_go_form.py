"""How Go prints values of built-in kinds, and what is kept of lists that are empty."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crd.recorded import definitions

from apimachinery.meta.field_errors import FieldError, Reason, invalid_value
from apimachinery.schema.go_form import GoForms
from apimachinery.schema.typed_form import ZeroTable, compile_typed_form, with_empties

STRUCTS = {
    "meta.ObjectMeta": "name? string, labels? {}string",
    "core.Pod": "<meta.ObjectMeta>, Spec PodSpec, Status PodStatus",
    "core.PodSpec": "Volumes []Volume, NodeSelector {}string, Priority *int, SecurityContext *PodSecurityContext",
    "core.PodSecurityContext": "HostNetwork bool, FSGroup *int",
    "core.PodStatus": "StartTime *time, QOSClass=qosClass string",
    "core.Volume": "Name string, <VolumeSource>",
    "core.VolumeSource": "HostPath *HostPathVolumeSource, EmptyDir *EmptyDirVolumeSource",
    "core.HostPathVolumeSource": "Path string, Type *string",
    "core.EmptyDirVolumeSource": "Medium string, SizeLimit *quantity",
}
SOURCES = '"HostPath":null,"EmptyDir":'


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("spec", {}, '{"Volumes":null,"NodeSelector":null,"Priority":null,"SecurityContext":null}'),
        ("spec.volumes[0]", {"name": "v"}, f'{{"Name":"v",{SOURCES}null}}'),
        (
            "spec.volumes",
            [{"emptyDir": {"sizeLimit": "1Gi"}}, {}],
            f'[{{"Name":"",{SOURCES}{{"Medium":"","SizeLimit":"1Gi"}}}},{{"Name":"",{SOURCES}null}}]',
        ),
        ("spec.volumes", {"name": "v"}, f'{{"Name":"v",{SOURCES}null}}'),
        ("spec.nodeSelector", {"b": "<", "a": ""}, '{"a":"","b":"\\u003c"}'),
        (
            "spec",
            {"hostNetwork": True, "volumes": []},
            '{"Volumes":[],"NodeSelector":null,"Priority":null,'
            '"SecurityContext":{"HostNetwork":true,"FSGroup":null}}',
        ),
        ("status", {"qosClass": "x"}, '{"StartTime":null,"QOSClass":"x"}'),
        ("metadata.labels", {"b": "1", "a": "2"}, '{"a":"2","b":"1"}'),
        ("spec.nodeSelector", None, "null"),
        ("spec.volumes[0].hostPath", {"path": "/x"}, '{"Path":"/x","Type":null}'),
        (
            "spec",
            {"serviceAccount": "a", "priority": 1, "hostNetwork": False, "securityContext": {"fsGroup": 2}},
            '{"Volumes":null,"NodeSelector":null,"Priority":1,"SecurityContext":{"HostNetwork":false,"FSGroup":2}}',
        ),
        # What is no such struct, or has no type here, is printed as it is.
        ("spec", {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("spec.unknown", {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("spec.volumes", [1], "[1]"),
        ("spec.nodeSelector", ["a"], '["a"]'),
        ("spec.volumes[0].name", {"a": 1}, '{"a":1}'),
        ("spec.priority", 3, "3"),
        ("spec", None, "null"),
    ],
)
def test_values_are_printed_as_their_structs(field: str, value: Any, shown: str) -> None:
    fault = GoForms(STRUCTS).printed("core.Pod", invalid_value(field, value, "wrong"))
    assert fault.body == f"Invalid value: {shown}: wrong"


def test_what_json_says_twice_of_a_node_is_printed_once() -> None:
    structs = {
        "core.Node": "<meta.ObjectMeta>, Spec NodeSpec",
        "core.NodeSpec": "PodCIDRs []string, ProviderID string",
    }
    fault = invalid_value("spec", {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}, "wrong")
    shown = GoForms(structs).printed("core.Node", fault).body
    assert shown == 'Invalid value: {"PodCIDRs":["10.0.0.0/24"],"ProviderID":""}: wrong'


def test_what_changed_ends_the_message() -> None:
    old = {"volumes": [{"name": "v"}]}
    compared = ("core.PodSpec", old, {**old, "priority": 1})
    fault = FieldError(Reason.FORBIDDEN, "spec", "may not change", compared=compared)
    assert GoForms(STRUCTS).printed("core.Pod", fault).body.split("\n") == [
        "Forbidden: may not change",
        "@@ -7,6 +7,6 @@",
        "   }",
        "  ],",
        '  "NodeSelector": null,',
        '- "Priority": null,',
        '+ "Priority": 1,',
        '  "SecurityContext": null',
        " }",
        "",
    ]


def test_an_empty_list_is_there_until_the_object_is_stored() -> None:
    zero_values: ZeroTable = {
        "io.k8s.api.core.v1.ConfigMap": ({"metadata": {}}, ()),
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": ({}, ()),
    }
    form = compile_typed_form("io.k8s.api.core.v1.ConfigMap", definitions(), zero_values)
    seen: list[dict[str, Any]] = []
    obj: dict[str, Any] = {
        "metadata": {"name": "a", "finalizers": [], "labels": {}},
        "data": {},
        "immutable": None,
    }
    empties = form.read(obj, lambda value: seen.append({**value, "metadata": {**value["metadata"]}}))
    assert seen == [{"metadata": {"name": "a", "finalizers": [], "labels": {}}, "data": {}}]
    assert obj == {"metadata": {"name": "a"}}
    again = with_empties(obj, empties)
    assert again == {"metadata": {"name": "a", "finalizers": [], "labels": {}}, "data": {}}
    assert obj == {"metadata": {"name": "a"}}
    assert with_empties({"metadata": {"name": "a"}, "data": {"a": "b"}}, empties)["data"] == {"a": "b"}
