"""``kubewright explain``: built-in kinds, custom ones, and what is not there."""

from __future__ import annotations

from pathlib import Path

from tests.tools.command import kubewright

WIDGET = Path(__file__).parent / "validate_widget_crd.yaml"


def test_a_field_of_a_built_in_kind_with_its_own_fields() -> None:
    code, out, _ = kubewright("explain", "deployment.spec.strategy")
    assert code == 0
    assert out.startswith("Deployment.spec.strategy  (apps/v1, DeploymentStrategy)\n")
    assert "\n  rollingUpdate  RollingUpdateDeployment\n" in out
    assert "  rollingUpdate  RollingUpdateDeployment\n    maxSurge  IntOrString\n" in kubewright(
        "explain", "deployments.spec.strategy", "--recursive"
    )[1].replace("(required)", "")


def test_fields_of_items_need_no_index_and_recursion_in_a_schema_ends() -> None:
    assert "containerPort  integer (required)" in kubewright("explain", "pod.spec.containers.ports")[1]
    code, out, _ = kubewright("explain", "customresourcedefinition", "--recursive")
    assert code == 0
    assert out.count("\n") < 5000


def test_a_custom_kind_by_its_plural() -> None:
    code, out, _ = kubewright("explain", "widgets.spec", "--crds", WIDGET)
    assert code == 0
    assert "  size  integer (required)\n" in out
    assert "default: 5" in kubewright("explain", "widget.spec.limit", "--crds", WIDGET)[1]


def test_what_is_not_there_is_told() -> None:
    code, _, err = kubewright("explain", "deployment.spec.replcas")
    assert code == 1
    assert "Deployment.spec has no field 'replcas'; it has minReadySeconds," in err
    assert kubewright("explain", "gadget")[0] == 1
    assert kubewright("explain", "pod", "--kubernetes", "1.2")[0] == 2
    assert kubewright("explain", "pod", "--api-version", "apps/v1")[0] == 1
