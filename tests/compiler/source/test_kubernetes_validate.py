"""The definitions we read out of kubernetes-validate are those that upstream publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.config import KubernetesSource, Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.schemas import SchemaWriter
from kubewright.ir.merge import ListType
from kubewright.ir.types import Struct
from kubewright.pipeline import read_api
from kubewright.source.kubernetes_validate import releases

SWAGGER = Path(__file__).parents[3] / "../shared/data/kubernetes-1.36/swagger.json"
GVK = "x-kubernetes-group-version-kind"
V3 = SWAGGER.parent / "openapi-v3"


def definitions(source: KubernetesSource | PathSource) -> dict[str, Any]:
    diagnostics = Diagnostics()
    api = read_api(Package(name="api", sources=(source,), documentation=True), diagnostics)
    assert [str(item) for item in diagnostics] == []
    writer = SchemaWriter(documentation=True)
    return {definition.name: writer.definition(definition) for definition in api.definitions}


def upstream() -> dict[str, Any]:
    """Upstream's definitions, ``required`` in the order of the properties, as we write it, GVKs sorted."""
    found: dict[str, Any] = json.loads(SWAGGER.read_text())["definitions"]
    for schema in found.values():
        if "required" in schema:
            schema["required"] = [name for name in schema["properties"] if name in schema["required"]]
        if len(kinds := schema.get(GVK, ())) > 1:
            schema[GVK] = sorted(kinds, key=lambda kind: (kind["group"], kind["version"], kind["kind"]))
    return found


@pytest.mark.parametrize("release", releases())
def test_every_release_links_without_a_fault(release: str) -> None:
    assert len(definitions(KubernetesSource(release))) >= 500


def test_lists_of_releases_without_list_types_merge_by_their_patch_strategy() -> None:
    pod = definitions(KubernetesSource("1.29"))["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"]
    assert "x-kubernetes-list-type" not in pod
    api = read_api(Package(name="api", sources=(KubernetesSource("1.29"),)), Diagnostics())
    (spec,) = (d.value.type for d in api.definitions if d.name == "io.k8s.api.core.v1.PodSpec")
    assert isinstance(spec, Struct)
    merge = next(f.value.merge for f in spec.fields if f.wire_name == "volumes")
    assert (merge.list_type, merge.list_map_keys) == (ListType.MAP, ("name",))


@pytest.mark.shared
@pytest.mark.skipif(not SWAGGER.exists(), reason="the ../shared folder of recordings is absent")
def test_release_1_36_is_upstreams() -> None:
    expected = upstream()
    # Prose that the package leaves out.
    ours = definitions(KubernetesSource("1.36"))
    for name in (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
    ):
        del expected[name]["description"]
    assert ours == expected


@pytest.mark.shared
@pytest.mark.skipif(not SWAGGER.exists(), reason="the ../shared folder of recordings is absent")
def test_swagger_comes_back_as_it_was() -> None:
    assert definitions(PathSource(SWAGGER)) == upstream()


@pytest.mark.thorough
@pytest.mark.shared
@pytest.mark.skipif(not V3.exists(), reason="the ../shared folder of recordings is absent")
def test_v3_says_what_v2_says_and_more_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    published = upstream()
    ours = definitions(PathSource(V3))
    assert ours.keys() == published.keys()
    # A v3 document names the GVKs of its own group only, and groups that are not served have none.
    for definitions_of in (ours, published):
        for name in ("DeleteOptions", "WatchEvent"):
            del definitions_of[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"][GVK]

    def without_defaults(value: Any) -> Any:
        if isinstance(value, list):
            return [without_defaults(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: without_defaults(item) for key, item in value.items() if key != "default"}

    different = [
        name for name, schema in ours.items() if without_defaults(schema) != without_defaults(published[name])
    ]
    assert different == []
    assert json.dumps(ours).count('"default": ') > 500
