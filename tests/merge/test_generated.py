"""The generated merge schemas say what the OpenAPI reader says of the same definitions."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from apimachinery.merge.compile import MergeTypes, SchemaError
from apimachinery.merge.from_openapi import builtin_table
from apimachinery.merge.package import package_types
from apimachinery.merge.schema import (
    COMMON_TYPES,
    DEDUCED,
    STRING,
    Either,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
    field_of,
)

PACKAGES = ["kubernetes_api", "backup_api", "messaging_api", "flags_api"]


def table(package: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for module in sorted(set(import_module(f"{package}.registry").GROUP_VERSIONS.values())):
        out |= import_module(f"{package}.{module}.merge_schema").TYPES
    return out


def without_defaults(type_: Type) -> Any:
    if type_ == DEDUCED:
        type_ = COMMON_TYPES[DEDUCED.name]
        return ("either", "any")
    if isinstance(type_, Struct):
        fields = {name: field_of(entry) for name, entry in type_.fields.items()}
        shown = {name: (without_defaults(f.type), f.patch, f.merge_key) for name, f in fields.items()}
        return ("struct", shown, type_.atomic, None if type_.rest is None else without_defaults(type_.rest))
    if isinstance(type_, ListOf):
        return ("list", without_defaults(type_.items), type_.type, type_.keys)
    if isinstance(type_, MapOf):
        return ("map", without_defaults(type_.values), type_.atomic)
    if isinstance(type_, Either):
        return ("either", "any")
    return type_


def test_emitter_and_reader_agree_on_every_builtin_definition() -> None:
    generated = table("kubernetes_api")
    folder = Path(str(import_module("kubernetes_api").__file__)).parent
    read = builtin_table(json.loads((folder / "definitions.json").read_text()))
    assert generated.keys() == read.keys()
    differing = [name for name in read if without_defaults(generated[name]) != without_defaults(read[name])]
    assert differing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_type_compiles(package: str) -> None:
    types = package_types(package)
    for name in table(package):
        types.named(name)
        types.patch_type(name)


def test_list_keys_have_the_defaults_of_defaulting_and_of_typed_structs() -> None:
    core = import_module("kubernetes_api.core_v1.merge_schema").TYPES
    port = core["io.k8s.api.core.v1.ContainerPort"].fields
    assert (field_of(port["containerPort"]).default, field_of(port["protocol"]).default) == (0, "TCP")
    assert field_of(core["io.k8s.api.core.v1.Container"].fields["name"]).default == ""
    assert package_types("kubernetes_api").named("io.k8s.api.core.v1.Container").owned(
        {"ports": [{"containerPort": 80}]}
    ) == {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}}


def test_a_key_that_is_left_out_when_empty_stands_for_the_empty_one() -> None:
    pod = package_types("kubernetes_api").named("io.k8s.api.core.v1.PodSpec")
    assert pod.owned({"imagePullSecrets": [{}]}) == {"f:imagePullSecrets": {'k:{"name":""}': {}}}


@pytest.mark.parametrize("data", [{"a": {"b": 1}}, [1, {"a": 2}], "text", 7, True])
def test_an_embedded_value_is_of_any_form_and_owned_as_a_whole(data: Any) -> None:
    revision = package_types("kubernetes_api").named("io.k8s.api.apps.v1.ControllerRevision")
    assert revision.owned({"data": data}) == {"f:data": {}}
    assert revision.merge({"data": {"c": 3}}, {"data": data}) == {"data": data}


def test_a_reference_to_nothing_is_an_error_that_names_it() -> None:
    types = MergeTypes({"A": Struct({"b": Ref("B")}), "C": Ref("C"), "D": STRING})
    with pytest.raises(SchemaError, match="no type 'B' in the merge schema"):
        types.named("A")
    with pytest.raises(SchemaError, match="'C' of the merge schema refers to itself"):
        types.named("C")
    assert types.named("D").owned("x") == {}
