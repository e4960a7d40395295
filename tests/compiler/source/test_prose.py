"""Descriptions of Kubernetes' own kinds: packed for the wheel, read from there, and joined with the definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import explained
from tests.tools.command import kubewright

from kubewright.diagnostics import Diagnostics
from kubewright.source import kubernetes_validate, prose, releases

TEXTS = st.dictionaries(st.text("/~ab$", max_size=4), st.text(max_size=5), max_size=4)


@settings(max_examples=12)
@given(st.dictionaries(st.sampled_from(["1.9", "1.10", "1.25", "2.0"]), TEXTS))
def test_what_is_packed_is_read(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, prose.Texts]
) -> None:
    path = tmp_path_factory.mktemp("prose") / prose.FILE
    prose.pack(texts, path)
    assert {release: prose.read(path, release) for release in prose.releases(path)} == texts
    with pytest.raises(KeyError):
        prose.read(path, "9.9")


def test_a_property_may_be_called_description() -> None:
    inner = {"type": "object", "properties": {"description": {"type": "string", "description": "said"}}}
    schemas = {"a/b~c": {"description": "outer", **inner, "allOf": [{"description": "first"}]}}
    texts = prose.texts_of(schemas)
    assert texts == {
        "/a~1b~0c": "outer",
        "/a~1b~0c/properties/description": "said",
        "/a~1b~0c/allOf/0": "first",
    }
    bare = releases.without_prose(schemas)
    prose.describe(bare, texts)
    assert bare == schemas


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return {release: kubernetes_validate.described(release) for release in ("1.37", "1.31")}


@pytest.fixture(scope="module")
def packed_file(described: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / prose.FILE
    prose.pack({release: prose.texts_of(each) for release, each in described.items()}, path)
    return path


@pytest.fixture
def packed(packed_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packed file of two releases, and no kubernetes-validate."""
    monkeypatch.setattr(kubernetes_validate, "_folders", dict)
    monkeypatch.setattr(kubernetes_validate, "_prose_file", lambda: packed_file)
    return packed_file


def test_the_packed_texts_are_those_of_the_package(packed: Path, described: dict[str, Any]) -> None:
    for release, each in described.items():
        assert kubernetes_validate.described(release) == each
    assert packed.stat().st_size < 200_000
    assert kubernetes_validate.has_prose("1.31") and not kubernetes_validate.has_prose("1.30")
    document = kubernetes_validate.load("1.30", Diagnostics(), with_prose=True)
    assert document is not None and not prose.texts_of(document.value)


def test_explain_reads_them(packed: Path) -> None:
    code, out, err = kubewright("explain", "pod.spec.containers.lifecycle", "--kubernetes", "1.31")
    assert (code, err) == (0, "")
    assert "Actions that the management system should take" in out and "Lifecycle describes actions" in out


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A source checkout without descriptions; returns the path of the kubeconfig."""
    monkeypatch.setattr(kubernetes_validate, "_folders", dict)
    monkeypatch.setattr(kubernetes_validate, "_prose_file", lambda: tmp_path / "none")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return tmp_path / "kubeconfig"


def test_without_them_explain_says_where_they_are(bare: Path) -> None:
    code, out, err = kubewright("explain", "pod.spec")
    assert code == 0 and "<empty>" in out and "the wheel has them" in err and "no cluster gave them" in err


class Cluster:
    """OpenAPI of a cluster of another release: one field that ours lacks, and of ours one alone."""

    def answer(self, path: str) -> dict[str, Any] | None:
        name = "io.k8s.api.apps.v1.DeploymentSpec"
        fields = {"replicas": {"description": "How many."}, "later": {"description": "Not known here."}}
        documents: dict[str, dict[str, Any]] = {
            "/openapi/v3": {"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=1"}}},
            "/openapi/v3/apis/apps/v1?hash=1": {"components": {"schemas": {name: {"properties": fields}}}},
        }  # fmt: skip
        return documents.get(path)


def test_explain_reads_them_from_a_cluster_and_says_so(bare: Path) -> None:
    with explained.served(Cluster()) as address:
        cluster = {"name": "one", "cluster": {"server": address}}
        context = {"name": "one", "context": {"cluster": "one", "user": ""}}
        config = {"clusters": [cluster], "contexts": [context], "current-context": "one"}
        bare.write_text(json.dumps(config))
        code, out, err = kubewright("explain", "deployment.spec.replicas")
        assert code == 0 and "How many." in out and f"the cluster at {address}" in err
        code, out, err = kubewright("explain", "pod.spec")
        assert code == 0 and "<empty>" in out and "no cluster gave them" in err
