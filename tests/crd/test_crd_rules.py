"""Rules of CRDs beyond the recorded ones: what is accepted though it looks wrong, and updates that need not mend."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create, prepare_crd_for_update

Json = dict[str, Any]


def crd(schema: Json, **version: Any) -> Json:
    made: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com", "resourceVersion": "1"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }
    default_crd(made)
    prepare_crd_for_create(made)
    return made


def root(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def texts(made: Json, old: Json | None = None) -> list[str]:
    return [str(each).replace("spec.validation.openAPIV3Schema", "S") for each in check_crd(made, old)]


def updated(made: Json, old: Json) -> list[str]:
    stored = deepcopy(old)
    stored["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    prepare_crd_for_update(made, stored)
    return texts(made, stored)


@pytest.mark.parametrize(
    "schema",
    [
        root(a={"type": "string", "minLength": -1, "maxLength": -2}),
        root(a={"type": "integer", "enum": ["x"]}),
        root(a={"type": "integer", "multipleOf": 0}),
        root(a={"x-kubernetes-int-or-string": True, "default": True}),
        root(a={"type": "object", "required": ["nowhere"]}),
        root(a={"type": "array", "items": {"type": "string"}, "default": None}),
        root(a={"type": "string", "format": "nonsense", "default": "x"}),
    ],
)
def test_accepted_though_it_looks_wrong(schema: Json) -> None:
    assert texts(crd(schema)) == []


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (
            root(a={"type": "string", "x-kubernetes-int-or-string": True, "default": 5}),
            'S.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            root(
                a={
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"metadata": {"type": "object", "default": {"labels": {"a": "b c"}}}},
                }
            ),
            'S.properties[a].properties[metadata].default: Invalid value: {"labels":{"a":"b c"}}: must result in '
            'valid metadata: metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist '
            "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
            "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            {"type": "object", "$schema": "x"},
            "S: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported",
        ),
        (
            root(a={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
            "S.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type is map",
        ),
        (
            root(
                a={
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string", "nullable": True},
                }
            ),
            "S.properties[a].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",
        ),
    ],
)
def test_refused(schema: Json, fault: str) -> None:
    assert texts(crd(schema)) == [fault]


def test_a_schema_too_deep_is_refused_not_followed() -> None:
    schema: Json = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "object", "properties": {"p": schema}}
    assert texts(crd(schema)) == ["S: Forbidden: must not nest deeper than 150 levels"]


def test_an_update_is_not_held_to_what_the_stored_one_breaks() -> None:
    loose = {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}
    old = crd(root(a=loose))
    assert texts(old) != []
    new = crd(root(a=loose, b={"type": "string"}))
    assert updated(new, old) == []
    worse = crd(root(a=loose, b={"type": "text"}))
    assert [each.split(":")[0] for each in updated(worse, old)] == ["S.properties[b].type"]


def test_an_update_cannot_change_names_scope_and_group() -> None:
    old, new = crd(root()), crd(root())
    new["spec"]["group"], new["spec"]["scope"] = "other.example.com", "Cluster"
    new["spec"]["names"] = {"plural": "cans", "singular": "can", "kind": "Can", "listKind": "CanList"}
    assert [each.split(":")[0] for each in updated(new, old)] == [
        "spec.scope",
        "spec.names.kind",
        "spec.group",
        "spec.names.plural",
    ]


def test_the_status_of_a_new_crd_is_its_storage_version() -> None:
    made = crd(root())
    assert made["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    new = crd(root())
    new["spec"]["versions"] = [{**new["spec"]["versions"][0], "name": "v2"}]
    prepare_crd_for_update(new, made)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert [each.split(";")[0] for each in texts(new, made)] == [
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions'
    ]


def test_a_storage_version_without_a_name_is_stored_all_the_same() -> None:
    made = crd(root(), name="")
    assert made["status"]["storedVersions"] == [""]
    assert [each.split(":")[0] for each in texts(made)] == ["spec.versions[0].name"]


def test_a_reason_that_is_none_is_refused_though_a_default_breaks_the_rule() -> None:
    rule = {"rule": "self != ''", "reason": "Bad"}
    found = texts(crd(root(a={"type": "string", "default": "", "x-kubernetes-validations": [rule]})))
    assert [each.split(":")[0] for each in found] == [
        "S.properties[a].default",
        "S.properties[a].x-kubernetes-validations[0].reason",
    ]


ITEMS = {"type": "array", "items": root(b={"type": "string"})}


@pytest.mark.parametrize(
    ("schema", "rule", "shown"),
    [({"type": "object"}, "ip(self) == self", "(selfType)"), (ITEMS, "ip(self[0]) == 1", "(selfType.@idx)")],
)
def test_a_rule_sees_its_value_as_the_type_of_itself(schema: Json, rule: str, shown: str) -> None:
    (found,) = texts(crd(root(a={**schema, "x-kubernetes-validations": [{"rule": rule}]})))
    assert f"applied to '{shown}'" in found


def test_a_default_that_empties_the_kind_of_an_object() -> None:
    found = texts(crd(root(kind={"type": "string", "default": ""})))
    assert found[:1] == [
        'S.properties[kind].default: Invalid value: "": must result in valid metadata: '
        'kind: Invalid value: "": must not be empty'
    ]


def test_of_two_versions_with_one_name_the_second_is_not_stored() -> None:
    made = crd(root())
    first = made["spec"]["versions"][0]
    made["spec"]["versions"] = [{**first, "storage": False}, first]
    assert 'status.storedVersions: Invalid value: ["v1"]: must have the storage version v1' in texts(made)
